"""Policy, user and tools of a dialogue, each with a counter around it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from muarl.messages import ToolCall, ToolResult, ToolSpec
from muarl.observe.durations import Durations
from muarl.observe.snapshot import Activity, Totals
from muarl.policy import GenerateRequest, Generation, Policy
from muarl.record import UserReply
from muarl.tools import ToolServer, ToolSession
from muarl.user import Device, User, hand_over
from muarl.world import World


@contextmanager
def _one(activity: Activity) -> Iterator[None]:
    """Around the wait for one."""
    activity.now += 1
    try:
        yield
    except BaseException:
        activity.failed += 1
        raise
    else:
        activity.done += 1
    finally:
        activity.now -= 1


class CountedPolicy:
    """A policy whose messages and tokens are counted."""

    def __init__(
        self,
        policy: Policy,
        activity: Activity,
        totals: Totals,
        took: Durations,
        clock: Callable[[], float],
    ) -> None:
        self._policy = policy
        self._activity = activity
        self._totals = totals
        self._took = took
        self._clock = clock

    @property
    def policy_version(self) -> int:
        return self._policy.policy_version

    async def generate(self, request: GenerateRequest) -> Generation:
        begun = self._clock()
        with _one(self._activity):
            generation = await self._policy.generate(request)
        self._took.add(self._clock() - begun)
        self._totals.sampled_tokens += _sampled(generation)
        return generation


def _sampled(generation: Generation) -> int:
    """Tokens; of a model behind an endpoint those that it says."""
    usage = generation.usage
    return len(generation.token_ids) if usage is None else usage.completion_tokens or 0


class CountedUser:
    """A user whose messages are counted."""

    def __init__(self, user: User, activity: Activity) -> None:
        self._user = user
        self._activity = activity

    def take(self, device: Device) -> None:
        hand_over(self._user, device)

    async def open(self) -> UserReply:
        with _one(self._activity):
            return await self._user.open()

    async def reply(self, agent_text: str) -> UserReply:
        with _one(self._activity):
            return await self._user.reply(agent_text)


class CountedServer:
    """A tool server whose calls are counted."""

    def __init__(self, server: ToolServer, activity: Activity, totals: Totals) -> None:
        self._server = server
        self._activity = activity
        self._totals = totals

    @asynccontextmanager
    async def session(self, world: World) -> AsyncIterator[ToolSession]:
        async with self._server.session(world) as session:
            yield _CountedSession(session, self._activity, self._totals)


class _CountedSession:
    def __init__(self, session: ToolSession, activity: Activity, totals: Totals) -> None:
        self._session = session
        self._activity = activity
        self._totals = totals

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return self._session.tools

    async def call(self, call: ToolCall) -> ToolResult:
        with _one(self._activity):
            result = await self._session.call(call)
        self._totals.tool_errors += result.is_error
        return result
