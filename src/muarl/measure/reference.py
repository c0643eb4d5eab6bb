"""Distances of a corpus from a reference, people's or another user's: metrics 27 and 28.

Every distance is told per outcome class as well: a simulator can be right on average because it is too
patient where people fail and too curt where they succeed. Beside each stands the distance between two
halves of the reference (its tasks, dealt by a hash): what is no further away is as near as people are
to people.

Sources:
    Lin, J. (1991), Divergence measures based on the Shannon entropy, IEEE Transactions on
        Information Theory 37, 145-151; base 2, so that it lies in [0, 1].
    Vallender, S. S. (1974), Calculation of the Wasserstein distance between probability
        distributions on the line, Theory of Probability and its Applications 18, 784-786.
    Guo et al. (2017), arXiv 1706.04599 (expected calibration error).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean

import msgspec

from muarl.measure.figure import Figure
from muarl.measure.view import View
from muarl.seeds import derive_seed

CLASSES = ("all", "success", "failure", "left", "cut", "unscored")
_BINS = 5
"""Bins of difficulty: fifths of the reference's success."""


NEEDS_REFERENCE = (
    (
        27,
        "calibration_error",
        "expected calibration error of success on the tasks both have, binned by their difficulty",
        "share",
        "lower",
        "USI",
    ),
    (
        28,
        "distances",
        (
            "Jensen-Shannon divergence of acts, states and outcomes, Wasserstein-1 distance of each "
            "figure that is a mean, in all dialogues and in each outcome class; beside it, how far two "
            "halves of the reference are apart"
        ),
        "bits, or the figure's",
        "lower",
        "GroupPersona; Simulated Customers Never Walk Away",
    ),
)
"""Number, name, meaning, unit, better and source of what only a reference gives."""


class Distance(msgspec.Struct, frozen=True):
    """How far a corpus is from a reference, by one figure in one outcome class.

    Attributes:
        name: The figure, or `acts`, `states`, `outcomes`.
        outcome: The class, or "all".
        kind: "jsd" (in [0, 1]) or "wasserstein" (in the figure's unit).
        value: The distance.
        halves: That between the two halves of the reference; None where one of them is empty.
        n: Items of the corpus.
        n_reference: Of the reference.
    """

    name: str
    outcome: str
    kind: str
    value: float
    halves: float | None
    n: int
    n_reference: int


def jensen_shannon(ours: Iterable[Hashable], theirs: Iterable[Hashable]) -> float:
    """Jensen-Shannon divergence of two samples of categories, base 2: 0 equal, 1 disjoint.

    Raises:
        ValueError: A sample is empty.
    """
    p, q = Counter(ours), Counter(theirs)
    n, m = p.total(), q.total()
    if not n or not m:
        raise ValueError("a sample is empty")
    total = 0.0
    for kind in p.keys() | q.keys():
        a, b = p[kind] / n, q[kind] / m
        middle = (a + b) / 2
        total += sum(x / 2 * math.log2(x / middle) for x in (a, b) if x)
    return max(0.0, total)


def wasserstein(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Wasserstein-1 distance of two samples of numbers: the area between their distributions.

    Raises:
        ValueError: A sample is empty.
    """
    if not ours or not theirs:
        raise ValueError("a sample is empty")
    a, b = sorted(ours), sorted(theirs)
    points = sorted({*a, *b})
    area, i, j = 0.0, 0, 0
    for left, right in itertools.pairwise(points):
        while i < len(a) and a[i] <= left:
            i += 1
        while j < len(b) and b[j] <= left:
            j += 1
        area += abs(i / len(a) - j / len(b)) * (right - left)
    return area


def calibration_error(ours: Iterable[View], theirs: Iterable[View]) -> float | None:
    """Expected calibration error of success on the tasks both have; None where they share none.

    Tasks are binned by their success in the reference; in each bin the two means are compared, weighted
    by the tasks in it.
    """
    mine, reference = _success(ours), _success(theirs)
    bins: defaultdict[int, list[str]] = defaultdict(list)
    for task in mine.keys() & reference.keys():
        bins[min(int(reference[task] * _BINS), _BINS - 1)].append(task)
    total = sum(map(len, bins.values()))
    if not total:
        return None
    return math.fsum(
        len(tasks) / total * abs(fmean(mine[t] for t in tasks) - fmean(reference[t] for t in tasks))
        for tasks in bins.values()
    )


def _success(views: Iterable[View]) -> dict[str, float]:
    found: defaultdict[str, list[float]] = defaultdict(list)
    for view in views:
        if view.transcript.reward is not None:
            found[view.task].append(float(view.succeeded))
    return {task: fmean(values) for task, values in found.items()}


def distances(
    ours: Sequence[View], theirs: Sequence[View], figures: Iterable[Figure]
) -> list[Distance]:
    """Every distance that both corpora allow, in all outcomes and in each.

    Figures that are no mean over items have none, nor have those that need groups.
    """
    kinds: dict[str, tuple[str, Callable[[Sequence[View]], list[object]]]] = {
        "acts": ("jsd", lambda views: [turn.act for view in views for turn in view.user]),
        "states": ("jsd", lambda views: [turn.state for view in views for turn in view.user]),
        "outcomes": ("jsd", lambda views: [view.outcome_class for view in views]),
    }
    for figure in figures:
        if figure.statistic is None:
            kinds[figure.name] = ("wasserstein", _items_of(figure))
    return [
        found
        for outcome in CLASSES
        for name, (kind, items) in kinds.items()
        if not (name == "outcomes" and outcome != "all")
        for found in _distance(name, outcome, kind, items, ours, theirs)
    ]


def _items_of(figure: Figure) -> Callable[[Sequence[View]], list[object]]:
    def items(views: Sequence[View]) -> list[object]:
        return [item for of_task in by_task(views).values() for item in figure.items(of_task)]

    return items


def _distance(
    name: str,
    outcome: str,
    kind: str,
    items: Callable[[Sequence[View]], list[object]],
    ours: Sequence[View],
    theirs: Sequence[View],
) -> Iterator[Distance]:
    here = items(_of_class(ours, outcome))
    there = items(_of_class(theirs, outcome))
    if not here or not there:
        return
    measured: Callable[..., float] = jensen_shannon if kind == "jsd" else wasserstein
    halves = [items(half) for half in _halves(_of_class(theirs, outcome))]
    yield Distance(
        name=name,
        outcome=outcome,
        kind=kind,
        value=measured(here, there),
        halves=measured(*halves) if all(halves) else None,
        n=len(here),
        n_reference=len(there),
    )


def _of_class(views: Sequence[View], outcome: str) -> list[View]:
    return [view for view in views if outcome in ("all", view.outcome_class)]


def _halves(views: Sequence[View]) -> tuple[list[View], list[View]]:
    halves: tuple[list[View], list[View]] = ([], [])
    for view in views:
        halves[derive_seed("half", view.task) % 2].append(view)
    return halves


def by_task(views: Iterable[View]) -> Mapping[str, list[View]]:
    """Dialogues by task, in the order of the corpus."""
    found: defaultdict[str, list[View]] = defaultdict(list)
    for view in views:
        found[view.task].append(view)
    return found
