"""What user faults took out of the figures, by kind, persona and task.

A dialogue whose user broke her contract is in no score (law L2). What is taken out is not taken at
random: tasks that are hard to play lose more of their dialogues, so the shares stand beside the score.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict

import msgspec

from muarl.record import Episode, Outcome

OTHER = "other"
"""A fault of the user's that is no breach a guard knows, such as a lack of words."""


class Removal(msgspec.Struct, frozen=True):
    """User faults of an evaluation.

    Attributes:
        by_persona: Who she was (the persona, and after a slash which user of a pool) to kind of breach
            to dialogues.
        by_task: Task to the share of its dialogues that were taken out; tasks that lost none are left
            out.
        resampled: Kind of breach to messages that a guard threw away, in dialogues that were kept.
    """

    by_persona: dict[str, dict[str, int]] = {}
    by_task: dict[str, float] = {}
    resampled: dict[str, int] = {}


class RemovalTally:
    """Counts user faults, episode by episode."""

    def __init__(self) -> None:
        self._played: Counter[str] = Counter()
        self._lost: Counter[str] = Counter()
        self._kinds: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._resampled: Counter[str] = Counter()

    def add(self, episode: Episode) -> None:
        """Count one; faults of the surroundings count as not played."""
        task = sys.intern(episode.key.task_id)
        if episode.outcome is Outcome.USER_FAULT:
            who = f"{episode.persona}/{episode.user}" if episode.user else episode.persona
            self._played[task] += 1
            self._lost[task] += 1
            self._kinds[who][episode.breach or OTHER] += 1
        elif not episode.outcome.is_fault:
            self._played[task] += 1
            for reply in episode.replies():
                self._resampled.update(reply.breaches)

    def found(self) -> Removal:
        """What was counted."""
        return Removal(
            by_persona={who: _sorted(kinds) for who, kinds in sorted(self._kinds.items())},
            by_task={task: lost / self._played[task] for task, lost in sorted(self._lost.items())},
            resampled=_sorted(self._resampled),
        )


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))
