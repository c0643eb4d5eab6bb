"""Tasks and what became of them, for tests of curricula."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from muarl.curriculum import Curriculum
from muarl.record import Episode, Outcome
from muarl.spec import GoldCallSpec, TaskSpec
from muarl.spec.curriculum import CurriculumSpec
from muarl.testing.episodes import build_episode, build_key


def tasks(count: int, *, gold: Callable[[int], int] = lambda _: 1) -> list[TaskSpec]:
    """Tasks of one persona; `gold` says how many calls solve each."""
    return [
        TaskSpec(
            id=f"task-{n}",
            goal="something",
            personas=["plain"],
            gold=[GoldCallSpec(tool="put")] * gold(n),
        )
        for n in range(count)
    ]


def curriculum(
    pool: Sequence[TaskSpec], wanted: int, seed: int = 0, **spec: dict[str, Any]
) -> Curriculum:
    """A curriculum that knows nothing yet."""
    return Curriculum(CurriculumSpec.model_validate(spec), pool, wanted=wanted, run_seed=seed)


def played(task: str, iteration: int, rewards: Sequence[float | None]) -> list[Episode]:
    """A group; None is a fault."""
    return [
        build_episode(
            build_key(task, number, iteration=iteration),
            reward=reward,
            outcome=Outcome.INFRA_FAULT if reward is None else Outcome.COMPLETED,
        )
        for number, reward in enumerate(rewards)
    ]
