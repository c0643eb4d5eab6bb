"""From episodes to the figures of an evaluation."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from muarl.evaluate.failures import failure_of
from muarl.evaluate.pass_k import Trials, ks_of, pass_at, pass_hat
from muarl.evaluate.removal import Removal, RemovalTally
from muarl.evaluate.statistics import (
    Interval,
    bootstrap_mean,
    mean,
    mean_share,
    success_rate,
    too_few,
)
from muarl.record import Episode

CONFIRMED = "confirmed"
"""Name of the metric that says which share of an episode's writes the user confirmed."""

_METRICS = 20
"""Names of metrics that are averaged: those of the most episodes. Where tasks have metrics of their own,
there may be as many names as tasks."""

_FULL_REWARD = 1 - 1e-6  # a reward may be a mean of float scores


def succeeded(episode: Episode) -> bool:
    """The episode earned the whole reward. A fault never did, and never failed either."""
    return episode.reward is not None and episode.reward >= _FULL_REWARD


class Row(msgspec.Struct, frozen=True):
    """What an evaluation found of one domain of several; attributes as of `EvalSummary`."""

    success: Interval
    pass_hat: dict[int, Interval]
    metrics: dict[str, Interval]
    pass_at: dict[int, Interval] = {}

    def __str__(self) -> str:
        most = max(self.pass_hat, default=0)
        passed = [f"pass^{most} {self.pass_hat[most]}"] if most else []
        return "  ".join(
            [str(self.success), *passed, *(f"{n} {v}" for n, v in self.metrics.items())]
        )


class EvalSummary(msgspec.Struct, frozen=True):
    """What an evaluation found.

    Attributes:
        n: Episodes that were scored: the denominator of everything below.
        faults: Episodes that ended by no doing of the policy; in no denominator (law L2).
        success: Share that earned the whole reward.
        reward: Mean reward; differs from `success` where predicates give parts of it.
        by_persona: Success per persona.
        by_user: Success per user of a pool; empty where the run has one user.
        by_row: Row of each domain of a suite, or per what it calls them; empty for one domain.
        removed: What user faults took out of all this.
        turns: Mean policy messages per episode.
        sampled_tokens: Mean sampled tokens per episode.
        tool_calls: Tool to mean calls per episode.
        tool_errors: Share of all calls that were answered with an error; None without calls.
        confirmed: Mean share of writes the user confirmed, over episodes that wrote.
        outcomes: Outcome to episodes, faults included.
        pass_hat: k to pass^k, the chance that k dialogues on a task all succeed; empty where no task
            was tried more than once. Tasks with fewer than k scored dialogues are left out.
        pass_at: k to pass@k, the chance that one of k dialogues on a task succeeds, likewise.
        metrics: Metric to its mean over the episodes that it applies to.
        caveats: What scores leave out, to how many of them do.
        failures: Kind of failure to episodes, faults included; see `muarl.evaluate.failures`.
        too_few: Why so few tasks cannot support the interval of success; "" where they can.
    """

    n: int
    faults: int
    success: Interval
    reward: Interval
    by_persona: dict[str, Interval]
    turns: Interval
    sampled_tokens: Interval
    tool_calls: dict[str, float]
    tool_errors: float | None
    confirmed: Interval
    outcomes: dict[str, int]
    by_user: dict[str, Interval] = {}
    by_row: dict[str, Row] = {}
    removed: Removal = Removal()
    pass_hat: dict[int, Interval] = {}
    pass_at: dict[int, Interval] = {}
    metrics: dict[str, Interval] = {}
    caveats: dict[str, int] = {}
    failures: dict[str, int] = {}
    too_few: str = ""


