"""The two sides of an environment: the policy's calls go to one, what it says to the other.

An environment answers both, so a dialogue holds one, and both sides reach it. Both are tool servers like
any other: what goes through them is counted, watched, recorded and replayed as calls are. What became of
the dialogue lies at `environment` in its world, where predicates see it.
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, TypeVar

import anyio

from muarl.authors import RAISED, blame, let_others_pass
from muarl.environments.protocol import Answer, Environment, Environments, Step, whose_calls
from muarl.errors import MuarlError, ToolServerError
from muarl.json_values import json_problem
from muarl.messages import Message, ToolCall, ToolResult, ToolSpec
from muarl.spec.environment import ENVIRONMENT
from muarl.tools import ToolServer, ToolSession
from muarl.world import World, plain

Given = TypeVar("Given")

OPEN, TELL = "open", "tell"
"""What the user's side calls: to begin, and to say what the policy said."""

_ENDED = Step(over=True)
_USER_TOOLS = (
    ToolSpec(OPEN, "Begin.", {"type": "object", "properties": {}}),
    ToolSpec(
        TELL,
        "Say to the environment what the policy said.",
        {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    ),
)


class Sides:
    """A domain's environments as two tool servers.

    Args:
        environments: Makes one for each dialogue.
        answer_s: Seconds it may take for each answer.
    """

    def __init__(self, environments: Environments, answer_s: float) -> None:
        self._environments = environments
        self._answer_s = answer_s
        self._alive: dict[int, _Live] = {}  # by the identity of a world, while a session holds it

    @property
    def agent(self) -> ToolServer:
        """Where the policy's calls go."""
        return _Side(lambda world: self._session(world, self._environments.tools, _calls))

    @property
    def user(self) -> ToolServer:
        """Where goes what the policy says."""
        return _Side(lambda world: self._session(world, _USER_TOOLS, _talk))

    def cut_short(self, world: World, message: Message) -> None:
        """Keep a dialogue's last message, which a cap cut, for its score; it is not answered."""
        if (live := self._alive.get(id(world))) is not None:
            live.cut = message

    @asynccontextmanager
    async def _session(
        self, world: World, tools: tuple[ToolSpec, ...], ask: _Ask
    ) -> AsyncIterator[ToolSession]:
        task = world[ENVIRONMENT].get("task")
        if task is None:  # of no task: only its tools are asked for
            yield _Session(None, tools, ask)
        elif (live := self._alive.get(id(world))) is not None:
            yield _Session(live, tools, ask)
        else:
            async with self._begun(world, plain(task)) as live:
                yield _Session(live, tools, ask)

    @asynccontextmanager
    async def _begun(self, world: World, task: Any) -> AsyncIterator[_Live]:
        """A world's environment; where nothing failed, what it came to is in the world at the end."""
        made = self._environments.environment(task)
        environment = await _blamed("could not be made", made.__aenter__)
        live = self._alive[id(world)] = _Live(environment, world, self._answer_s)
        try:
            yield live
            await live.finish()
        except BaseException:
            with suppress(Exception):  # what came first says more
                await made.__aexit__(None, None, None)
            raise
        else:
            await _blamed("could not be closed", lambda: made.__aexit__(None, None, None))
        finally:
            del self._alive[id(world)]


class _Side:
    def __init__(
        self, session: Callable[[World], AbstractAsyncContextManager[ToolSession]]
    ) -> None:
        self._session = session

    def session(self, world: World) -> AbstractAsyncContextManager[ToolSession]:
        return self._session(world)


class _Live:
    """One dialogue's environment, what it was told and what it is not to be told again.

    Attributes:
        cut: The policy's last message, if a cap cut it.
    """

    def __init__(self, environment: Environment, world: World, answer_s: float) -> None:
        self._environment = environment
        self._world = world
        self._answer_s = answer_s
        self._answers: dict[str, Answer] = {}  # to the calls of the last message
        self._one_at_a_time = anyio.Lock()  # an agent's own loop may call several at once
        self._begun = False
        self.cut: Message | None = None
        self._over = False

    async def begin(self) -> Step:
        self._begun = True
        step = await self._asked("as it began", self._environment.open)
        if step.over:
            raise ToolServerError("the environment was over before anybody said anything")
        return self._taken(step, Message("assistant", ""), counts=False)

    async def told(self, text: str) -> Step:
        async with self._one_at_a_time:
            return await self._answered(Message("assistant", text))

    async def called(self, call: ToolCall) -> Answer:
        """The answer to one call, asked for with all others of its message."""
        async with self._one_at_a_time:
            if (known := self._answers.pop(call.id, None)) is not None:
                return known
            if self._over:
                return Answer("this is over; nothing can be called any more", is_error=True)
            message = whose_calls.get()
            if message is None or all(one.id != call.id for one in message.tool_calls):
                message = Message("assistant", "", (call,))
            step = await self._answered(message)
            answered = zip(message.tool_calls, step.answers, strict=True)
            self._answers = {one.id: answer for one, answer in answered}
            return self._answers.pop(call.id)

    async def finish(self) -> None:
        """Put into the world what the dialogue came to, if it was one."""
        if not self._begun:
            return
        score = await self._asked("as it was scored", lambda: self._environment.score(self.cut))
        metrics = {name: _finite(value, name) for name, value in score.metrics.items()}
        self._world[ENVIRONMENT]["return"] = _finite(score.earned, "what was earned")
        if metrics:
            self._world[ENVIRONMENT]["metrics"] = metrics

    async def _answered(self, message: Message) -> Step:
        if self._over:
            return _ENDED
        if (
            not self._begun
        ):  # called with nobody to hear how it begins, as a client of `muarl serve` does
            await self.begin()
        step = await self._asked("as it answered", lambda: self._environment.answer(message))
        return self._taken(step, message, counts=True)

    def _taken(self, step: Step, message: Message, *, counts: bool) -> Step:
        """A step that keeps the contract, noted in the world.

        Raises:
            ToolServerError: It keeps none; says what is wrong.
        """
        if len(step.answers) != len(message.tool_calls):
            raise ToolServerError(
                f"the environment gave {len(step.answers)} answers to a message of "
                f"{len(message.tool_calls)} calls; each call has one"
            )
        if not (step.text or step.answers or step.over):
            raise ToolServerError("the environment answered nothing, and is not over")
        for text in (step.text, *(answer.text for answer in step.answers)):
            if problem := json_problem(text):
                raise ToolServerError(f"what the environment said cannot be read: {problem}")
        noted = self._world[ENVIRONMENT]
        if step.earned is not None:
            noted["return"] = _finite(step.earned, "what was earned")
        noted["messages"] += counts
        noted["over"] = self._over = step.over
        return step

    async def _asked(self, when: str, ask: Callable[[], Awaitable[Given]]) -> Given:
        with anyio.move_on_after(self._answer_s):
            return await _blamed(f"failed {when}", ask)
        raise ToolServerError(
            f"the environment did not answer within {self._answer_s:g} s, {when}; raise "
            "environment.answer_s, or let it end"
        )


_Ask = Callable[[_Live, ToolCall], Awaitable[Answer]]


class _Session:
    """A `ToolSession` with one side of an environment."""

    def __init__(self, live: _Live | None, tools: tuple[ToolSpec, ...], ask: _Ask) -> None:
        self._live = live
        self._tools = tools
        self._ask = ask

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return self._tools

    async def call(self, call: ToolCall) -> ToolResult:
        if self._live is None:
            raise ToolServerError("an environment is called in a task's world only")
        answer = await self._ask(self._live, call)
        return ToolResult(call.id, call.name, answer.text, is_error=answer.is_error)


async def _calls(live: _Live, call: ToolCall) -> Answer:
    return await live.called(call)


async def _talk(live: _Live, call: ToolCall) -> Answer:
    text = call.arguments.get("text")
    if call.name == OPEN:
        step = await live.begin()
    elif call.name == TELL and isinstance(text, str):
        step = await live.told(text)
    else:
        return Answer(f"there are {OPEN}() and {TELL}(text)", is_error=True)
    return Answer(json.dumps({"text": step.text, "over": step.over}, ensure_ascii=False))


async def _blamed(how: str, ask: Callable[[], Awaitable[Given]]) -> Given:
    """What somebody's environment gives.

    Raises:
        ToolServerError: It raised.
    """
    try:
        return await ask()
    except MuarlError:
        raise
    except RAISED as error:  # boundary: the author's code raises anything
        let_others_pass(error)
        raise ToolServerError(f"the environment {how}: {blame(error)}") from error


def _finite(value: Any, what: str) -> float:
    if isinstance(value, (int, float)) and math.isfinite(value):
        return float(value)
    raise ToolServerError(f"{what} in the environment is {value!r}; expected a finite number")
