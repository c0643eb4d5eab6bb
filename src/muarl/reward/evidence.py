"""What predicates may look at, and what they found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from muarl.record import Turn
from muarl.spec.predicate import JudgeSpec
from muarl.world import World


class Finding(NamedTuple):
    """What a check found.

    Attributes:
        score: In [0, 1]; None where it does not apply.
        reason: Why, in words a person can check.
        evidence: The passage it was decided by, word by word; "" for none.
    """

    score: float | None
    reason: str
    evidence: str = ""


class Call(NamedTuple):
    """One tool call of a dialogue.

    Attributes:
        name: The tool.
        arguments: Its arguments.
        is_error: It was answered with an error.
    """

    name: str
    arguments: dict[str, Any]
    is_error: bool


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
        opening: The user's first message.
        writes: The domain's write tools.
        judges: Who answers `judge` predicates.
        begin: Makes the world that the dialogue began with.
        load: Finds what a `python` predicate names, `file.py:name`.
    """

    world: World
    gold_world: World
    turns: Sequence[Turn]
    opening: str
    writes: Sequence[str]
    judges: Judges
    begin: Callable[[], World]
    load: Callable[[str], Any]

    @property
    def initial(self) -> World:
        """The world the dialogue began with, a fork of its own."""
        return self.begin()

    def calls(self) -> Iterator[Call]:
        """Every tool call that was answered, in order."""
        for turn in self.turns:
            for call, result in zip(turn.message.tool_calls, turn.results, strict=False):
                yield Call(call.name, call.arguments, result.is_error)

    def heard(self) -> Iterator[tuple[int, str]]:
        """What the policy said to the user: position of the turn, and text.

        Only what she answered was said to her: no text beside calls, no cut message.
        """
        for position, turn in enumerate(self.turns):
            if turn.reply is not None:
                yield position, turn.message.content

    def transcript(self) -> Iterator[tuple[str, str]]:
        """The dialogue from first to last: who, and what was said, called or answered."""
        yield "user", self.opening
        for turn in self.turns:
            if turn.message.content:
                yield "agent", turn.message.content
            for call in turn.message.tool_calls:
                yield "agent's call", f"{call.name} {msgspec.json.encode(call.arguments).decode()}"
            for result in turn.results:
                yield f"answer of {result.name}", result.content
            if turn.reply is not None:
                yield "user", turn.reply.text
