"""Policies without skill, and the domain's expert, in real dialogues with users who need no model."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from muarl.data.expert import ExpertPolicy
from muarl.data.proof.finding import Check, ProofFinding, Subject, spread
from muarl.data.proof.watch import UnderWay
from muarl.data.trivial import trivial_agent, trivial_policies
from muarl.domain import Agent, Domain
from muarl.errors import ToolServerError
from muarl.evaluate.statistics import Interval, mean, success_rate
from muarl.messages import ToolSpec
from muarl.record import TRAIN, Episode, EpisodeKey
from muarl.render import Renderer, in_convention
from muarl.render.tokenizer import train_tokenizer
from muarl.scheduler import Limits, run_groups
from muarl.scheduler.dialogues import DialogueRunner, episode_keys
from muarl.scheduler.journal import Unjournaled
from muarl.seeds import generator
from muarl.spec import TaskSpec
from muarl.spec.calls import Who
from muarl.spec.run import RolloutSpec
from muarl.spec.user import modelless_user

AgentFor = Callable[[TaskSpec, random.Random], Agent]

# Nobody samples here, so nothing but turns needs a cap: one that the longest errand stays under.
_CAPS = RolloutSpec(max_turns=100, max_tokens=100_000, context_tokens=1_000_000)
# An environment need not end by itself, and a policy without skill would talk to it for ever.
_OF_ENVIRONMENT = _CAPS.model_copy(update={"max_turns": 24})
_LIMITS = Limits(concurrency=16, attempts=1, max_fault_rate=1.0)

Means = dict[str, Interval]
"""Split to mean reward."""


class Floor(NamedTuple):
    """What policies without skill earn.

    Attributes:
        means: Policy to its mean reward on each split.
        passed: Policy to the tasks that it passes, by id.
    """

    means: dict[str, Means]
    passed: dict[str, list[str]]


async def floor_findings(
    subject: Subject, tools: Sequence[ToolSpec], dialogues: int
) -> tuple[Floor, list[ProofFinding]]:
    """Let each trivial policy talk; those above the domain's floor are findings.

    Where training is rewarded otherwise, they talk once more as if they were trained: what earns
    nothing when a policy is evaluated may be what it learns.
    """
    domain = subject.domain
    means: dict[str, Means] = {}
    passed: dict[str, list[str]] = {}
    found: list[ProofFinding] = []
    for name in trivial_policies(domain.spec):

        def agent_for(task: TaskSpec, rng: random.Random, name: str = name) -> Agent:
            del task
            return trivial_agent(name, domain, tools, rng)

        phases = {name: f"check:{name}"}
        if _is_trained_otherwise(subject):
            phases[f"{name} in training"] = TRAIN
        for shown, phase in phases.items():
            means[shown], passed[shown] = {}, []
            for split, tasks in subject.tasks.items():
                episodes = await _play(domain, tools, spread(tasks, dialogues), phase, agent_for)
                found += _faults(subject, Check.FLOOR, name, episodes)
                means[shown][split] = _mean(episodes)
                passed[shown] += sorted(e.key.task_id for e in episodes if e.reward == 1)
                who = f"the trivial policy {shown!r}"
                found += over_floor(subject, split, means[shown][split], who)
    return Floor(means, passed), found


def _is_trained_otherwise(subject: Subject) -> bool:
    return subject.domain.spec.training_reward is not None or any(
        task.training_reward is not None for task in subject.all_tasks()
    )


def over_floor(
    subject: Subject, split: str, earned: Interval, who: str, *, exact: bool = False
) -> Iterator[ProofFinding]:
    """A finding if a policy without skill earns more than the domain's floor.

    Unless the figure is exact it may be above by chance: then its whole interval must be, if it has
    one.
    """
    floor = subject.domain.spec.floor
    bound = earned.value if exact or earned.low is None else earned.low
    if bound is not None and bound > floor:
        message = (
            f"{who} earns {earned.value:.3f} on split {split!r} ({earned.n} tasks), more than the "
            f"floor {floor:g}; have fewer tasks that need no skill, or state a floor you can defend"
        )
        yield subject.about(Check.FLOOR, ("floor",), message)


def estimate(rewards: Sequence[float]) -> Interval:
    """Mean of rewards, one per task, with the interval that fits them."""
    if all(reward in (0, 1) for reward in rewards):
        return success_rate({str(i): [reward == 1] for i, reward in enumerate(rewards)})
    return mean(rewards)


async def expert_findings(
    subject: Subject, tools: Sequence[ToolSpec], dialogues: int
) -> tuple[Means, set[tuple[Who, str]], list[ProofFinding]]:
    """Let the domain's expert talk, without bad habits: it must earn 1, where gold calls do.

    Returns:
        Its mean reward on each split, the tools that it and the user called successfully, and what
        was found.
    """
    domain = subject.domain

    def agent_for(task: TaskSpec, rng: random.Random) -> Agent:
        return domain.expert(task, {}, rng)

    unsolved = () if domain.spec.benchmark is None else domain.spec.benchmark.unsolved
    means: Means = {}
    used: set[tuple[Who, str]] = set()
    found: list[ProofFinding] = []
    for split, tasks in subject.tasks.items():
        episodes = await _play(domain, tools, spread(tasks, dialogues), "check:expert", agent_for)
        found += _faults(subject, Check.EXPERT, "expert", episodes)
        means[split] = _mean(episodes)
        for episode in episodes:
            used |= {("agent", name) for name, _, is_error in episode.calls() if not is_error}
            used |= {("user", name) for name, _, is_error in episode.user_calls() if not is_error}
        failed = [
            episode
            for episode in episodes
            if episode.reward is not None
            and episode.reward < 1
            and episode.key.task_id not in unsolved
        ]
        if failed:
            first = min(failed, key=lambda episode: str(episode.key))
            reasons = "; ".join(f"{r.name}: {r.reason}" for r in first.rewards if r.score != 1)
            message = (
                f"the expert fails {len(failed)} of {len(episodes)} dialogues of split {split!r}; "
                f"task {first.key.task_id!r} ({first.persona}, {first.outcome}): {reasons}"
            )
            found.append(subject.about(Check.EXPERT, ("expert",), message))
    return means, used, found


async def _play(
    domain: Domain,
    tools: Sequence[ToolSpec],
    tasks: Sequence[TaskSpec],
    phase: str,
    agent_for: AgentFor,
) -> list[Episode]:
    renderer = _renderer(domain.spec.rules, *(json.dumps(tool.as_function()) for tool in tools))
    spoken = in_convention(renderer, domain.convention)

    def policy_for(task: TaskSpec, key: EpisodeKey) -> ExpertPolicy:
        return ExpertPolicy(agent_for(task, generator(str(key))), spoken)

    episodes: list[Episode] = []
    fixed = [task for task in tasks if task.turns]
    others = [task for task in tasks if not task.turns]
    for alike in filter(None, (fixed, others)):
        runner = DialogueRunner(
            domain=domain,
            tasks=alike,
            renderer=renderer,
            limits=_CAPS if domain.spec.environment is None else _OF_ENVIRONMENT,
            user=modelless_user(alike),
            policy_for=policy_for,
        )
        keys = episode_keys(alike, run_seed=0, phase=phase)
        async with run_groups(keys, runner, limits=_LIMITS, journal=Unjournaled()) as groups:
            async for group in groups:
                episodes += group.episodes
    return episodes


@lru_cache(maxsize=4)
def _renderer(*texts: str) -> Renderer:
    """Any tokenizer will do, since what is rendered is only read back.

    One that knows with what all prompts begin makes them short, which is most of what rendering costs.
    """
    return Renderer(train_tokenizer(texts, vocab_size=1024))


def _mean(episodes: Sequence[Episode]) -> Interval:
    return estimate([e.reward for e in episodes if e.reward is not None])


def _faults(
    subject: Subject, check: Check, name: str, episodes: Sequence[Episode]
) -> Iterator[ProofFinding]:
    """Dialogues that were cut off by something else than the policy, each reason once."""
    reasons: dict[str, Episode] = {}
    for episode in episodes:
        if episode.outcome.is_fault:
            reasons.setdefault(episode.cause, episode)
    by_id = {task.id: task for task in subject.all_tasks()}
    for reason, episode in reasons.items():
        made = _call_under_way(episode)
        during = f" in the {made}" if made else ""
        message = f"a dialogue of {name!r} ended in a fault{during}: {reason}"
        yield subject.about_task(check, by_id[episode.key.task_id], (), message)


def _call_under_way(episode: Episode) -> UnderWay | None:
    """The agent's call in which a tool server failed."""
    if episode.fault != ToolServerError.__name__ or not episode.turns:
        return None
    turn = episode.turns[-1]
    unanswered = turn.message.tool_calls[len(turn.results) :]
    return UnderWay(unanswered[0], episode.key.task_id) if unanswered else None
