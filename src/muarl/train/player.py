"""Who speaks as the policy of a run, where that is no model of ours; needs no torch."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from muarl.data.expert import ExpertPolicy, byte_limits, byte_renderer
from muarl.domain import Agent
from muarl.http.chat_client import ChatClient
from muarl.own_loop import AgentLoop
from muarl.policy.chat import ChatPolicy
from muarl.policy.plugin import Seat, open_policy
from muarl.record import EpisodeKey
from muarl.render import Renderer, in_convention
from muarl.scheduler.dialogues import PolicyFor, load_of
from muarl.scheduler.window import ReadLoad
from muarl.spec import RunSpec, TaskSpec
from muarl.spec.chat_agent import LlmAgentSpec
from muarl.spec.plugged import PluggedPolicy
from muarl.spec.run import RolloutSpec
from muarl.suite import AnyDomain


@dataclass(frozen=True)
class Player:
    """Who speaks as the policy.

    Attributes:
        policy_for: The policy of each dialogue.
        renderer: Its template and tokenizer.
        limits: The run's; an expert, who has no tokenizer of its own, speaks byte by byte.
        load: Reads how busy the engine is, where there is one.
        loop: An agent's own loop, which leads the dialogues; None: muarl's.
    """

    policy_for: PolicyFor
    renderer: Renderer
    limits: RolloutSpec
    load: ReadLoad | None = None
    loop: AgentLoop | None = None


def by_agents(
    domain: AnyDomain,
    run: RunSpec,
    agent_for: Callable[[TaskSpec, EpisodeKey], Agent],
    loop: AgentLoop | None = None,
) -> Player:
    """Rule-based agents, a fresh one for each dialogue."""
    by_bytes = byte_renderer()

    def policy_for(task: TaskSpec, key: EpisodeKey) -> ExpertPolicy:
        renderer = in_convention(by_bytes, domain.of(task.id).convention)
        return ExpertPolicy(agent_for(task, key), renderer)

    return Player(policy_for, by_bytes, byte_limits(run.rollout), loop=loop)


def by_endpoint(
    domain: AnyDomain,
    run: RunSpec,
    agent: LlmAgentSpec,
    *,
    judged: bool,
    loop: AgentLoop | None = None,
) -> Player:
    """A model behind a chat endpoint.

    Args:
        domain: Says how calls are written; a suite's members each in their way.
        run: Its limits, but for those in tokens: the endpoint's own cap is what holds.
        agent: Which model, where.
        judged: It is what is evaluated; see `ChatPolicy`.
        loop: An agent's own loop, which leads the dialogues.

    Raises:
        SetupError: The variable that holds its key is not set.
    """
    by_bytes, client = byte_renderer(), endpoint_client(agent)
    policies = {
        member.located.path: ChatPolicy(
            client,
            by_bytes,
            temperature=agent.temperature,
            max_tokens=agent.max_tokens,
            convention=member.convention,
            judged=judged,
        )
        for member in domain.members
    }
    return Player(
        lambda task, _key: policies[domain.of(task.id).located.path],
        by_bytes,
        run.rollout.model_copy(update=_ROOMY),
        loop=loop,
    )


_ROOMY = {"max_tokens": 1 << 20, "context_tokens": 1 << 24}
"""Limits in tokens where a token is a byte, which no model's are."""


@asynccontextmanager
async def by_package(
    run: RunSpec, named: PluggedPolicy, *, loop: AgentLoop | None = None
) -> AsyncIterator[Player]:
    """A policy of an installed package that no spec gives weights, for the length of the block.

    Args:
        run: Its limits, but for those in tokens.
        named: The policy.
        loop: An agent's own loop, which leads the dialogues.

    Raises:
        PluginError: It cannot be opened.
    """
    renderer = byte_renderer()
    limits = run.rollout.model_copy(update=_ROOMY)
    seat = Seat(None, limits.context_tokens, limits.concurrency, renderer)
    async with open_policy(named, seat) as policy:
        yield Player(lambda _task, _key: policy, renderer, limits, load_of(policy), loop)


def endpoint_client(agent: LlmAgentSpec) -> ChatClient:
    """Who is asked.

    Raises:
        SetupError: The variable that holds the key is not set.
    """
    return ChatClient(
        agent.base_url, agent.model, api_key_env=agent.api_key_env, timeout_s=agent.timeout_s
    )
