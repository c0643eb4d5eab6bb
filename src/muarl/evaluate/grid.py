"""From the episodes of a grid, policies x users, to what is said of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from muarl.evaluate.comparison import Comparison, compared
from muarl.evaluate.paired import FourCells, GainKept, Verdict, gain_kept, overall
from muarl.evaluate.pass_k import Trials, ks_of, pass_at, pass_hat
from muarl.evaluate.spent import Spent, spent
from muarl.evaluate.statistics import Interval, above_floor, success_rate
from muarl.evaluate.summary import EvalSummary, succeeded, summarise
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
    """

    trials: Trials
    summary: EvalSummary
    spent: Spent | None = None
    observed: Mapping[str, Any] = MappingProxyType({})
    by_seed: Mapping[int, Interval] = MappingProxyType({})


class Contamination(msgspec.Struct, frozen=True):
    """What of the tasks a policy was trained on.

    Attributes:
        known: Whether it is known what the policy was trained on.
        seen: Tasks that it was trained on, or on nearly the same; None where that is not known.
        evaluated: Tasks of the grid.
        says: The same in words.
    """

    known: bool
    seen: int | None
    evaluated: int
    says: str


UNKNOWN = "unknown: what it was trained on is not known"


def contamination(evaluated: int, seen: int | None) -> Contamination:
    """What is known of a policy; `seen` is None where nothing is."""
    says = UNKNOWN if seen is None else f"{seen} of {evaluated} tasks were trained on"
    return Contamination(seen is not None, seen, evaluated, says if seen != 0 else "none found")


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
            one leaves (0 at the floor, 1 where all succeeds); the floor is taken as it was measured. None
            where the grid has no such policy, or one that always succeeds.
        floor: What that policy reached, likewise.
        contamination: What of the tasks it was trained on; None where nobody looked.
        spent: Tokens and cost, of a model behind an endpoint.
        observed: What was measured as it played: tokens and messages per second, how long a message took
            (`message_p50_ms`, `message_p99_ms`); with several seeds, as it played with the last.
        by_seed: Seed to success with it; all else is over the dialogues of all seeds.
    """

    policy: str
    user: str
    success: Interval
    pass_hat: dict[int, Interval]
    pass_at: dict[int, Interval]
    summary: EvalSummary
    above_floor: Interval | None = None
    floor: float | None = None
    contamination: Contamination | None = None
    spent: Spent | None = None
    observed: dict[str, Any] = {}
    by_seed: dict[int, Interval] = {}


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
    return Played(
        _trials(episodes),
        summarise(episodes, seed=seed),
        spent(episodes, price),
        observed or {},
        {seed: success_rate(_trials(of_seed)) for seed, of_seed in by_seed.items()},
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
                **_against(floors.get(user), cell.summary.success),
                contamination=(trained_on or {}).get(policy),
                spent=cell.spent,
                observed=dict(cell.observed),
                by_seed=dict(cell.by_seed),
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


def _floors(grid: GridSpec, found: Mapping[tuple[str, str], Played]) -> dict[str, float]:
    """User to the best success of a policy without skill with her."""
    floors: dict[str, float] = {}
    for (policy, user), cell in found.items():
        value = cell.summary.success.value
        if grid.policies[policy].trivial is not None and value is not None:
            floors[user] = max(value, floors.get(user, 0.0))
    return floors


def _against(floor: float | None, success: Interval) -> dict[str, Any]:
    """The fields of a cell that a floor gives."""
    if floor is None:
        return {}
    if floor >= 1 or success.value is None:
        return {"floor": floor}
    low, high = (
        None if bound is None else above_floor(bound, floor)
        for bound in (success.low, success.high)
    )
    value = above_floor(success.value, floor)
    return {"floor": floor, "above_floor": Interval(value, low, high, success.n, success.method)}
