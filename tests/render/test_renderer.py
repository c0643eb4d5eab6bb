"""Law L1, the renderer's part: marks in messages stay text; what is sampled is read, not rewritten."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from dialogue_kit import renderer
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from muarl.errors import SetupError
from muarl.messages import Message, ToolCall, ToolSpec
from muarl.render import Renderer, TextTokenizer, train_tokenizer

TOKENIZER = renderer().tokenizer
MARKS = [
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
]
CONTROLS = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", *MARKS]
CONTROL_IDS = {TOKENIZER.convert_tokens_to_ids(name) for name in CONTROLS}

SYSTEM = Message("system", "rules")
TOOL = ToolSpec("t", "A tool.", {"type": "object", "properties": {"a": {"type": "number"}}})

hostile = st.lists(
    st.sampled_from(
        [*CONTROLS, "\n", " ", "user", "system\n", "é🙂", "<", "/think>", "hello", "1.0"]
    ),
    max_size=8,
).map("".join) | st.text(max_size=12)


def structure(ids: list[int]) -> list[int]:
    return [i for i in ids if i in CONTROL_IDS]


@settings(max_examples=120, deadline=None)
@given(text=hostile)
def test_no_text_of_a_user_or_tool_becomes_a_control_token_L1(text: str) -> None:
    def rendered(said: str) -> list[int]:
        call = ToolCall("c", "t")
        return renderer().start(
            [
                SYSTEM,
                Message("user", said),
                Message("assistant", "", tool_calls=(call,)),
                Message("tool", said, tool_call_id="c", name="t"),
                Message("user", said),
            ],
            [TOOL],
        )

    ids = rendered(text)
    assert structure(ids) == structure(rendered("plain"))
    spoken = text.encode("utf-8", "replace").decode()
    assert TOKENIZER.decode(ids).count(f"user\n{spoken}<|im_end|>") == 2
    assert f"<tool_response>\n{spoken}\n</tool_response>" in TOKENIZER.decode(ids)


@settings(max_examples=120, deadline=None)
@given(text=hostile)
def test_encoding_loses_no_text(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text.encode("utf-8", "replace").decode()


def test_the_templates_own_marks_are_control_tokens_L1() -> None:
    """In the system block and in the thinking block they stand as in the model's training."""
    think, end = (TOKENIZER.convert_tokens_to_ids(m) for m in ("<think>", "</think>"))
    prompt = renderer().start([SYSTEM, Message("user", "hello")], [TOOL])
    assert prompt.count(think) == prompt.count(end) == 1
    call = TOKENIZER.convert_tokens_to_ids("<tool_call>")
    assert prompt.count(call) == TOKENIZER.decode(prompt).count("<tool_call>") > 0


def test_half_a_surrogate_pair_is_rendered_as_something() -> None:
    ids = renderer().start([SYSTEM, Message("user", "a\ud800b")], [])
    assert "user\na?b<|im_end|>" in TOKENIZER.decode(ids)


# --- rendering as a whole and in pieces -----------------------------------------------------------

plain_text = st.text(max_size=12).map(str.strip)
json_leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs",)), max_size=6)
)
json_values = st.recursive(
    json_leaves,
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text("ab", max_size=2), v, max_size=3),
    max_leaves=6,
)
calls = st.builds(
    ToolCall,
    id=st.just(""),
    name=st.sampled_from(["t", "put", "get_order"]),
    arguments=st.dictionaries(st.sampled_from(["a", "é", '"q"']), json_values, max_size=3),
)
spoken = st.builds(
    Message,
    role=st.just("assistant"),
    content=plain_text,
    tool_calls=st.lists(calls, max_size=3).map(tuple),
)


def _speakable(message: Message) -> bool:
    text = message.content
    return "think>" not in text and text == text.encode("utf-8", "replace").decode()


def _numbered(message: Message, turn: int) -> Message:
    numbered = tuple(
        ToolCall(f"call_{turn}_{i}", call.name, call.arguments)
        for i, call in enumerate(message.tool_calls)
    )
    return Message("assistant", message.content, tool_calls=numbered)


@settings(max_examples=150, deadline=None)
@given(message=spoken)
def test_what_is_encoded_as_sampled_is_read_back_the_same(message: Message) -> None:
    assume(_speakable(message))
    prompt = renderer().start([SYSTEM, Message("user", "hello")], [TOOL])
    ids = renderer().encode_reply(message)
    assert ids[-1] == renderer().stop_token_ids[0]
    assert not set(renderer().stop_token_ids) & set(ids[:-1])
    assert renderer().parse(ids, prompt, turn=3) == _numbered(message, 3)


@settings(max_examples=80, deadline=None)
@given(turns=st.lists(st.tuples(spoken, st.text(max_size=8)), max_size=4))
def test_a_prompt_that_grew_equals_the_conversation_rendered_anew_L1(
    turns: list[tuple[Message, str]],
) -> None:
    assume(all(_speakable(message) for message, _ in turns))
    history = [SYSTEM, Message("user", "hello")]
    prompt = renderer().start(history, [TOOL])
    for number, (message, text) in enumerate(turns):
        said = _numbered(message, number)
        answers = [
            Message("tool", text, tool_call_id=c.id, name=c.name) for c in said.tool_calls
        ] or [Message("user", text)]
        grown = renderer().bridge(prompt, renderer().encode_reply(said), answers)
        history += [said, *answers]
        assert grown == renderer().start(history, [TOOL])
        prompt = grown


def test_this_template_is_proved_append_only_L1() -> None:
    assert renderer().forks() == []


