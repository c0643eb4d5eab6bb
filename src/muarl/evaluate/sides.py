"""Stored runs side by side: which of their tasks are the same, and how much better one did on these."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

import msgspec
from msgspec import structs

from muarl.errors import RecordError
from muarl.evaluate.comparison import Comparison, compared_together
from muarl.evaluate.paired import Rates
from muarl.evaluate.statistics import Interval, success_rate
from muarl.evaluate.trainings import Trainings, between_trainings, over_trainings

_NAMED = 3
"""Tasks that a refusal names."""

Place = tuple[str, str]
"""Task and user. The user is "" where a run has one."""


class Task(NamedTuple):
    """What a task was, as its dialogues say it.

    Attributes:
        domain: Its domain.
        situation: Hash of its goal, personas, ledger and world.
        content: Hash of all that a dialogue on it and its reward followed from.
    """

    domain: str
    situation: str
    content: str


class Side(NamedTuple):
    """What one policy did in one run.

    Attributes:
        name: Of the run, and of its phase where it stands for several.
        tries: Whether each scored dialogue succeeded.
        tasks: What the tasks were.
        seed: Of the training that made the policy; None where none is known.
    """

    name: str
    tries: Mapping[Place, Sequence[bool]]
    tasks: Mapping[str, Task]
    seed: int | None = None


class Kind(NamedTuple):
    """Trainings that differ in nothing but their seed, or one policy alone.

    Attributes:
        name: Of the first side.
        sides: One for each training.
    """

    name: str
    sides: Sequence[Side]


class KindScore(msgspec.Struct, frozen=True):
    """What trainings of one kind reached on all tasks that each of them played.

    Attributes:
        name: Of the kind.
        runs: Names of its sides.
        seeds: Of its trainings.
        success: Over their dialogues, by task: what is said of these very weights.
        trainings: What is said of further ones; None where no training is known.
    """

    name: str
    runs: list[str]
    seeds: list[int]
    success: Interval
    trainings: Trainings | None


class RunDifference(Comparison, frozen=True, kw_only=True):
    """Success of one kind minus that of the first, on the same tasks with the same users.

    Attributes, beside those of `Comparison`:
        of: Name of the one.
        minus: Of the first.
        left_out: Why tasks do not count, to how many.
        trainings: What further trainings would show; None where neither was trained, as far as is known.
    """

    of: str
    minus: str
    left_out: dict[str, int]
    trainings: Trainings | None


def scores(kinds: Sequence[Kind]) -> list[KindScore]:
    """What each kind reached."""
    return [_score(kind) for kind in kinds]


def differences_of(
    kinds: Sequence[Kind],
    *,
    accept_changes: bool = False,
    what_changed: Callable[[str, str], str] = lambda _first, _other: "",
    seed: int = 0,
) -> list[RunDifference]:
    """Compare each further kind with the first.

    Args:
        kinds: At least one.
        accept_changes: Tasks count although something changed by which they were played or judged; what
            they are about must be the same.
        what_changed: What of the domain changed between two sides, by their names; for a refusal.
        seed: As of `compared_together`.

    Raises:
        RecordError: Two have no task in common; says why.
    """
    first, *others = kinds
    shared = [_shared(first, other, accept_changes, what_changed) for other in others]
    rates = [
        (_rates(other.sides, places), _rates(first.sides, places))
        for other, (places, _) in zip(others, shared, strict=True)
    ]
    return [
        RunDifference(
            **structs.asdict(comparison),
            of=other.name,
            minus=first.name,
            left_out=left_out,
            trainings=_between(other, first, places),
        )
        for comparison, other, (places, left_out) in zip(
            compared_together(rates, seed=seed), others, shared, strict=True
        )
    ]


def _score(kind: Kind) -> KindScore:
    places = set[Place].intersection(*(set(side.tries) for side in kind.sides))
    by_task: defaultdict[str, list[bool]] = defaultdict(list)
    for side in kind.sides:
        for task, user in places:
            by_task[task] += side.tries[task, user]
    seeds = _by_seed(kind, places)
    return KindScore(
        name=kind.name,
        runs=[side.name for side in kind.sides],
        seeds=sorted(seeds),
        success=success_rate(by_task),
        trainings=over_trainings(seeds) if seeds else None,
    )


def _shared(
    first: Kind,
    other: Kind,
    accept_changes: bool,
    what_changed: Callable[[str, str], str],
) -> tuple[set[Place], dict[str, int]]:
    """What both played, and why they do not share the rest."""
    sides = [*first.sides, *other.sides]
    one, another = first.sides[0], other.sides[0]
    domains = [sorted({task.domain for task in side.tasks.values()}) for side in (one, another)]
    if not set(domains[0]) & set(domains[1]):
        raise RecordError(
            f"{one.name} was played in {_listed(domains[0])}, {another.name} in {_listed(domains[1])}: "
            "they have no task in common. Compare runs of one domain"
        )
    both = set[Place].intersection(*(set(side.tries) for side in sides))
    if not both:
        tasks = set[str].intersection(*(set(side.tasks) for side in sides))
        why = "were played with other users" if tasks else "share no task"
        raise RecordError(
            f"{one.name} and {another.name} {why}: of the one are {_some(one)}, of the other "
            f"{_some(another)}. Evaluate both on the same split with the same users"
        )
    kept, changed, others = set[Place](), set[str](), set[str]()
    for task, user in both:
        each = {side.tasks[task] for side in sides}
        if len({(was.domain, was.situation) for was in each}) > 1:
            others.add(task)
        elif len(each) > 1 and not accept_changes:
            changed.add(task)
        else:
            kept.add((task, user))
    if not kept:
        raise RecordError(_refusal(one, another, changed, others, what_changed))
    played = {task for side in sides for task, _ in side.tries}
    left_out = {
        "not played by all": len(played - {task for task, _ in both}),
        "another task by that name": len(others),
        "changed since": len(changed),
    }
    return kept, {why: count for why, count in left_out.items() if count}


def _refusal(
    one: Side,
    another: Side,
    changed: set[str],
    others: set[str],
    what_changed: Callable[[str, str], str],
) -> str:
    named = ", ".join(map(repr, sorted(changed or others)[:_NAMED]))
    between = f"{one.name} and {another.name}"
    if not changed:
        return (
            f"{between}: tasks of the same names ({named}) are other tasks: goal, personas, ledger or world "
            "differ. Play both in one version of the domain"
        )
    said = what_changed(one.name, another.name)
    return (
        f"{between}: the domain changed in between, so that a task ({named}) was not the same for both"
        f"{said and ': ' + said}. Play both in one version of it, or compare them all the same with "
        "--accept-changes"
    )


def _rates(sides: Sequence[Side], places: set[Place]) -> Rates:
    """Task to its success rate in each training; users weigh the same."""
    users: defaultdict[str, list[str]] = defaultdict(list)
    for task, user in sorted(places):
        users[task].append(user)
    return {
        task: [fmean(fmean(side.tries[task, user]) for user in hers) for side in sides]
        for task, hers in users.items()
    }


def _by_seed(kind: Kind, places: set[Place]) -> dict[int, float]:
    """A training's seed to its success, tasks weighing the same."""
    return {
        side.seed: fmean(value for (value,) in _rates([side], places).values())
        for side in kind.sides
        if side.seed is not None and places
    }


def _between(one: Kind, other: Kind, places: set[Place]) -> Trainings | None:
    first, second = _by_seed(one, places), _by_seed(other, places)
    return between_trainings(first, second) if first or second else None


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)


def _some(side: Side) -> str:
    places = [f"{task!r}{user and f' with {user!r}'}" for task, user in sorted(side.tries)]
    return ", ".join(places[:_NAMED]) + (", ..." if len(places) > _NAMED else "")
