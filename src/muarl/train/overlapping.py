"""What a run trains on and must not: refused, or accepted for a reason that stands in its metrics (L10)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from muarl.data.item_sets import items_of
from muarl.domain import Domain
from muarl.errors import SetupError
from muarl.evaluate.held_out import trained_and_evaluated, training_splits
from muarl.overlap import Overlap, between, of_task
from muarl.spec import Located, RunSpec
from muarl.spec.finding import Finding

KIND = "overlap"
"""Of the lines in a run's metrics: `against`, `shared` of `tasks` looked at, `exact`, `pairs` (the first),
`accepted`."""

_NAMED = 5
_KEPT = 1000
"""Pairs that the metrics hold of one set."""


def overlap_findings(run: Located[RunSpec], domain: Domain) -> Iterator[Finding]:
    """Sets that are to stay unseen, and that the training tasks overlap with."""
    if run.spec.overlap.accepted is not None:
        return
    for name, found in _against(run, domain):
        if found.pairs:
            named = ", ".join(f"{pair.item!r} like {pair.like!r}" for pair in found.pairs[:_NAMED])
            message = (
                f"what is trained on overlaps with {name!r}: of its items {found} such as {named}; "
                "train on other tasks, or say under `overlap.accepted` why this is meant"
            )
            yield Finding(("overlap", "against", name), message)


def overlap_lines(run: Located[RunSpec], domain: Domain) -> Iterator[dict[str, Any]]:
    """What a run that accepts an overlap has to say of it, a line for each set."""
    reason = run.spec.overlap.accepted
    if reason is None:
        return
    evaluated = len(domain.tasks(run.spec.eval.split)[: run.spec.eval.episodes])
    twins = {pair.second.id: pair for pair in trained_and_evaluated(domain, run.spec)}
    yield {
        "against": f"split {run.spec.eval.split}, which is evaluated",
        "shared": len(twins),
        "tasks": evaluated,
        "exact": sum(pair.exact for pair in twins.values()),
        "pairs": [[name, pair.first.id] for name, pair in twins.items()][:_KEPT],
        "accepted": reason,
    }
    for name, found in _against(run, domain):
        yield {
            "against": name,
            "shared": len(found.pairs),
            "tasks": found.second,
            "exact": found.counts["exact"],
            "pairs": [[pair.item, pair.like] for pair in found.pairs[:_KEPT]],
            "accepted": reason,
        }


def _against(run: Located[RunSpec], domain: Domain) -> Iterator[tuple[str, Overlap]]:
    sets = run.spec.overlap.against
    if not sets:
        return
    splits = sorted(training_splits(run.spec))
    practised = [of_task(task) for split in splits for task in domain.tasks(split)]
    for name, path in sets.items():
        try:
            unseen = items_of(str(run.resolve(path)))
        except SetupError as error:
            run.refuse([Finding(("overlap", "against", name), str(error))])
            raise
        yield name, between(practised, unseen)
