"""Collapse, seen while it happens: pure state machines, fed once an iteration.

A monitor fires when its figure has been beyond its threshold so many iterations in a row, says why, and
fires again only after the figure was back. Reward cannot see any of this: under one frozen simulator it
rises while the user, the groups and the policy narrow (SCOPE, 2608.12253, whose numbers the thresholds
follow: flat groups 60 to 85 %, entropy 1.9 to 0.4 nats, all-fail groups to 70 %).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from muarl.measure.catalogue import CATALOGUE
from muarl.measure.reference import by_task
from muarl.measure.table import views_of
from muarl.measure.transcript import Transcript

PATIENCE = 3
"""Iterations in a row; one alone is chance: an iteration has some tens of groups."""


class Rule(msgspec.Struct, frozen=True):
    """When a monitor fires.

    Attributes:
        figure: Which figure of the catalogue it watches.
        side: Fires above or below the threshold.
        threshold: In the figure's unit; of a `relative` rule, a share of the figure's first value.
        means: What it is a sign of.
        relative: Whether the threshold is taken from the first value.
        of: Whom it tells of: users alone, or groups, in which tasks, users and the policy come together.
    """

    figure: str
    side: Literal["above", "below"]
    threshold: float
    means: str
    relative: bool = False
    of: Literal["users", "groups"] = "users"


RULES: tuple[Rule, ...] = (
    Rule("repeats_text", "above", 0.9, "the user says the same words again at the same prefix"),
    Rule("repeats_act", "above", 0.98, "the user does the same thing again at the same prefix"),
    Rule(
        "act_entropy", "below", 0.5, "what the user does has become half as various", relative=True
    ),
    Rule(
        "flat_groups",
        "above",
        0.75,
        "most groups earn all the same, and teach nothing: tasks and users are too hard or too easy for the "
        "policy, or its draws too alike",
        of="groups",
    ),
    Rule(
        "all_fail_groups",
        "above",
        0.6,
        "most groups fail altogether: the task, or the user, is too hard for the policy",
        of="groups",
    ),
    Rule(
        "all_pass_groups",
        "above",
        0.75,
        "most groups pass altogether: the task, or the user, is too easy for the policy",
        of="groups",
    ),
    Rule("user_variance_share", "below", 0.02, "who the user is no longer matters to the reward"),
    Rule(
        "user_variance_share", "above", 0.8, "the reward tells users apart, not what the policy did"
    ),
)
"""What a run is watched for."""


class Alarm(msgspec.Struct, frozen=True):
    """A monitor that fired.

    Attributes:
        figure: What it watched.
        at: The iteration.
        value: The figure then.
        threshold: What it was beyond.
        reason: In words.
        of: Whom it tells of, as of `Rule`.
    """

    figure: str
    at: int
    value: float
    threshold: float
    reason: str
    of: Literal["users", "groups"] = "users"

    def __str__(self) -> str:
        return f"iteration {self.at}: {self.reason}"


class Monitor:
    """Watches one figure by one rule."""

    def __init__(self, rule: Rule, patience: int = PATIENCE) -> None:
        self._rule = rule
        self._patience = patience
        self._threshold = None if rule.relative else rule.threshold
        self._beyond = 0

    def observe(self, at: int, value: float | None) -> Alarm | None:
        """Take the figure of one iteration; None where there is none, which changes nothing."""
        if value is None:
            return None
        rule = self._rule
        if self._threshold is None:
            self._threshold = rule.threshold * value
        is_beyond = value > self._threshold if rule.side == "above" else value < self._threshold
        self._beyond = self._beyond + 1 if is_beyond else 0
        if self._beyond != self._patience:
            return None
        return Alarm(
            figure=rule.figure,
            at=at,
            value=value,
            threshold=self._threshold,
            reason=f"{rule.figure} is {value:.3g}, {rule.side} {self._threshold:.3g} for "
            f"{self._patience} iterations: {rule.means}",
            of=rule.of,
        )


class Monitors:
    """Watches a run.

    Args:
        rules: What for.
        patience: Iterations in a row that it takes.
    """

    def __init__(self, rules: Iterable[Rule] = RULES, patience: int = PATIENCE) -> None:
        self._monitors = [(rule.figure, Monitor(rule, patience)) for rule in rules]

    def observe(self, at: int, figures: Mapping[str, float | None]) -> list[Alarm]:
        """Take the figures of one iteration; what fires now."""
        found = [monitor.observe(at, figures.get(name)) for name, monitor in self._monitors]
        return [alarm for alarm in found if alarm is not None]


def watched(transcripts: Iterable[Transcript]) -> dict[str, float | None]:
    """Figures that the rules watch, of one iteration; without intervals, so that it costs little."""
    tasks = by_task(views_of(transcripts))
    found: dict[str, float | None] = {}
    for name in dict.fromkeys(rule.figure for rule in RULES):
        figure = CATALOGUE[name]
        found[name] = figure.value([x for views in tasks.values() for x in figure.items(views)])
    return found


def watch(iterations: Sequence[tuple[int, Mapping[str, float | None]]]) -> list[Alarm]:
    """What would have fired over a run that is there."""
    monitors = Monitors()
    return [alarm for at, figures in iterations for alarm in monitors.observe(at, figures)]
