"""From the episodes of a grid, policies x users, to what is said of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec import structs

from muarl.evaluate.comparison import Comparison, compared
from muarl.evaluate.paired import FourCells, GainKept, Verdict, gain_kept, overall
from muarl.evaluate.pass_k import Trials, ks_of, pass_at, pass_hat
from muarl.evaluate.statistics import Interval
from muarl.evaluate.summary import EvalSummary, succeeded, summarise
from muarl.record import Episode
from muarl.spec.grid import GridSpec


class Played(NamedTuple):
    """What is kept of the episodes of one policy with one user.

    Attributes:
        trials: Task to whether each scored dialogue succeeded; faults are in none (law L2).
        summary: Of the same episodes, faults counted.
    """

    trials: Trials
    summary: EvalSummary


class Cell(msgspec.Struct, frozen=True):
    """One policy with one user.

    Attributes:
        policy: Its name in the grid.
        user: Hers.
        success: Share of dialogues that earned the whole reward.
        pass_hat: k to pass^k, the chance that k dialogues on a task all succeed. Its `n` counts tasks
            with k scored trials.
        pass_at: k to pass@k, the chance that one of k dialogues on a task succeeds, likewise.
        summary: The rest of what an evaluation says.
    """

    policy: str
    user: str
    success: Interval
    pass_hat: dict[int, Interval]
    pass_at: dict[int, Interval]
    summary: EvalSummary


class Difference(Comparison, frozen=True, kw_only=True):
    """Success of one minus that of another on the same tasks, all else the same.

    Attributes, beside those of `Comparison`:
        of: Name of the policy or user.
        minus: Whom it is compared with.
        beside: The user with whom two policies, or the policy with whom two users, are compared.
    """

    of: str
    minus: str
    beside: str


class GridFound(msgspec.Struct, frozen=True):
    """What a grid found.

    Attributes:
        cells: Every policy with every user.
        policies: Each other policy minus the first, with every user.
        users: Each other user minus the first, with every policy.
        kept: Each other user to what of the gain is kept with her; empty where no gain is asked for.
        verdict: On all of them; None likewise.
    """

    cells: list[Cell]
    policies: list[Difference]
    users: list[Difference]
    kept: dict[str, GainKept]
    verdict: Verdict | None


def played(episodes: Sequence[Episode], *, seed: int = 0) -> Played:
    """Keep of episodes what the grid needs."""
    trials: defaultdict[str, list[bool]] = defaultdict(list)
    for episode in episodes:
        if not episode.outcome.is_fault and episode.reward is not None:
            trials[episode.key.task_id].append(succeeded(episode))
    return Played(dict(trials), summarise(episodes, seed=seed))


def compare(grid: GridSpec, found: Mapping[tuple[str, str], Played]) -> GridFound:
    """Everything that is said of a grid.

    Args:
        grid: Who was compared with whom.
        found: Policy and user to what they did.
    """
    trials = {names: cell.trials for names, cell in found.items()}
    seed, first_policy, first_user = grid.seed, grid.first_policy, grid.first_user
    others = [user for user in grid.users if user != first_user]
    kept: dict[str, GainKept] = {}
    if grid.gain is not None:
        trained, cold = grid.gain.trained, grid.gain.cold
        for user in others:
            four = FourCells(
                *(trials[trained, user], trials[cold, user]),
                *(trials[trained, first_user], trials[cold, first_user]),
            )
            kept[user] = gain_kept(four, least=grid.gain.least, seed=seed)

    def difference(
        of: str, minus: str, beside: str, one: tuple[str, str], other: tuple[str, str]
    ) -> Difference:
        found = compared(trials[one], trials[other], seed=seed)
        return Difference(**structs.asdict(found), of=of, minus=minus, beside=beside)

    return GridFound(
        cells=[
            Cell(
                policy=policy,
                user=user,
                success=cell.summary.success,
                pass_hat={k: pass_hat(cell.trials, k) for k in ks_of(grid.trials)},
                pass_at={k: pass_at(cell.trials, k) for k in ks_of(grid.trials)},
                summary=cell.summary,
            )
            for (policy, user), cell in found.items()
        ],
        policies=[
            difference(policy, first_policy, user, (policy, user), (first_policy, user))
            for policy in grid.policies
            if policy != first_policy
            for user in grid.users
        ],
        users=[
            difference(user, first_user, policy, (policy, user), (policy, first_user))
            for policy in grid.policies
            for user in others
        ],
        kept=kept,
        verdict=overall([one.verdict for one in kept.values()]) if grid.gain else None,
    )
