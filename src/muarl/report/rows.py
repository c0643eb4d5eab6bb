"""What a list of episodes shows of each, and filters by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from muarl.evaluate.summary import succeeded
from muarl.record import Episode

VERDICTS = ("failed", "passed", "fault")

UNREADABLE = "(unreadable)"
"""For the name of a tool, where a call could not be read."""


class Row(msgspec.Struct, frozen=True, gc=False):
    """An episode in one line.

    Attributes:
        phase: Of its key, as the next three.
        iteration: Of its key.
        task: Of its key.
        sample: Of its key.
        persona: Who the user was.
        user: Which of the run's users; "" where it has one.
        verdict: One of `VERDICTS`.
        outcome: Why it ended.
        reward: In [0, 1]; None for faults.
        turns: Policy messages.
        tokens: That the policy sampled.
        version: Weights that sampled its first message.
        tools: That the policy called, each once, in order of the alphabet; `UNREADABLE` for what names none.
        errors: Calls that were answered with an error.
    """

    phase: str
    iteration: int
    task: str
    sample: int
    persona: str
    user: str
    verdict: str
    outcome: str
    reward: float | None
    turns: int
    tokens: int
    version: int
    tools: tuple[str, ...]
    errors: int

    @property
    def id(self) -> str:
        """The episode's key as text."""
        return f"{self.phase}/{self.iteration}/{self.task}/{self.sample}"

    @property
    def group(self) -> tuple[str, int, str]:
        """Episodes with equal groups share a baseline."""
        return (self.phase, self.iteration, self.task)


def verdict(episode: Episode) -> str:
    """One of `VERDICTS`."""
    if episode.outcome.is_fault or episode.reward is None:
        return "fault"
    return "passed" if succeeded(episode) else "failed"


def row_of(episode: Episode) -> Row:
    """The line of an episode."""
    key = episode.key
    results = [result for turn in episode.turns for result in turn.results]
    return Row(
        phase=key.phase,
        iteration=key.iteration,
        task=key.task_id,
        sample=key.sample,
        persona=episode.persona,
        user=episode.user,
        verdict=verdict(episode),
        outcome=episode.outcome.value,
        reward=episode.reward,
        turns=len(episode.turns),
        tokens=episode.num_sampled,
        version=episode.turns[0].policy_version if episode.turns else 0,
        tools=tuple(sorted({result.name or UNREADABLE for result in results})),
        errors=sum(result.is_error for result in results),
    )


def above_group(rows: Sequence[Row]) -> list[float | None]:
    """What each earned more than its group did on average; None for faults.

    Example:
        Rewards 1, 0, 0 of one group give 2/3, -1/3, -1/3.
    """
    earned: defaultdict[tuple[str, int, str], list[float]] = defaultdict(list)
    for row in rows:
        if row.reward is not None:
            earned[row.group].append(row.reward)
    means = {group: sum(rewards) / len(rewards) for group, rewards in earned.items()}
    return [None if row.reward is None else row.reward - means[row.group] for row in rows]


def columns(rows: Sequence[Row]) -> dict[str, Any]:
    """The same rows, column by column; what repeats is told once, and referred to by position."""
    table: dict[str, Any] = {"count": len(rows)}
    for name in ("phase", "task", "persona", "user", "verdict", "outcome", "tools"):
        table[name] = _coded(getattr(row, name) for row in rows)
    for name in ("iteration", "sample", "reward", "turns", "tokens", "version", "errors"):
        table[name] = [getattr(row, name) for row in rows]
    table["above"] = [None if value is None else round(value, 4) for value in above_group(rows)]
    return table


def _coded(values: Iterable[Any]) -> dict[str, Any]:
    known: dict[Any, int] = {}
    at = [known.setdefault(value, len(known)) for value in values]
    return {"values": list(known), "at": at}