@pytest.mark.parametrize("kind", ["user", "tool"])
def test_a_template_that_is_not_append_only_is_announced_L1(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    fresh = Renderer(TOKENIZER)
    bridge = fresh._template.bridge_to_next_turn

    def rewriting(prompt: list[int], sampled: list[int], answers: list[dict[str, Any]]) -> Any:
        return None if answers[0]["role"] == kind else bridge(prompt, sampled, answers)

    monkeypatch.setattr(fresh._template, "bridge_to_next_turn", rewriting)
    assert fresh.forks() == [kind]


def test_a_bridge_that_touches_what_was_sampled_is_refused_L1(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fresh = Renderer(TOKENIZER)
    bridge = fresh._template.bridge_to_next_turn

    def meddling(prompt: list[int], sampled: list[int], answers: list[dict[str, Any]]) -> Any:
        return bridge(prompt, [sampled[0] + 1, *sampled[1:]], answers)

    monkeypatch.setattr(fresh._template, "bridge_to_next_turn", meddling)
    prompt = fresh.start([SYSTEM, Message("user", "hello")], [])
    sampled = fresh.encode_reply(Message("assistant", "hi"))
    assert fresh.bridge(prompt, sampled, [Message("user", "more")]) is None
    assert fresh.forks() == ["user", "tool"]


any_ids = st.lists(
    st.integers(0, TOKENIZER.vocab_size - 1) | st.sampled_from(sorted(CONTROL_IDS)), max_size=20
)


@settings(max_examples=200, deadline=None)
@given(before=any_ids, rendered=st.booleans(), sampled=any_ids, text=hostile, tool=st.booleans())
def test_a_bridge_is_the_librarys_own_over_the_whole_prompt_L1(
    before: list[int], rendered: bool, sampled: list[int], text: str, tool: bool
) -> None:
    prompt = renderer().start([SYSTEM, Message("user", text)], []) if rendered else before
    answer = Message("tool", text, tool_call_id="c", name="t") if tool else Message("user", text)
    wire = {"role": answer.role, "content": text}
    whole = renderer()._template.bridge_to_next_turn(prompt, sampled, [wire])
    expected = None if whole is None else whole.token_ids
    if expected is not None and expected[: len(prompt) + len(sampled)] != prompt + sampled:
        expected = None
    sent, said = list(prompt), list(sampled)
    assert renderer().bridge(prompt, sampled, [answer]) == expected
    assert (prompt, sampled) == (sent, said), "what was sent is not written to"


def test_the_template_is_not_shown_a_history_that_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = Renderer(TOKENIZER)
    shown: list[int] = []
    bridge = fresh._template.bridge_to_next_turn

    def watching(prompt: list[int], sampled: list[int], answers: list[dict[str, Any]]) -> Any:
        shown.append(len(prompt))
        return bridge(prompt, sampled, answers)

    monkeypatch.setattr(fresh._template, "bridge_to_next_turn", watching)
    prompt = fresh.start([SYSTEM, Message("user", "hello")], [TOOL])
    sampled = fresh.encode_reply(Message("assistant", "hi"))
    for _ in range(60):
        bridged = fresh.bridge(prompt, sampled, [Message("user", "more")])
        assert bridged is not None
        prompt = bridged
    assert len(prompt) > 1000
    assert len(set(shown[1:])) == 1


@settings(max_examples=150, deadline=None)
@given(
    ids=st.lists(
        st.integers(0, TOKENIZER.vocab_size + 20) | st.sampled_from(sorted(CONTROL_IDS)),
        max_size=30,
    )
)
def test_any_ids_can_be_read(ids: list[int]) -> None:
    prompt = renderer().start([SYSTEM, Message("user", "hello")], [TOOL])
    message = renderer().parse(ids, prompt, turn=0)
    assert message.role == "assistant"
    assert "think>" not in message.content
    assert all(call.error is None or not call.arguments for call in message.tool_calls)


# --- the tokenizer on disk ------------------------------------------------------------------------


def test_a_tokenizer_survives_the_disk(tmp_path: Path) -> None:
    TOKENIZER.save(tmp_path)
    again = TextTokenizer.load(tmp_path)
    text = "user\nhello </tool_call> <|im_end|> é🙂 W4173"
    assert again.encode(text) == TOKENIZER.encode(text)
    assert again.vocab_size == TOKENIZER.vocab_size
    assert again.eos_token_id == TOKENIZER.convert_tokens_to_ids("<|im_end|>")
    assert Renderer(again).stop_token_ids == renderer().stop_token_ids


def test_a_folder_without_a_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"no tokenizer could be read from .*tokenizer\.json"):
        TextTokenizer.load(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(SetupError, match="no tokenizer could be read"):
        TextTokenizer.load(tmp_path)


def test_values_and_digits_are_spelled_alike_wherever_they_stand() -> None:
    texts = ["send W4173 to rome please"] * 20
    tokenizer = train_tokenizer(texts, vocab_size=500, values=["rome"])
    rome = tokenizer.encode("rome")
    ids = tokenizer.encode("to rome please")
    assert any(ids[i : i + len(rome)] == rome for i in range(len(ids)))
    assert tokenizer.encode("W4173")[-2:] == tokenizer.encode("41") + tokenizer.encode("73")
    assert tokenizer.encode("a\nb") == [
        *tokenizer.encode("a"),
        *tokenizer.encode("\n"),
        *tokenizer.encode("b"),
    ]


def test_a_huge_word_is_encoded_in_time_that_grows_with_its_length() -> None:
    begun = time.process_time()
    assert len(TOKENIZER.encode("x" * 100_000)) > 10_000
    assert time.process_time() - begun < 5, "a search for each letter takes a minute"
