"""What tau2-bench's evaluator says of a trajectory, component by component.

Natural-language assertions need a judge and are not here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from muarl.compat.tau.environment import Task, Tau2Environment
from muarl.compat.tau.hashing import DatabaseHash

Call = Mapping[str, Any]
"""`{name, arguments, requestor}`."""

_DEFAULT_BASIS = ("DB", "COMMUNICATE")
_SCORED_ENDS = ("user_stop", "agent_stop")


class Tau2Verdict(msgspec.Struct, frozen=True):
    """The components of a reward, each 0 or 1.

    Attributes:
        database: Both databases are those of the gold run.
        assertions: Of the task's assertions, which hold.
        actions: Of the gold calls, which some call matches.
        communicated: Of what must be said, which was.
    """

    database: bool
    assertions: tuple[bool, ...]
    actions: tuple[bool, ...]
    communicated: tuple[bool, ...]

    def components(self) -> dict[str, float]:
        """By upstream's names."""
        return {
            "DB": float(self.database),
            "ENV_ASSERTION": float(all(self.assertions)),
            "ACTION": float(all(self.actions)),
            "COMMUNICATE": float(all(self.communicated)),
        }

    def reward(self, basis: Sequence[str]) -> float:
        """The product of the components in `basis`; NL_ASSERTION counts as 1, for nobody judged it."""
        components = self.components()
        return float(all(components.get(name, 1.0) for name in basis))


def reward_basis(task: Task) -> Sequence[str]:
    """Which components a task's reward is made of."""
    basis: Sequence[str] = _criteria(task).get("reward_basis") or _DEFAULT_BASIS
    return basis


def must_be_said(task: Task) -> Sequence[str]:
    """What COMMUNICATE asks for, where it counts."""
    told: Sequence[str] = _criteria(task).get("communicate_info") or ()
    return told if "COMMUNICATE" in reward_basis(task) else ()


def judged(
    task: Task,
    calls: Sequence[Call],
    said: Sequence[str],
    fresh: Callable[[], Tau2Environment],
    hashes: tuple[DatabaseHash, DatabaseHash],
) -> Tau2Verdict:
    """Rebuild the final state from the writing calls, and compare it with the gold run's.

    Args:
        task: As published.
        calls: Of both sides, in order.
        said: Messages of the agent to the user.
        fresh: Makes an environment before any task.
        hashes: Of the agent's and of the user's database.

    Raises:
        Exception: An assertion did, as upstream's evaluation then does.
    """
    criteria = _criteria(task)
    done, gold = fresh(), fresh()
    done.begin(task)
    gold.begin(task)
    done.again(calls)
    # Upstream's gold run keeps the sides out of step; so where a sync matters, DB is not satisfied.
    for action in criteria.get("actions") or ():
        kit = gold.agent if action.get("requestor") != "user" else gold.user
        if kit is not None:
            kit.call(action["name"], action["arguments"])
    return Tau2Verdict(
        database=_databases(done, hashes) == _databases(gold, hashes),
        assertions=tuple(
            done.function(a)(**a["arguments"]) == a.get("assert_value", True)
            for a in criteria.get("env_assertions") or ()
        ),
        actions=tuple(
            any(_matches(action, call) for call in calls)
            for action in criteria.get("actions") or ()
        ),
        communicated=tuple(
            any(info.lower() in text.lower().replace(",", "") for text in said)
            for info in criteria.get("communicate_info") or ()
        ),
    )


def reward_of(verdict: Tau2Verdict, task: Task, ended: str) -> float:
    """The reward of a trajectory; 0 unless a side ended it."""
    return verdict.reward(reward_basis(task)) if ended in _SCORED_ENDS else 0.0


def _criteria(task: Task) -> Mapping[str, Any]:
    return task.get("evaluation_criteria") or {}


def _databases(env: Tau2Environment, hashes: tuple[DatabaseHash, DatabaseHash]) -> tuple[Any, Any]:
    return hashes[0].of(env.agent.db), None if env.user is None else hashes[1].of(env.user.db)


def _matches(action: Mapping[str, Any], call: Call) -> bool:
    """Whether a call does what a gold call does; what the call leaves out is not missed."""
    if action["name"] != call["name"]:
        return False
    keys = action.get("compare_args")
    if keys is None:
        keys = call["arguments"]
    wanted, given = action["arguments"], call["arguments"]
    return {k: wanted[k] for k in keys if k in wanted} == {k: given[k] for k in keys if k in given}
