"""Calls as text: what is understood, and that nothing is ever evaluated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.compat.bfcl.expressions import LONGEST, NotACall, value_of
from muarl.compat.bfcl.toolkit import Answer, answered


def add(a, b=0):
    return {"result": a + b}


def listed(*items, **named):
    return [*items, *named.items()]


FUNCTIONS = {"add": add, "listed": listed}

HOSTILE = [
    "__import__('os').system('true')",
    "add.__globals__",
    "().__class__.__bases__[0].__subclasses__()",
    "[add(1) for _ in range(9**9)]",
    "(lambda: add(1))()",
    "open('/etc/passwd').read()",
    "f'{add(1)}'",
    "add(1) if add(1) else 0",
    "eval('1')",
    "exit()",
    "9**9**9**9",
    "'a' * 10**9",
    "add(" * 5000,
    "(" * 300 + ")" * 300,
    "-" * 100_000 + "1",
    "\x00",
    "add(a := 1)",
    "'" + "x" * LONGEST + "'",
]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("add(1, 2)", {"result": 3}),
        ("add(b=1, a=-2.5)", {"result": -1.5}),
        (" add(1)['result'] ", 1),
        ("add(add(1, 2)['result'], 3)", {"result": 6}),
        ("add(*[1, 2])", {"result": 3}),
        ("add(**{'a': 1, 'b': 2})", {"result": 3}),
        ("add(1 + 2 * 3)", {"result": 7}),
        (
            "listed('a', None, True, [1, (2,)], k={'x': -1})",
            ["a", None, True, [1, (2,)], ("k", {"x": -1})],
        ),
        ("[add(1), add(2)]", [{"result": 1}, {"result": 2}]),
        ("listed('add(1)')", ["add(1)"]),
    ],
)
def test_calls_and_literals_are_understood(text, value):
    assert value_of(text, FUNCTIONS) == value


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:30])
def test_hostile_text_is_an_answer_and_not_evaluated(text):
    answer = answered(text, FUNCTIONS)
    assert answer.is_error
    assert answer.by_python
    assert answer.text.startswith("Error during execution: ")


@given(
    st.text(max_size=60) | st.text(alphabet="add(listed)[]{},'\"=*.: 0123456789+-_x", max_size=60)
)
def test_no_text_makes_it_crash(text):
    assert isinstance(answered(text, FUNCTIONS), Answer)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=12,
    )
)
def test_what_python_writes_of_a_value_is_read_as_that_value(value):
    assert value_of(f"listed({value!r}, key={value!r})", FUNCTIONS) == [value, ("key", value)]


def test_a_name_that_is_not_offered_says_which():
    with pytest.raises(NameError, match="'remove_all'"):
        value_of("remove_all()", FUNCTIONS)
    with pytest.raises(NotACall, match=r"add\.clear"):
        value_of("add.clear()", FUNCTIONS)
