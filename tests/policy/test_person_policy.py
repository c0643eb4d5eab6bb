"""A person as the agent: she reads what a model would, and her calls are calls."""

from __future__ import annotations

import json

import pytest

from muarl.data.expert import byte_renderer
from muarl.errors import PolicyError
from muarl.messages import Message, ToolSpec
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
    return GenerateRequest(prompt, "d", 0, max_tokens, 1.0, RENDERER.stop_token_ids, history)


async def said(*lines: str) -> tuple[Message, Somebody]:
    """The message that the lines make, read back from its tokens."""
    person = Somebody(*lines)
    request = asked()
    generation = await PersonPolicy(person, RENDERER, [TOOL]).generate(request)
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
    tools, rules, shown = (text for _, text in person.read[2:])
    assert json.dumps(TOOL.parameters) in tools
    assert "Looks." in tools
    assert rules == "Be kind."
    assert "/call" in shown


async def test_she_reads_each_message_once_and_none_of_her_own() -> None:
    person = Somebody("one", "two")
    policy = PersonPolicy(person, RENDERER, [TOOL])
    await policy.generate(asked())
    answered = (
        *HISTORY,
        Message("assistant", "one"),
        Message("tool", "found", tool_call_id="c", name="find"),
        Message("user", "well?"),
    )
    await policy.generate(asked(answered))
    assert person.read == [
        ("system", "Be kind."),
        ("user", "hello"),
        ("find", "found"),
        ("user", "well?"),
    ]


@pytest.mark.parametrize("lines", [(), ("/quit",)])
async def test_one_who_leaves_is_a_fault_since_only_the_user_ends_a_dialogue(
    lines: tuple[str, ...],
) -> None:
    policy = PersonPolicy(Somebody(*lines), RENDERER, [TOOL])
    with pytest.raises(PolicyError, match="has left"):
        await policy.generate(asked())
    assert policy.left


async def test_a_message_over_the_cap_is_cut_as_an_engine_cuts_it() -> None:
    policy = PersonPolicy(Somebody("too long"), RENDERER, [TOOL])
    generation = await policy.generate(asked(max_tokens=3))
    assert len(generation.token_ids) == 3
    assert generation.finish_reason == "length"
