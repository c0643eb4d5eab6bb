"""Dialogues of the desk's users with its oracle, or with an agent made of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import anyio

from muarl.domain import Domain, load_domain
from muarl.record import Episode
from muarl.spec import KnobsSpec, TaskSpec
from muarl.spec.user import ScriptedUserSpec, UserSpec
from muarl.testing import play_agents

DESK = Path(__file__).parents[2] / "domains" / "desk"


@cache
def desk() -> Domain:
    """The desk, with the oracle in the expert's place."""
    located = load_domain(DESK).located
    return Domain(
        replace(located, spec=located.spec.model_copy(update={"expert": "oracle.py:Oracle"}))
    )


def play(
    tasks: Sequence[TaskSpec],
    knobs: KnobsSpec,
    *,
    agent: Callable[[Any], Any] = lambda oracle: oracle,
    seed: int = 0,
) -> list[Episode]:
    """One dialogue of each task, with the oracle or what `agent` makes of it."""
    user = UserSpec(scripted=ScriptedUserSpec(knobs=knobs))

    async def main() -> list[Episode]:
        return await play_agents(
            *(desk(), tasks, lambda task, rng: agent(desk().expert(task, {}, rng))),
            user=user,
            seed=seed,
        )

    return anyio.run(main)
