"""From the episodes of a grid, policies x users, to what is said of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from muarl.evaluate.comparison import Comparison, compared_together
from muarl.evaluate.contamination import Contamination
from muarl.evaluate.floor import above_floor, highest
from muarl.evaluate.paired import FourCells, GainKept, Verdict, gain_kept, overall
from muarl.evaluate.pass_k import Trials, ks_of, pass_at, pass_hat
from muarl.evaluate.spent import Spent, spent
from muarl.evaluate.statistics import Interval, success_rate
from muarl.evaluate.summary import EvalSummary, succeeded, summarise
from muarl.evaluate.trainings import Trainings, between_trainings, over_trainings
from muarl.record import Episode
from muarl.spec.chat_agent import PriceSpec
from muarl.spec.grid import GridSpec


class Played(NamedTuple):
    """What is kept of the episodes of one policy with one user.

    Attributes:
        trials: Task to whether each scored dialogue succeeded; faults are in none (law L2).
        summary: Of the same episodes, faults counted.
        spent: Tokens and cost, of a model behind an endpoint.
        observed: What was measured as it played.
        by_seed: Seed to success with it.
        apart: Trials with each seed.
    """

    trials: Trials
    summary: EvalSummary
    spent: Spent | None = None
    observed: Mapping[str, Any] = MappingProxyType({})
    by_seed: Mapping[int, Interval] = MappingProxyType({})
    apart: Sequence[Trials] = ()


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
        above_floor: Success above the best policy without skill with this user, as a share of what that
            one leaves (0 at the floor, 1 where all succeeds), by `muarl.evaluate.floor`. None where the
            grid has no such policy, or one that always succeeds.
        floor: What that policy reached, likewise.
        contamination: What of the tasks it was trained on; None where nobody looked.
        spent: Tokens and cost, of a model behind an endpoint.
        observed: What was measured as it played: tokens and messages per second, how long a message took
            (`message_p50_ms`, `message_p99_ms`); with several seeds, as it played with the last.
        by_seed: Seed to success with it; all else is over the dialogues of all seeds.
        trainings: What other trainings would do, as far as several say; None where nothing was trained.
    """

    policy: str
    user: str
    success: Interval
    pass_hat: dict[int, Interval]
    pass_at: dict[int, Interval]
    summary: EvalSummary
    above_floor: Interval | None = None
    floor: Interval | None = None
    contamination: Contamination | None = None
    spent: Spent | None = None
    observed: dict[str, Any] = {}
    by_seed: dict[int, Interval] = {}
    trainings: Trainings | None = None


class Difference(Comparison, frozen=True, kw_only=True):
    """Success of one minus that of another on the same tasks, all else the same.

    Attributes, beside those of `Comparison`:
        of: Name of the policy or user.
        minus: Whom it is compared with.
        beside: The user with whom two policies, or the policy with whom two users, are compared.
        trainings: Of two policies: what other trainings would show, as far as several say; None where
            neither was trained.
    """

    of: str
    minus: str
    beside: str
    trainings: Trainings | None = None


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


def played(
    by_seed: Mapping[int, Sequence[Episode]],
    *,
    seed: int = 0,
    price: PriceSpec | None = None,
    observed: Mapping[str, Any] | None = None,
) -> Played:
    """Keep of episodes what the grid needs.

    Args:
        by_seed: Seed to what was played with it.
        seed: Draws bootstraps.
        price: Of a model behind an endpoint.
        observed: What was measured as it played.
    """
    episodes = [episode for of_seed in by_seed.values() for episode in of_seed]
    apart = {seed: _trials(of_seed) for seed, of_seed in by_seed.items()}
    return Played(
        _trials(episodes),
        summarise(episodes, seed=seed),
        spent(episodes, price),
        observed or {},
        {seed: success_rate(trials) for seed, trials in apart.items()},
        list(apart.values()),
    )


