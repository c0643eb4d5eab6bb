"""Rounds of dialogues in which something fails now and then, and what must hold of them (law L2)."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio.lowlevel
import pytest
from dialogue_kit import Sampler, called, ids_of, note_task, renderer
from mcp.server import MCPServer

from muarl.domain import Domain
from muarl.policy import GenerateRequest, Policy
from muarl.record import Episode, EpisodeKey
from muarl.scheduler import Group
from muarl.scheduler.dialogues import DialogueRunner, episode_keys
from muarl.scheduler.rounds import bounds, run_round
from muarl.spec import GrpoSpec
from muarl.spec.run import RolloutSpec
from muarl.spec.user import ScriptedUserSpec, UserSpec
from muarl.world import World

RATE = 0.2

TASKS = [note_task(id=f"note-{i}") for i in range(6)]
FEW_TASKS = TASKS[:2]
GROUP_SIZE = 8


def deserves(key: EpisodeKey) -> float:
    """What the policy below earns in a dialogue in which nothing fails: two of three are good."""
    return float(key.sample % 3 != 0)


def noting_policy() -> Sampler:
    """Notes the right value or a wrong one, as its dialogue deserves, and says that it is done."""

    def draw(request: GenerateRequest) -> tuple[list[int], bool]:
        if request.history[-1].role == "tool":
            return words(None), True
        phase, iteration, task_id, sample = request.dialogue.split("/")
        key = EpisodeKey(0, phase, int(iteration), task_id, int(sample))
        return words(deserves(key)), True

    return Sampler(draw)


def words(reward: float | None) -> list[int]:
    """Ids of what the policy says first, to earn this; None for what it says last."""
    if reward is None:
        return ids_of("Done.")
    block = f'{{"name": "put", "arguments": {{"key": "a", "value": {1 if reward else 2}}}}}'
    return ids_of(called(block))


def serve_notes(world: World) -> MCPServer:
    """Like the tools of `notes`, over the whole world, as the process of the test kit has it."""
    server = MCPServer("notes")

    @server.tool()
    async def put(key: str, value: Any) -> str:
        await anyio.lowlevel.checkpoint()
        world[key] = value
        return "ok"

    return server


@dataclass
class ListJournal:
    """A journal in memory."""

    episodes: list[Episode] = field(default_factory=list)

    def append(self, episode: Episode) -> None:
        self.episodes.append(episode)


def keys_of(tasks: Sequence[Any]) -> list[EpisodeKey]:
    return episode_keys(tasks, run_seed=0, phase="train", group_size=GROUP_SIZE)


def runner(
    domain: Domain,
    policy: Policy,
    limits: RolloutSpec,
    *,
    user: UserSpec | None = None,
    tasks: Sequence[Any] = TASKS,
) -> DialogueRunner:
    return DialogueRunner(
        domain=domain,
        tasks=tasks,
        renderer=renderer(),
        limits=limits,
        user=user or UserSpec(scripted=ScriptedUserSpec()),
        policy_for=lambda _task, _key: policy,
    )


def limits(**given: Any) -> RolloutSpec:
    roomy = {"max_tokens": 400, "context_tokens": 8_000, "deadline_s": 600.0, "attempts": 1}
    return RolloutSpec(**(roomy | {"max_fault_rate": 1.0} | given))


async def play(
    domain: Domain,
    policy: Policy | None = None,
    *,
    user: UserSpec | None = None,
    tasks: Sequence[Any] = TASKS,
    **given: Any,
) -> list[Group]:
    """Play a round, and check what holds of every round whatever fails in it."""
    spec, keys, journal = limits(**given), keys_of(tasks), ListJournal()
    groups = await run_round(
        keys,
        runner(domain, policy or noting_policy(), spec, user=user, tasks=tasks),
        limits=bounds(spec),
        journal=journal,
    )
    check(groups, keys, journal.episodes)
    return groups


def check(
    groups: Sequence[Group], keys: Sequence[EpisodeKey], journaled: Sequence[Episode]
) -> None:
    """Law L2, and that nothing planned was lost silently."""
    episodes = [episode for group in groups for episode in group.episodes]
    assert [episode.key for episode in episodes] == list(keys), "finished or reported, each once"
    assert Counter(e.key for e in journaled) == dict.fromkeys(keys, 1)
    for episode in episodes:
        if episode.outcome.is_fault:
            assert episode.reward is None
            assert episode.error
        else:
            assert episode.reward == deserves(episode.key), (episode.key, episode.outcome)
    check_advantages(groups)


def check_advantages(groups: Sequence[Group]) -> None:
    """What is trained on is what would be, had the lost episodes never been planned."""
    from muarl.train.grpo import training_set  # torch takes seconds, and not all who come need it

    found = training_set(groups, GrpoSpec())
    expected: list[tuple[int, float]] = []
    for group in groups:
        kept = [e for e in group.episodes if not e.outcome.is_fault]
        rewards = [deserves(e.key) for e in kept]
        if len(set(rewards)) < 2:
            continue
        mean, deviation = statistics.mean(rewards), statistics.stdev(rewards)
        for episode, reward in zip(kept, rewards, strict=True):
            advantage = (reward - mean) / (deviation + 1e-6)
            expected += [(id(sample), advantage) for sample in episode.samples]
    assert [id(sample) for sample in found.samples] == [sample for sample, _ in expected]
    assert found.advantages == pytest.approx([advantage for _, advantage in expected])


def num_lost(groups: Sequence[Group]) -> int:
    return sum(group.num_faults for group in groups)
