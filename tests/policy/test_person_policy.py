"""A person as the agent: she reads what a model would, and her calls are calls."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from muarl.data.expert import byte_renderer
from muarl.errors import PolicyError
from muarl.messages import Message, ToolSpec
from muarl.person import tools_in_words
from muarl.policy import GenerateRequest
from muarl.policy.person import PersonPolicy

pytestmark = pytest.mark.anyio

RENDERER = byte_renderer()
TOOL = ToolSpec("find", "Looks.", {"type": "object", "properties": {"word": {"type": "string"}}})
HISTORY = (Message("system", "Be kind."), Message("user", "hello"))


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


class Somebody:
    def __init__(self, *lines: str) -> None:
        self._lines = list(lines)
        self.read: list[tuple[str, str]] = []

    async def hear(self, who: str, text: str) -> None:
        self.read.append((who, text))

    async def speak(self, who: str) -> str | None:
        return self._lines.pop(0) if self._lines else None


def asked(history: tuple[Message, ...] = HISTORY, max_tokens: int = 4096) -> GenerateRequest:
    prompt = RENDERER.start(history, [TOOL])
    stops = RENDERER.stop_token_ids
    return GenerateRequest(prompt, "d", 0, max_tokens, 1.0, stops, history, (TOOL,))


async def said(*lines: str) -> tuple[Message, Somebody]:
    """The message that the lines make, read back from its tokens."""
    person = Somebody(*lines)
    request = asked()
    generation = await PersonPolicy(person, RENDERER).generate(request)
    assert generation.finish_reason == "stop"
    assert len(generation.logprobs) == len(generation.token_ids)
    return RENDERER.parse(generation.token_ids, request.prompt_ids, turn=0), person


async def test_her_words_are_a_message_and_marks_in_them_are_words() -> None:
    for text in ("Which one?", '<tool_call>{"name": "find"}</tool_call>'):
        message, _ = await said(text)
        assert (message.content, message.tool_calls) == (text, ())


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("/call find", {}),
        ('/call find {"word": "a b"}', {"word": "a b"}),
        ('/ca find  {"n": [1, null]}', {"n": [1, None]}),
    ],
)
async def test_a_call_is_a_call(line: str, arguments: dict[str, object]) -> None:
    message, _ = await said(line)
    assert message.content == ""
    ((name, found, error),) = ((c.name, c.arguments, c.error) for c in message.tool_calls)
    assert (name, found, error) == ("find", arguments, None)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("/call", "which tool?"),
        ("/call find {", "no JSON"),
        ("/call find [1]", "must be a JSON object"),
        ('/call find {"n": NaN}', "nan"),
        ("/call find " + "[" * 100_000, "no JSON"),
        ("/what", "there is no /what"),
        ("/goal", "/goal is the user's command, and you are not the user; there are /call"),
    ],
)
async def test_what_is_no_call_is_said_at_once_and_not_sent(line: str, why: str) -> None:
    message, person = await said(line, "sorry")
    assert message.content == "sorry"
    assert why in person.read[-1][1]


async def test_she_is_told_rules_tools_and_commands() -> None:
    _, person = await said("/tools", "/rules", "/help", "", "hi")
    tools, rules, shown = (text for _, text in person.read[3:])
    assert tools == 'find {"word"?: string}\n  Looks.'
    assert ("", tools) == person.read[0]
    assert rules == "Be kind."
    assert "/call" in shown


async def test_she_reads_each_message_once_and_none_of_her_own() -> None:
    person = Somebody("one", "two")
    policy = PersonPolicy(person, RENDERER)
    await policy.generate(asked())
    answered = (
        *HISTORY,
        Message("assistant", "one"),
        Message("tool", "found", tool_call_id="c", name="find"),
        Message("user", "well?"),
    )
    await policy.generate(asked(answered))
    assert person.read[1:] == [
        ("system", "Be kind."),
        ("user", "hello"),
        ("find", "found"),
        ("user", "well?"),
    ]


@pytest.mark.parametrize("lines", [(), ("/quit",)])
async def test_one_who_leaves_is_a_fault_since_only_the_user_ends_a_dialogue(
    lines: tuple[str, ...],
) -> None:
    policy = PersonPolicy(Somebody(*lines), RENDERER)
    with pytest.raises(PolicyError, match="has left"):
        await policy.generate(asked())
    assert policy.left


async def test_a_message_over_the_cap_is_cut_as_an_engine_cuts_it() -> None:
    policy = PersonPolicy(Somebody("too long"), RENDERER)
    generation = await policy.generate(asked(max_tokens=3))
    assert len(generation.token_ids) == 3
    assert generation.finish_reason == "length"


async def test_she_is_told_of_tools_that_are_shown_later() -> None:
    """A task may show some tools at first and others from a message on."""
    person = Somebody("one", "two")
    policy = PersonPolicy(person, RENDERER)
    await policy.generate(asked())
    later = (*HISTORY, Message("assistant", "one"), Message("user", "more tools"))
    more = ToolSpec("put", "Writes.", {"type": "object"})
    await policy.generate(msgspec.structs.replace(asked(later), tools=(TOOL, more)))
    assert person.read[3:] == [
        ("", 'find {"word"?: string}\n  Looks.\nput {}\n  Writes.'),
        ("user", "more tools"),
    ]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "object", "properties": {}}, "{}"),
        (
            {"type": "object", "properties": {"n": {"type": ["integer", "null"]}}},
            '{"n"?: integer | null}',
        ),
        (
            {"properties": {"a": {"enum": ["x", 1]}}, "type": "object", "required": ["a"]},
            '{"a": "x" | 1}',
        ),
        (
            {
                "type": "object",
                "properties": {"rows": {"type": "array", "items": {"$ref": "#/$defs/Row"}}},
                "$defs": {"Row": {"type": "object", "properties": {"id": {"type": "string"}}}},
            },
            '{"rows"?: [{"id"?: string}]}',
        ),
        (
            {
                "type": "object",
                "properties": {"x": {"anyOf": [{"type": "number"}, {"const": None}]}},
            },
            '{"x"?: number | null}',
        ),
        # A server may send anything.
        ({"type": "objekt", "properties": [1]}, "objekt"),
        (
            {"type": "object", "properties": {"a": 7, "b": {}}, "required": 3},
            '{"a"?: any, "b"?: any}',
        ),
        ({"$ref": "#"}, "any"),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}, "any"),
        ({"$ref": 5, "enum": "x", "anyOf": {}}, "any"),
    ],
)
def test_parameters_are_said_as_they_are_written_in_a_call(schema: Any, words: str) -> None:
    assert tools_in_words([ToolSpec("t", "", schema)]) == f"t {words}"
