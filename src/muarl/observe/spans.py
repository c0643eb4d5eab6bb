"""A run as OpenTelemetry spans; needs the extra `otel`.

    group                 one for each group; a trace begins with it
      dialogue            one for each attempt at an episode
        user reply        the opening, too
        policy message
        tool call

Attributes are named after our words, `muarl.episode`, `muarl.sampled_tokens`; what was said is in
the journal, not here. One group is one trace, so a sampler keeps or leaves out whole groups.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import TracebackType
from typing import Self

from opentelemetry.trace import Span, StatusCode, TracerProvider, get_tracer
from opentelemetry.trace import set_span_in_context as inside
from opentelemetry.util.types import AttributeValue

from muarl.errors import EpisodeError
from muarl.messages import ToolCall, ToolResult, ToolSpec
from muarl.observe.words import plain_words
from muarl.policy import GenerateRequest, Generation, Policy
from muarl.record import Episode, UserReply
from muarl.scheduler import EpisodePlan, Group, Observer
from muarl.tools import ToolServer, ToolSession
from muarl.user import Device, User, hand_over
from muarl.version import __version__
from muarl.world import World


class Spans(Observer):
    """Makes spans of what it is told. A context manager: what is open at its end ends there.

    Args:
        provider: Takes the spans; None takes the one set for the whole program.
        secrets: Strings that must not appear in the words of a fault.
    """

    def __init__(self, provider: TracerProvider | None = None, secrets: Iterable[str] = ()) -> None:
        self._tracer = get_tracer("muarl", __version__, provider)
        self._secrets = tuple(secrets)
        self._groups: dict[tuple[str, int, str], Span] = {}
        self._dialogues: dict[EpisodePlan, Span] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the spans of dialogues and groups that were broken off, marked as `muarl.cut`."""
        for span in (*self._dialogues.values(), *self._groups.values()):
            span.set_attribute("muarl.cut", True)
            span.end()
        self._dialogues.clear()
        self._groups.clear()

    def attempt_started(self, plan: EpisodePlan) -> None:
        key = plan.key
        about: dict[str, AttributeValue] = {
            "muarl.phase": key.phase,
            "muarl.iteration": key.iteration,
            "muarl.task": key.task_id,
            "muarl.group": f"{key.phase}/{key.iteration}/{key.task_id}",
        }
        group = self._groups.get(key.group)
        if group is None:
            group = self._groups[key.group] = self._tracer.start_span("group", attributes=about)
        self._dialogues[plan] = self._tracer.start_span(
            "dialogue",
            inside(group),
            attributes=about | {"muarl.episode": str(key), "muarl.attempt": plan.attempt},
        )

    def attempt_ended(
        self, plan: EpisodePlan, episode: Episode, retry_after_s: float | None
    ) -> None:
        span = self._dialogues.pop(plan)
        span.set_attributes(
            {
                "muarl.persona": episode.persona,
                "muarl.outcome": episode.outcome.value,
                "muarl.turns": len(episode.turns),
                "muarl.sampled_tokens": episode.num_sampled,
                "muarl.retried": retry_after_s is not None,
            }
        )
        if episode.turns:
            versions = (turn.policy_version for turn in episode.turns)
            span.set_attribute("muarl.policy_version", min(versions))
        if episode.reward is not None:
            span.set_attribute("muarl.reward", episode.reward)
        if episode.outcome.is_fault:
            span.set_attribute("muarl.fault", episode.fault or episode.outcome.value)
            self._failed(span, episode.error or "")
        span.end()

    def group_whole(self, group: Group) -> None:
        span = self._groups.pop(group.key, None)
        if span is None:  # an earlier run finished it
            return
        rewards = [episode.reward for episode in group.episodes if episode.reward is not None]
        span.set_attributes(
            {"muarl.episodes": len(group.episodes), "muarl.faults": group.num_faults}
        )
        if rewards:
            span.set_attribute("muarl.reward_mean", sum(rewards) / len(rewards))
        span.end()

    def policy(self, plan: EpisodePlan, policy: Policy) -> Policy:
        return _SpannedPolicy(policy, self, plan)

    def user(self, plan: EpisodePlan, user: User) -> User:
        return _SpannedUser(user, self, plan)

    def server(self, plan: EpisodePlan, server: ToolServer) -> ToolServer:
        return _SpannedServer(server, self, plan)

    @contextmanager
    def child(
        self, plan: EpisodePlan, name: str, attributes: dict[str, AttributeValue]
    ) -> Iterator[Span]:
        """A span within an attempt's dialogue; current meanwhile, so that a client's lie in it."""
        with self._tracer.start_as_current_span(
            name,
            inside(self._dialogues[plan]),
            attributes=attributes,
            record_exception=False,  # an exception's words may hold what nobody should read
            set_status_on_exception=False,
        ) as span:
            try:
                yield span
            except EpisodeError as error:
                span.set_attribute("muarl.fault", type(error).__name__)
                self._failed(span, str(error))
                raise

    def _failed(self, span: Span, words: str) -> None:
        span.set_status(StatusCode.ERROR, plain_words(words, self._secrets))


class _SpannedPolicy:
    def __init__(self, policy: Policy, spans: Spans, plan: EpisodePlan) -> None:
        self._policy = policy
        self._spans = spans
        self._plan = plan
        self._turn = 0

    @property
    def policy_version(self) -> int:
        return self._policy.policy_version

    async def generate(self, request: GenerateRequest) -> Generation:
        about: dict[str, AttributeValue] = {
            "muarl.turn": self._turn,
            "muarl.prompt_tokens": len(request.prompt_ids),
        }
        self._turn += 1
        with self._spans.child(self._plan, "policy message", about) as span:
            generation = await self._policy.generate(request)
            span.set_attributes(
                {
                    "muarl.sampled_tokens": len(generation.token_ids),
                    "muarl.finish_reason": generation.finish_reason,
                    "muarl.policy_version": generation.policy_version,
                }
            )
        return generation


class _SpannedUser:
    def __init__(self, user: User, spans: Spans, plan: EpisodePlan) -> None:
        self._user = user
        self._spans = spans
        self._plan = plan

    def take(self, device: Device) -> None:
        hand_over(self._user, device)

    async def open(self) -> UserReply:
        with self._spans.child(self._plan, "user reply", {}) as span:
            return _noted(await self._user.open(), span)

    async def reply(self, agent_text: str) -> UserReply:
        with self._spans.child(self._plan, "user reply", {}) as span:
            return _noted(await self._user.reply(agent_text), span)


def _noted(reply: UserReply, span: Span) -> UserReply:
    span.set_attributes({"muarl.act": reply.act, "muarl.stop": reply.stop})
    return reply


class _SpannedServer:
    def __init__(self, server: ToolServer, spans: Spans, plan: EpisodePlan) -> None:
        self._server = server
        self._spans = spans
        self._plan = plan

    @asynccontextmanager
    async def session(self, world: World) -> AsyncIterator[ToolSession]:
        async with self._server.session(world) as session:
            yield _SpannedSession(session, self._spans, self._plan)


class _SpannedSession:
    def __init__(self, session: ToolSession, spans: Spans, plan: EpisodePlan) -> None:
        self._session = session
        self._spans = spans
        self._plan = plan

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return self._session.tools

    async def call(self, call: ToolCall) -> ToolResult:
        with self._spans.child(self._plan, "tool call", {"muarl.tool": call.name}) as span:
            result = await self._session.call(call)
            span.set_attribute("muarl.is_error", result.is_error)
        return result
