"""What predicates may look at, and what they found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from muarl.messages import ToolCall, ToolResult
from muarl.record import Episode, Turn, UserReply
from muarl.spec.calls import Who
from muarl.spec.predicate_kinds import JudgeSpec
from muarl.world import World


class Finding(NamedTuple):
    """What a check found.

    Attributes:
        score: In [0, 1]; None where it does not apply.
        reason: Why, in words a person can check.
        evidence: The passage it was decided by, word by word; "" for none.
        caveat: What the score leaves out; "" for nothing.
    """

    score: float | None
    reason: str
    evidence: str = ""
    caveat: str = ""


class Call(NamedTuple):
    """One tool call of a dialogue.

    Attributes:
        name: The tool.
        arguments: Its arguments.
        is_error: It was answered with an error.
        by: Who made it: the agent, or the user on her own device.
    """

    name: str
    arguments: dict[str, Any]
    is_error: bool
    by: Who = "agent"


class Judges(Protocol):
    """Whoever answers `judge` predicates."""

    async def rule(self, spec: JudgeSpec, evidence: Evidence) -> Finding:
        """Decide one.

        Raises:
            EpisodeError: There is no ruling to be had.
        """
        ...


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What predicates may look at.

    Attributes:
        world: Final world of the dialogue.
        gold_world: World after the task's gold calls.
        turns: What happened, in order.
        opening: The user's first message, and what she did before it.
        writes: The domain's write tools.
        judges: Who answers `judge` predicates.
        begin: Makes the world that the dialogue began with.
        load: Finds what a `python` predicate names, `file.py:name`.
    """

    world: World
    gold_world: World
    turns: Sequence[Turn]
    opening: UserReply
    writes: Sequence[str]
    judges: Judges
    begin: Callable[[], World]
    load: Callable[[str], Any]

    @property
    def initial(self) -> World:
        """The world the dialogue began with, a fork of its own."""
        return self.begin()

    def calls(self) -> Iterator[Call]:
        """Every tool call of the agent that was answered, in order."""
        return (call for call in self.all_calls() if call.by == "agent")

    def calls_by_message(self) -> Iterator[list[Call]]:
        """Those of `calls`, the ones of one message together: it was written before any was answered."""
        for turn in self.turns:
            yield list(_calls("agent", turn.message.tool_calls, turn.results))

    def all_calls(self) -> Iterator[Call]:
        """Every tool call of either side that was answered, in order."""
        yield from _calls("user", self.opening.calls, self.opening.results)
        for turn in self.turns:
            yield from _calls("agent", turn.calls, turn.results)
            if turn.reply is not None:
                yield from _calls("user", turn.reply.calls, turn.reply.results)

    def heard(self) -> Iterator[tuple[int, str]]:
        """What the policy said to the user: position of the turn, and text.

        Only what she answered was said to her: no text beside calls, no cut message.
        """
        for position, turn in enumerate(self.turns):
            if turn.reply is not None:
                yield position, turn.said

    def transcript(self) -> Iterator[tuple[str, str]]:
        """The dialogue from first to last: who, and what was said, called or answered."""
        return _lines(self.opening, self.turns)


def transcript_of(episode: Episode) -> Iterator[tuple[str, str]]:
    """A stored dialogue, likewise."""
    return _lines(episode.opening, episode.turns)


def _lines(opening: UserReply, turns: Sequence[Turn]) -> Iterator[tuple[str, str]]:
    yield from _of_user(opening)
    for turn in turns:
        if turn.said:
            yield "agent", turn.said
        for call in turn.calls:
            yield "agent's call", _shown(call)
        for result in turn.results:
            yield f"answer of {result.name}", result.content
        if turn.reply is not None:
            yield from _of_user(turn.reply)


def _calls(by: Who, calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> Iterator[Call]:
    for call, result in zip(calls, results, strict=False):
        yield Call(result.name, call.arguments, result.is_error, by)


def _of_user(reply: UserReply) -> Iterator[tuple[str, str]]:
    for call, result in zip(reply.calls, reply.results, strict=False):
        yield "user's call", _shown(call)
        yield f"answer of {result.name} to the user", result.content
    yield "user", reply.text


def _shown(call: ToolCall) -> str:
    return f"{call.name} {msgspec.json.encode(call.arguments).decode()}"
