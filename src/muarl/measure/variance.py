"""How much of the reward's variance is the user's and how much the policy's: metric 23.

Within a task, by the law of total variance over the user's draw u (SCOPE, 2608.12253, Eq. 6):

    Var(R) = Var_u(E[R | u])  +  E_u[Var(R | u)]
             the user's          the policy's

Both are variance components of random-effects designs, estimated by equating mean squares with what
they are expected to be (the ANOVA estimators of Searle, Casella and McCulloch 1992, Variance
Components, sections 3.6 and 4.3), pooled over tasks:

    nested    policy draws of their own under each draw of the user, any number of them:
              user = (MSB - MSW) / n0, policy = MSW, n0 = sum(N - sum n_u^2 / N) / sum df_between
    crossed   the same I draws of the user against the same J of the policy (`policy_draw`), once each:
              user = (MSU - MSE) / J, policy = (MSP - MSE) / I + MSE

A negative estimate is 0. Read as nested, a crossed design with a policy effect would understate the user.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from muarl.measure.figure import Figure
from muarl.measure.view import View


class Cell(NamedTuple):
    """One dialogue of a design."""

    user: str
    policy: str
    reward: float


class Squares(NamedTuple):
    """Sums of squares of the tasks of one design; they add up.

    Attributes:
        user: Between the user's draws, and its degrees of freedom.
        user_df: See above.
        policy: Between the policy's draws; 0 where they are nested.
        policy_df: See above.
        rest: What remains.
        rest_df: See above.
        per_user: Dialogues of each draw of the user (J, or n0), times `user_df`.
        per_policy: Dialogues of each draw of the policy (I), times `policy_df`.
    """

    user: float = 0.0
    user_df: int = 0
    policy: float = 0.0
    policy_df: int = 0
    rest: float = 0.0
    rest_df: int = 0
    per_user: float = 0.0
    per_policy: float = 0.0


class Split(NamedTuple):
    """Components of the reward's variance within a task."""

    user: float
    policy: float

    @property
    def user_share(self) -> float | None:
        """The user's part; None where nothing varies."""
        total = self.user + self.policy
        return self.user / total if total > 0 else None


def squares(cells: Iterable[Cell]) -> Squares | None:
    """Sums of squares of one task; None where they say nothing about the two parts.

    Crossed where each draw of the user met each draw of the policy exactly once; else nested.

    Example:
        >>> squares([Cell("a", "", 1), Cell("a", "", 1), Cell("b", "", 0), Cell("b", "", 0)]).user
        1.0
    """
    by_user: defaultdict[str, dict[str, list[float]]] = defaultdict(dict)
    for user, policy, reward in cells:
        by_user[user].setdefault(policy, []).append(reward)
    policies = set().union(*by_user.values())
    crossed = len(policies) > 1 and all(
        rewards.keys() == policies and all(len(r) == 1 for r in rewards.values())
        for rewards in by_user.values()
    )
    if len(by_user) < 2:
        return None
    if crossed:
        table = {u: {p: r[0] for p, r in rewards.items()} for u, rewards in by_user.items()}
        return _crossed(table)
    found = _nested([[r for rs in rewards.values() for r in rs] for rewards in by_user.values()])
    return found if found.rest_df else None


def _nested(rewards: Sequence[Sequence[float]]) -> Squares:
    n = sum(map(len, rewards))
    grand = fmean(r for of_user in rewards for r in of_user)
    means = [fmean(of_user) for of_user in rewards]
    return Squares(
        user=math.fsum(len(r) * (m - grand) ** 2 for r, m in zip(rewards, means, strict=True)),
        user_df=len(rewards) - 1,
        rest=math.fsum((r - m) ** 2 for rs, m in zip(rewards, means, strict=True) for r in rs),
        rest_df=n - len(rewards),
        per_user=n - sum(len(r) ** 2 for r in rewards) / n,
    )


def _crossed(table: Mapping[str, Mapping[str, float]]) -> Squares:
    users, policies = list(table), list(next(iter(table.values())))
    grand = fmean(r for row in table.values() for r in row.values())
    by_user = {u: fmean(table[u].values()) for u in users}
    by_policy = {p: fmean(table[u][p] for u in users) for p in policies}
    user_df, policy_df = len(users) - 1, len(policies) - 1
    return Squares(
        user=len(policies) * math.fsum((m - grand) ** 2 for m in by_user.values()),
        user_df=user_df,
        policy=len(users) * math.fsum((m - grand) ** 2 for m in by_policy.values()),
        policy_df=policy_df,
        rest=math.fsum(
            (table[u][p] - by_user[u] - by_policy[p] + grand) ** 2 for u in users for p in policies
        ),
        rest_df=user_df * policy_df,
        per_user=float(len(policies) * user_df),
        per_policy=float(len(users) * policy_df),
    )


def split(tasks: Iterable[Squares]) -> Split | None:
    """Components from the sums of squares of tasks of one kind of design; None of none.

    Where some tasks are crossed and others nested, the nested ones are left out.
    """
    tasks = list(tasks)
    if any(t.policy_df for t in tasks):
        tasks = [t for t in tasks if t.policy_df]
    if not tasks:
        return None
    t = Squares(*map(sum, zip(*tasks, strict=True)))
    rest = t.rest / t.rest_df
    user = max(0.0, (t.user / t.user_df - rest) / (t.per_user / t.user_df))
    if not t.policy_df:
        return Split(user, rest)
    policy = max(0.0, (t.policy / t.policy_df - rest) / (t.per_policy / t.policy_df))
    return Split(user, policy + rest)


def cells(views: Iterable[View]) -> list[Cell]:
    """Dialogues as cells: a draw of the user is what the corpus says, else her persona and user."""
    return [
        Cell(t.user_draw or f"{t.user}/{t.persona}", t.policy_draw, t.reward)
        for t in (view.transcript for view in views)
        if t.reward is not None
    ]


def _task_squares(views: Sequence[View]) -> list[Squares]:
    found = squares(cells(views))
    return [] if found is None else [found]


def user_share(tasks: Sequence[Squares]) -> float | None:
    """The user's share of the reward's variance within tasks."""
    found = split(tasks)
    return None if found is None else found.user_share


FIGURES = (
    Figure(
        name="user_variance_share",
        number=23,
        says="the user's part of the reward's variance within a task, between her draws (`user_draw`, "
        "else persona), over that and the policy's part, within them",
        source="SCOPE, Eq. 6; Searle, Casella and McCulloch (1992)",
        unit="share",
        better="compare",
        items=_task_squares,
        statistic=user_share,
    ),
    Figure(
        name="user_variance",
        number=23,
        says="the user's part itself",
        source="SCOPE, Eq. 6",
        unit="reward²",
        better="compare",
        items=_task_squares,
        statistic=lambda tasks: None if (found := split(tasks)) is None else found.user,
    ),
    Figure(
        name="policy_variance",
        number=23,
        says="the policy's part itself",
        source="SCOPE, Eq. 6",
        unit="reward²",
        better="compare",
        items=_task_squares,
        statistic=lambda tasks: None if (found := split(tasks)) is None else found.policy,
    ),
)
