import contextlib
import keyword
import sys

import pytest
from acebench_kit import begun
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.compat.acebench.calls import addressed_to_tools, parsed
from muarl.compat.python_calls import NotCalls

PIECES = [
    "[", "]", "(", ")", "{", "}", "'", '"', ",", "=", ":", ".", "*", "**", "+", "-", "/", "%", "~", "@",
    "lambda x: ", "await ", "yield ", "if ", "not ", "for i in x", "f'{x}'", "\\", "\n", "\0", " ", "#",
    "f", "send_message", "message_id", "__import__", "os", "1", "0", "1e999", "1j", "9" * 5000,
    "None", "True", "...", "b'x'", "'\\ud800'", "'\\N{nothing}'", "中文", "x:=1", "0777",
]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=25).map("".join))
def test_no_text_does_anything_but_have_calls_or_none(text):
    before = set(sys.modules)
    try:
        calls = parsed(text)
    except NotCalls:
        assert not addressed_to_tools(text)
    else:
        assert all(isinstance(call.name, str) for call in calls)
        bracketed = any("]" in line.partition("[")[2] for line in text.split("\n"))
        assert addressed_to_tools(text) == bracketed
    assert set(sys.modules) == before


@pytest.mark.parametrize("depth", [50, 500, 50_000])
@pytest.mark.parametrize("pair", ["()", "[]", "{}", "f()"])
def test_nesting_of_any_depth_is_read_or_refused(depth, pair):
    text = f"[f(x={pair[:-1] * depth}{pair[-1] * depth})]"
    with contextlib.suppress(NotCalls):
        parsed(text)


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('touch planted')",
        "open('planted', mode='w')",
        "(lambda: open('planted', 'w'))()",
        "[open('planted', 'w') for i in 'x'][0]",
        "1 + len([open('planted', 'w')])",
        "'%s' % open('planted', 'w')",
        'f\'{open("planted", "w")}\'',
        'exec(\'open("planted", "w")\')',
        "9 ** 9 ** 9",
        "'a' * 10 ** 9",
    ],
)
def test_nothing_that_a_text_says_is_evaluated(expression, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    environment = begun()
    for text in (f"[{expression}]", f"[delete_message(message_id={expression})]"):
        environment.respond(text)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("f(1, 'two', a=3)", {"a": 3}),  # positional ones are lost
        ("f(a=+3)", {"a": -3}),
        ("f(a=~3)", {"a": -3}),
        ("f(a=not True)", {"a": -1}),
        ("f(a=Heytea)", {"a": "Heytea"}),
        ("f(a=now())", {"a": "now()"}),
        ("f(a=now(1, 2))", {"a": "now(1, 2)"}),
        ("f(a=prices[0])", {"a": "prices[0]"}),
        ("f(a=...)", {"a": "..."}),
        ("f(a=(1, 2))", {"a": (1, 2)}),
        ("f(a=[{'b': -1}])", {"a": [{"b": -1}]}),
        ("f(a=68.0 * 2 + 1)", {"a": 137.0}),
        ("f(a='7' + 'up')", {"a": "7up"}),
        ("f(a=1, b=2, a=3)", {"a": 3, "b": 2}),
    ],
)
def test_values_are_read_as_upstream_reads_them(text, arguments):
    (call,) = parsed(f"[{text}]")
    assert (call.name, call.arguments, call.undefined) == ("f", arguments, None)


@pytest.mark.parametrize(
    "text",
    ["", "hello there", "[f()", "]", "f(a=x.y)", "f(a={'b': 1})", "f(a={})", "f(a={1, 2})",
     "f(a=1 < 2)", "f(a=-'b')", "f(a=1 / 0)", "f(a=f'x')", "[f(), 3]", "[f(a='it's')]", "[f()] "],
)  # fmt: skip
def test_what_upstream_cannot_read_is_no_call(text):
    if text == "[f()":  # one bracket is as good as two
        assert len(parsed(text)) == 1
        return
    with pytest.raises(NotCalls):
        parsed(text)


@pytest.mark.parametrize("text", ["f()", "[f()]", " [f()]", "['f()']", "[[f()]]", "[f(),]"])
def test_brackets_and_quotes_around_calls_are_free(text):
    assert [call.name for call in parsed(text)] == ["f"]


def test_an_expression_that_is_no_call_is_an_empty_list_and_goes_to_the_tools():
    assert parsed("[confirm]") == []
    assert addressed_to_tools("[confirm]")
    assert not addressed_to_tools("confirm")
    assert not addressed_to_tools("Is [this] right?")


@settings(max_examples=40, deadline=None)
@given(
    st.text(st.characters(categories=["Ll"], max_codepoint=127), min_size=1).filter(
        lambda name: not keyword.iskeyword(name)
    ),
    st.dictionaries(
        st.sampled_from(["a", "b", "c"]),
        st.recursive(
            st.none() | st.booleans() | st.integers(0) | st.floats(0, 9) | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3),
            max_leaves=6,
        ),
    ),
)
def test_what_is_written_is_what_is_read(name, arguments):
    written = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    (call,) = parsed(f"[{name}({written})]")
    assert (call.name, call.arguments) == (name, arguments)
