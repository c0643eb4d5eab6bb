"""How much the reward depends on who plays the user: metric 26.

Only tasks that several users played count, so that no difference of tasks is taken for one of users.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from statistics import fmean, stdev
from typing import NamedTuple

from muarl.measure.figure import Figure
from muarl.measure.view import View


class Played(NamedTuple):
    """One scored dialogue."""

    policy: str
    user: str
    reward: float


def _items(views: Sequence[View]) -> list[Played]:
    """Dialogues on one task, where several users played it."""
    found = [
        Played(t.policy, f"{t.user}/{t.persona}", t.reward)
        for t in (view.transcript for view in views)
        if t.reward is not None
    ]
    return found if len({played.user for played in found}) > 1 else []


def _means(items: Sequence[Played]) -> dict[str, dict[str, float]]:
    """Policy to user to mean reward."""
    rewards: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for policy, user, reward in items:
        rewards[policy][user].append(reward)
    return {p: {u: fmean(r) for u, r in users.items()} for p, users in rewards.items()}


def reward_range(items: Sequence[Played]) -> float | None:
    """Highest mean reward of a user less the lowest, mean over policies."""
    spans = [max(u.values()) - min(u.values()) for u in _means(items).values() if len(u) > 1]
    return fmean(spans) if spans else None


def reward_sd(items: Sequence[Played]) -> float | None:
    """Standard deviation of users' mean rewards, mean over policies."""
    spreads = [stdev(users.values()) for users in _means(items).values() if len(users) > 1]
    return fmean(spreads) if spreads else None


def rank_stability(items: Sequence[Played]) -> float | None:
    """Mean Kendall tau-a of two users' orders of the policies; None of one policy or one user."""
    means = _means(items)
    users = sorted({user for of_policy in means.values() for user in of_policy})
    taus = []
    for one, other in combinations(users, 2):
        both = [(m[one], m[other]) for m in means.values() if one in m and other in m]
        signs = [_sign(a[0] - b[0]) * _sign(a[1] - b[1]) for a, b in combinations(both, 2)]
        if signs:
            taus.append(fmean(signs))
    return fmean(taus) if taus else None


def _sign(x: float) -> int:
    return (x > 0) - (x < 0)


FIGURES = (
    Figure(
        name="reward_range",
        number=26,
        says="highest mean reward under a user less the lowest, on tasks that several played",
        source="UserProxyBench (0.152 from the user alone)",
        unit="reward",
        better="compare",
        items=_items,
        statistic=reward_range,
    ),
    Figure(
        name="reward_sd",
        number=26,
        says="standard deviation of the users' mean rewards, on the same tasks",
        source="Lost in Simulation",
        unit="reward",
        better="compare",
        items=_items,
        statistic=reward_sd,
    ),
    Figure(
        name="rank_stability",
        number=26,
        says="mean Kendall tau of the policies' order under two users; 1: all users rank them alike",
        source="UserProxyBench",
        unit="tau",
        better="higher",
        items=_items,
        statistic=rank_stability,
    ),
)
