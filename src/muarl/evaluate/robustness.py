"""What perturbations cost: success under each set of them, beside success without."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from muarl.evaluate.comparison import Comparison, compared_together
from muarl.evaluate.statistics import Interval, success_rate
from muarl.evaluate.summary import succeeded
from muarl.record import Episode

Trials = dict[str, list[bool]]


class Robustness(msgspec.Struct, frozen=True):
    """What one set of perturbations costs.

    Attributes:
        name: Of the set.
        n: Episodes under it that were scored.
        faults: Episodes under it that were not (law L2).
        success: Share of those scored that earned the whole reward.
        clean: The same of the episodes without perturbations.
        difference: `success - clean`, on the tasks that were scored in both; tested together with those of
            the other sets.
        acted: Kind of perturbation to success where it acted. It acts more often in long dialogues,
            which are the harder ones, so this is where to look, not what a kind costs.
    """

    name: str
    n: int
    faults: int
    success: Interval
    clean: Interval
    difference: Comparison
    acted: dict[str, Interval]


def robustness(
    clean: Iterable[Episode], under: Mapping[str, Sequence[Episode]], *, seed: int = 0
) -> list[Robustness]:
    """Compare the same tasks, played with perturbations and without.

    Args:
        clean: Episodes without.
        under: Name of a set of perturbations to the episodes under it.
        seed: As of `compared_together`.
    """
    without = _trials(clean)
    trials = {name: _trials(episodes) for name, episodes in under.items()}
    compared = compared_together([(each, without) for each in trials.values()], seed=seed)
    return [
        _robustness(name, under[name], trials[name], without, difference)
        for name, difference in zip(trials, compared, strict=True)
    ]


def _robustness(
    name: str, episodes: Sequence[Episode], under: Trials, without: Trials, difference: Comparison
) -> Robustness:
    kinds = sorted({kind for episode in episodes for kind in episode.perturbations()})
    scored = sum(map(len, under.values()))
    return Robustness(
        name=name,
        n=scored,
        faults=len(episodes) - scored,
        success=success_rate(under),
        clean=success_rate(without),
        difference=difference,
        acted={
            kind: success_rate(_trials(e for e in episodes if kind in e.perturbations()))
            for kind in kinds
        },
    )


def in_lines(found: Sequence[Robustness]) -> Iterator[str]:
    """A table of what sets cost, and of success where each kind acted; nothing for no sets."""
    if not found:
        return
    width = max(len("perturbed by"), *(len(each.name) for each in found))
    yield f"{'perturbed by':<{width}}  {'success':<20}  {'without':<20}  difference"
    for each in found:
        yield (
            f"{each.name:<{width}}  {each.success!s:<20}  {each.clean!s:<20}  "
            f"{each.difference.success}  ({each.n} dialogues, {each.faults} faults)  "
            f"{each.difference.found}: {each.difference.why}"
        )
        for kind, share in each.acted.items():
            yield f"  where {kind} acted: {share} ({share.n} dialogues)"


def _trials(episodes: Iterable[Episode]) -> Trials:
    found: defaultdict[str, list[bool]] = defaultdict(list)
    for episode in episodes:
        if not episode.outcome.is_fault and episode.reward is not None:
            found[episode.key.task_id].append(succeeded(episode))
    return dict(found)
