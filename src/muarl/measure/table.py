"""All figures of a corpus, with intervals that draw whole tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from muarl.evaluate.statistics import Interval, bootstrap_mean, mean_share
from muarl.measure.catalogue import CATALOGUE
from muarl.measure.figure import Figure
from muarl.measure.intervals import bootstrap
from muarl.measure.reference import by_task
from muarl.measure.transcript import Transcript
from muarl.measure.view import View
from muarl.record import Outcome

RESAMPLES = 400
"""Draws behind each interval: its 2.5 % bound rests on the ten smallest. There are 80 figures."""


class Measured(msgspec.Struct, frozen=True):
    """What a corpus says about its users.

    Attributes:
        dialogues: Those that are measured; faults are not.
        tasks: What they are about.
        faults: Dialogues that ended by no doing of either side.
        user_faults: Those of them in which the simulator broke its contract.
        reward: Mean reward of those that were scored: what a user is not to be judged by.
        figures: Figure to estimate; figures that nothing could be said about are left out.
    """

    dialogues: int
    tasks: int
    faults: int
    user_faults: int
    reward: Interval
    figures: dict[str, Interval]

    @property
    def fault_rate(self) -> float | None:
        """Faults over all dialogues (metric 31)."""
        total = self.dialogues + self.faults
        return self.faults / total if total else None


def views_of(transcripts: Iterable[Transcript]) -> list[View]:
    """Read a corpus; faults are left out."""
    return [view for view in map(View, transcripts) if not view.is_fault]


def measure(
    transcripts: Iterable[Transcript],
    *,
    views: Sequence[View] | None = None,
    seed: int = 0,
    figures: Mapping[str, Figure] = CATALOGUE,
    resamples: int = RESAMPLES,
) -> Measured:
    """Every figure of a corpus.

    Args:
        transcripts: The corpus.
        views: Its views, where they were made already.
        seed: Draws the bootstraps.
        figures: Which.
        resamples: Draws behind each interval.
    """
    transcripts = list(transcripts)
    views = views_of(transcripts) if views is None else views
    tasks = by_task(views)
    found = {name: _estimate(figure, tasks, seed, resamples) for name, figure in figures.items()}
    return Measured(
        dialogues=len(views),
        tasks=len(tasks),
        faults=len(transcripts) - len(views),
        user_faults=sum(t.outcome == Outcome.USER_FAULT for t in transcripts),
        reward=mean_share(
            {
                task: [v.transcript.reward for v in on_it if v.transcript.reward is not None]
                for task, on_it in tasks.items()
            }
        ),
        figures={name: interval for name, interval in found.items() if interval.value is not None},
    )


def _estimate(
    figure: Figure, tasks: Mapping[str, Sequence[View]], seed: int, resamples: int
) -> Interval:
    items: dict[str, list[Any]] = {task: list(figure.items(views)) for task, views in tasks.items()}
    items = {task: of_task for task, of_task in items.items() if of_task}
    if figure.statistic is not None:
        return bootstrap(figure.statistic, items, seed=seed, resamples=resamples)
    if figure.unit == "share":
        return mean_share(items)
    return bootstrap_mean(items, seed=seed, resamples=resamples)
