"""Which of the dialogues that were kept are handed over: by quotas along axes, what is rare first.

Recoveries come first, as many as the spec asks for. Then the cells of the axes take turns, so that none has
many more than another while it has any left; within a cell the dialogue whose actions were taken by fewest
rollouts of its task comes first, and of equals the one that passed by more error branches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from muarl.record import Episode, EpisodeKey
from muarl.spec.select import Axis, SelectSpec
from muarl.synth.graph import Shape


def _writes(episode: Episode) -> str:
    changed = sum(bool(turn.changes) for turn in episode.turns)
    return str(min(changed, 4))


def _reads(episode: Episode) -> str:
    """Calls that answered and changed nothing."""
    looked = sum(
        not result.is_error for turn in episode.turns if not turn.changes for result in turn.results
    )
    return str(min(looked, 6))


def _turns(episode: Episode) -> str:
    return str(min(len(episode.turns) // 4 * 4, 24))


def _of_task(axis: Axis) -> Callable[[Episode], str]:
    return lambda episode: str(episode.axes.get(axis, ""))


AXES: Mapping[Axis, Callable[[Episode], str]] = {
    "persona": lambda episode: episode.persona,
    "user": lambda episode: episode.user,
    "writes": _writes,
    "reads": _reads,
    "turns": _turns,
    "wishes": _of_task("wishes"),
    "finds": _of_task("finds"),
    "refusals": _of_task("refusals"),
}
"""Axis to the cell of it that a dialogue is in."""


class Selected:
    """A dialogue as far as selection looks at it.

    Attributes:
        key: Of the dialogue.
        cell: Where it is along the axes.
    """

    def __init__(self, episode: Episode, axes: Sequence[Axis]) -> None:
        self.key = episode.key
        self.cell = tuple(AXES[axis](episode) for axis in axes)


def select(
    candidates: Sequence[Selected], shapes: Mapping[EpisodeKey, Shape], spec: SelectSpec
) -> set[EpisodeKey]:
    """The dialogues to hand over: `at_most` of them, as far as there are so many.

    Args:
        candidates: Those that stood all checks.
        shapes: What each is among the rollouts of its task.
        spec: How many, and along what they are spread.
    """

    def order(one: Selected) -> tuple[float, int, str]:
        """The least is taken first."""
        shape = shapes[one.key]
        return (-shape.diversity, -shape.error_branches, str(one.key))

    wanted = min(spec.at_most, len(candidates))
    in_order = sorted(candidates, key=order)
    recoveries = [one.key for one in in_order if shapes[one.key].recovers]
    chosen = set(recoveries[: round(spec.recoveries * wanted)])
    taken: defaultdict[tuple[str, ...], int] = defaultdict(int)
    waiting: defaultdict[tuple[str, ...], list[Selected]] = defaultdict(list)
    for one in reversed(in_order):  # the first of each cell is taken from the end
        if one.key in chosen:
            taken[one.cell] += 1
        else:
            waiting[one.cell].append(one)
    while len(chosen) < wanted:
        left = (cell for cell, there in waiting.items() if there)
        cell = min(left, key=lambda cell: (taken[cell], cell))
        chosen.add(waiting[cell].pop().key)
        taken[cell] += 1
    return chosen