def summarise(
    episodes: Iterable[Episode], *, seed: int = 0, row_of: Callable[[str], str] = lambda _task: ""
) -> EvalSummary:
    """Summarise one evaluation. Episodes are looked at one by one.

    Args:
        episodes: Of the evaluation.
        seed: Draws the bootstraps of turns and tokens.
        row_of: Under which name a task is summed up besides, by its id; "" for under none.

    Example:
        Ten episodes, one of them an infrastructure fault, six with reward 1: `n` is 9, `faults`
        1, and `success.value` 6 / 9.
    """
    outcomes: Counter[str] = Counter()
    scored: list[_Figures] = []
    calls: Counter[str] = Counter()
    errors = 0
    removal = RemovalTally()
    failures: Counter[str] = Counter()
    for episode in episodes:
        removal.add(episode)
        outcomes[episode.outcome.value] += 1
        if (kind := failure_of(episode)) is not None:
            failures[kind] += 1
        if episode.outcome.is_fault or episode.reward is None:
            continue
        scored.append(_figures(episode))
        for name, _, is_error in episode.calls():
            calls[name] += 1
            errors += is_error
    n = len(scored)
    return EvalSummary(
        n=n,
        faults=outcomes.total() - n,
        success=_success(scored),
        reward=_mean((e, e.reward) for e in scored),
        by_persona={
            persona: _success([e for e in scored if e.persona == persona])
            for persona in sorted({e.persona for e in scored})
        },
        turns=_amount(((e, e.turns) for e in scored), seed),
        sampled_tokens=_amount(((e, e.sampled_tokens) for e in scored), seed),
        tool_calls={name: calls[name] / n for name in sorted(calls)},
        tool_errors=errors / calls.total() if calls else None,
        confirmed=_mean((e, score) for e in scored for score in e.confirmed),
        outcomes=dict(sorted(outcomes.items())),
        by_user={
            user: _success([e for e in scored if e.user == user])
            for user in sorted({e.user for e in scored if e.user})
        },
        by_row={
            row: Row(
                _success(of_row),
                _pass_k(pass_hat, of_row),
                _metrics(of_row),
                _pass_k(pass_at, of_row),
            )
            for row, of_row in sorted(_by_row(scored, row_of).items())
        },
        removed=removal.found(),
        pass_hat=_pass_k(pass_hat, scored),
        pass_at=_pass_k(pass_at, scored),
        metrics=_metrics(scored),
        caveats=dict(sorted(Counter(c for e in scored for c in e.caveats).items())),
        failures=dict(failures.most_common()),
        too_few=too_few(_trials(scored)),
    )


class _Figures(NamedTuple):
    """What is kept of one scored episode, so that thousands can be gone through."""

    task_id: str
    persona: str
    user: str
    succeeded: bool
    reward: float
    turns: int
    sampled_tokens: int
    confirmed: tuple[float | None, ...]
    metrics: tuple[tuple[str, float], ...]
    caveats: tuple[str, ...]


def _by_row(scored: Iterable[_Figures], row_of: Callable[[str], str]) -> dict[str, list[_Figures]]:
    rows: defaultdict[str, list[_Figures]] = defaultdict(list)
    for episode in scored:
        if row := row_of(episode.task_id):
            rows[row].append(episode)
    return rows


def _figures(episode: Episode) -> _Figures:
    assert episode.reward is not None
    return _Figures(
        # Ids and personas come out of a decoder, one text for each episode; there are few of them.
        sys.intern(episode.key.task_id),
        sys.intern(episode.persona),
        sys.intern(episode.user),
        succeeded(episode),
        episode.reward,
        len(episode.turns),
        episode.num_sampled,
        tuple(m.score for m in episode.metrics if m.name == CONFIRMED),
        tuple(
            (sys.intern(m.name), m.score)
            for m in episode.metrics
            if m.name != CONFIRMED and m.score is not None
        ),
        tuple({sys.intern(r.caveat): None for r in episode.rewards if r.caveat}),
    )


def _success(episodes: list[_Figures]) -> Interval:
    return success_rate(_trials(episodes))


def _trials(episodes: list[_Figures]) -> Trials:
    by_task: defaultdict[str, list[bool]] = defaultdict(list)
    for episode in episodes:
        by_task[episode.task_id].append(episode.succeeded)
    return by_task


def _pass_k(of: Callable[[Trials, int], Interval], episodes: list[_Figures]) -> dict[int, Interval]:
    trials = _trials(episodes)
    most = max(map(len, trials.values()), default=1)
    return {k: of(trials, k) for k in ks_of(most) if k > 1}


def _metrics(episodes: list[_Figures]) -> dict[str, Interval]:
    frequent = Counter(name for episode in episodes for name, _ in episode.metrics)
    names = sorted(name for name, _ in frequent.most_common(_METRICS))
    return {
        name: _mean((e, score) for e in episodes for n, score in e.metrics if n == name)
        for name in names
    }


def _mean(values: Iterable[tuple[_Figures, float | None]]) -> Interval:
    """Mean of shares over the episodes they exist for."""
    return mean_share(_by_task(values))


def _amount(values: Iterable[tuple[_Figures, float | None]], seed: int) -> Interval:
    """Mean of what has no upper end, likewise."""
    by_task = _by_task(values)
    if all(len(of_task) == 1 for of_task in by_task.values()):
        return mean([value for (value,) in by_task.values()])
    return bootstrap_mean(by_task, seed=seed)


def _by_task(values: Iterable[tuple[_Figures, float | None]]) -> dict[str, list[float]]:
    by_task: defaultdict[str, list[float]] = defaultdict(list)
    for episode, value in values:
        if value is not None:
            by_task[episode.task_id].append(value)
    return by_task
