"""A person as the user: her words, her commands, and how she ends a dialogue."""

from __future__ import annotations

import pytest

from muarl.messages import ToolCall, ToolResult, ToolSpec
from muarl.person import command
from muarl.record import UserReply
from muarl.user.person import PersonUser

pytestmark = pytest.mark.anyio


class Somebody:
    """Writes given lines, then leaves; keeps what she read."""

    def __init__(self, *lines: str) -> None:
        self._lines = list(lines)
        self.read: list[tuple[str, str]] = []

    async def hear(self, who: str, text: str) -> None:
        self.read.append((who, text))

    async def speak(self, who: str) -> str | None:
        assert who == "you"
        return self._lines.pop(0) if self._lines else None


async def test_she_reads_her_goal_and_the_agent_and_says_what_she_writes() -> None:
    person = Somebody(" hello ", "yes")
    user = PersonUser(person, "You want tea.")
    assert await user.open() == UserReply("hello", act="open")
    assert await user.reply("Shall I?") == UserReply("yes")
    assert person.read == [("", "You want tea."), ("agent", "Shall I?")]


@pytest.mark.parametrize(
    ("line", "reply"),
    [
        ("/bye thanks a lot", UserReply("thanks a lot", stop=True, act="stop")),
        ("/bye", UserReply("", stop=True, act="stop")),
        ("/quit", UserReply("", stop=True, act="abandon")),
        ("/q", UserReply("", stop=True, act="abandon")),
        ("//etc is full", UserReply("/etc is full")),
    ],
)
async def test_only_a_command_of_hers_ends_the_dialogue(line: str, reply: UserReply) -> None:
    assert await PersonUser(Somebody(line), "").reply("?") == reply


async def test_one_who_is_gone_has_left() -> None:
    assert await PersonUser(Somebody(), "").open() == UserReply("", stop=True, act="abandon")


async def test_blank_lines_help_and_unknown_commands_are_no_messages() -> None:
    person = Somebody("", "  ", "/help", "/goal", "/gaol", "hello")
    assert await PersonUser(person, "You want tea.").open() == UserReply("hello", act="open")
    _, shown, goal, unknown = (text for _, text in person.read)
    assert all(name in shown for name in ("/bye", "/quit", "/goal", "/help"))
    assert goal == "You want tea."
    assert "there is no /gaol; did you mean '/goal'?" in unknown


async def test_a_command_of_the_agent_s_is_said_to_be_that() -> None:
    person = Somebody("/call look {}", "hello")
    assert (await PersonUser(person, "").reply("?")).text == "hello"
    assert "/call is the agent's command, and you are not the agent; there are /bye" in str(
        person.read
    )


async def test_a_shortened_command_must_be_the_only_one() -> None:
    assert command("/ab x  y", ["/abc", "/xyz"]) == ("/abc", "x  y")
    assert command("/abc", ["/abc", "/abcd"]) == ("/abc", "")
    with pytest.raises(ValueError, match=r"there is no /ab"):
        command("/ab", ["/abc", "/abd"])


class Phone:
    tools = (ToolSpec("restart", "Restarts it.", {"type": "object", "properties": {}}),)

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []

    async def call(self, call: ToolCall) -> ToolResult:
        self.calls.append(call)
        return ToolResult(call.id, call.name, "no signal", is_error=call.name != "restart")


async def test_she_uses_her_own_device_and_reads_what_it_says() -> None:
    person, phone = (
        Somebody("/tools", "/do restart", '/do call {"n": 1}', "/do x {", "done"),
        Phone(),
    )
    user = PersonUser(person, "")
    user.take(phone)
    assert (await user.reply("Please restart it.")).text == "done"
    assert [(call.name, call.arguments) for call in phone.calls] == [
        ("restart", {}),
        ("call", {"n": 1}),
    ]
    listed, restarted, refused, unread = (text for _, text in person.read[1:])
    assert "Restarts it." in listed
    assert (restarted, refused) == ("no signal", "Error: no signal")
    assert "no JSON" in unread


async def test_without_a_device_she_is_told_that_she_can_only_talk() -> None:
    person = Somebody("/do restart", "/tools", "hello")
    assert (await PersonUser(person, "").reply("?")).text == "hello"
    assert all("you can only talk" in text for _, text in person.read[1:])