def _trials(episodes: Sequence[Episode]) -> Trials:
    trials: defaultdict[str, list[bool]] = defaultdict(list)
    for episode in episodes:
        if not episode.outcome.is_fault and episode.reward is not None:
            trials[episode.key.task_id].append(succeeded(episode))
    return dict(trials)


def compare(
    grid: GridSpec,
    found: Mapping[tuple[str, str], Played],
    trained_on: Mapping[str, Contamination] | None = None,
) -> GridFound:
    """Everything that is said of a grid.

    Args:
        grid: Who was compared with whom.
        found: Policy and user to what they did.
        trained_on: Policy to what of the tasks it was trained on.
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
    floors = _floors(grid, found)

    def cell(policy: str, user: str) -> Cell:
        of = found[policy, user]
        floor = floors.get(user)
        trained = _trained(grid, policy, of)
        first, *others = of.apart if grid.policies[policy].of_each_seed else [of.trials]
        return Cell(
            policy=policy,
            user=user,
            success=of.summary.success,
            pass_hat={k: pass_hat(first, k, others=others) for k in ks_of(grid.trials)},
            pass_at={k: pass_at(first, k, others=others) for k in ks_of(grid.trials)},
            summary=of.summary,
            above_floor=floor and above_floor(of.summary.success, floor),
            floor=floor,
            contamination=(trained_on or {}).get(policy),
            spent=of.spent,
            observed=dict(of.observed),
            by_seed=dict(of.by_seed),
            trainings=None if trained is None else over_trainings(trained),
        )

    sides = [
        *(
            (policy, first_policy, user, (policy, user), (first_policy, user))
            for policy in grid.policies
            if policy != first_policy
            for user in grid.users
        ),
        *(
            (user, first_user, policy, (policy, user), (policy, first_user))
            for policy in grid.policies
            for user in others
        ),
    ]
    comparisons = compared_together(
        [(trials[one], trials[other]) for *_, one, other in sides], seed=seed
    )
    differences = [
        Difference(
            **structs.asdict(comparison),
            of=of,
            minus=minus,
            beside=beside,
            trainings=_between(grid, found, one, other),
        )
        for comparison, (of, minus, beside, one, other) in zip(comparisons, sides, strict=True)
    ]
    of_policies = (len(grid.policies) - 1) * len(grid.users)
    return GridFound(
        cells=[cell(policy, user) for policy, user in found],
        policies=differences[:of_policies],
        users=differences[of_policies:],
        kept=kept,
        verdict=overall([one.verdict for one in kept.values()]) if grid.gain else None,
    )


def _trained(grid: GridSpec, policy: str, played: Played) -> dict[int, float] | None:
    """Seed of each training to its success; None of what was not trained here."""
    spec = grid.policies[policy]
    if spec.folder() is None:
        return None
    if not spec.of_each_seed:
        value = played.summary.success.value
        return {} if value is None else {grid.seed: value}
    return {seed: share.value for seed, share in played.by_seed.items() if share.value is not None}


def _between(
    grid: GridSpec,
    found: Mapping[tuple[str, str], Played],
    one: tuple[str, str],
    other: tuple[str, str],
) -> Trainings | None:
    """Of two policies with one user; rules stand for themselves with each seed."""
    if one[0] == other[0]:
        return None
    trained = [_trained(grid, side[0], found[side]) for side in (one, other)]
    if trained == [None, None]:
        return None
    first, second = (
        {s: share.value for s, share in found[side].by_seed.items() if share.value is not None}
        if of_side is None
        else of_side
        for side, of_side in zip((one, other), trained, strict=True)
    )
    return between_trainings(first, second)


def _floors(grid: GridSpec, found: Mapping[tuple[str, str], Played]) -> dict[str, Interval]:
    """User to the best success of a policy without skill with her."""
    floors = {
        user: highest(
            found[policy, user].summary.success
            for policy, spec in grid.policies.items()
            if spec.trivial is not None
        )
        for user in grid.users
    }
    return {user: floor for user, floor in floors.items() if floor is not None}
