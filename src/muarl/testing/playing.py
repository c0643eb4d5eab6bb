"""Dialogues of rule-based agents with a domain's users: what needs no model, no journal, no run."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache

from muarl.data.expert import ExpertPolicy
from muarl.domain import Agent, Domain
from muarl.record import Episode, EpisodeKey
from muarl.render import Renderer, in_convention
from muarl.render.tokenizer import train_tokenizer
from muarl.scheduler import Limits, run_groups
from muarl.scheduler.dialogues import DialogueRunner, episode_keys
from muarl.scheduler.journal import Unjournaled
from muarl.seeds import generator
from muarl.spec import PerturbSpec, TaskSpec
from muarl.spec.run import RolloutSpec
from muarl.spec.user import UserSpec, modelless_user

# Nobody samples here, so nothing but turns needs a cap.
_CAPS = RolloutSpec(max_turns=100, max_tokens=100_000, context_tokens=1_000_000)


async def play_agents(
    domain: Domain,
    tasks: Sequence[TaskSpec],
    agent_for: Callable[[TaskSpec, random.Random], Agent],
    *,
    user: UserSpec | None = None,
    limits: RolloutSpec = _CAPS,
    group_size: int = 1,
    seed: int = 0,
    perturb: PerturbSpec | None = None,
    concurrency: int = 16,
) -> list[Episode]:
    """Let an agent play tasks, each as often as a group is large; the same seed, the same episodes.

    Args:
        domain: The domain.
        tasks: The tasks.
        agent_for: The agent of one dialogue, which may draw.
        user: With whom; default: whoever needs no model.
        limits: Caps, and what varies inside a group.
        group_size: Dialogues of one task.
        seed: Of everything drawn.
        perturb: How often users and tools are perturbed.
        concurrency: Dialogues alive at once.

    Returns:
        Episodes in the order of tasks.
    """
    renderer = _renderer()
    spoken = in_convention(renderer, domain.convention)

    def policy_for(task: TaskSpec, key: EpisodeKey) -> ExpertPolicy:
        return ExpertPolicy(agent_for(task, generator(seed, str(key), "agent")), spoken)

    runner = DialogueRunner(
        domain=domain,
        tasks=tasks,
        renderer=renderer,
        limits=limits,
        user=user or modelless_user(tasks),
        policy_for=policy_for,
        perturb=perturb,
    )
    keys = episode_keys(tasks, run_seed=seed, phase="play", group_size=group_size)
    played: dict[EpisodeKey, Episode] = {}
    limits_of_run = Limits(concurrency=concurrency, attempts=1, max_fault_rate=1.0)
    async with run_groups(keys, runner, limits=limits_of_run, journal=Unjournaled()) as groups:
        async for group in groups:
            played |= {episode.key: episode for episode in group.episodes}
    return [played[key] for key in keys]


@cache
def _renderer() -> Renderer:
    """Any tokenizer will do: what is rendered is only read back."""
    return Renderer(train_tokenizer([], vocab_size=300))
