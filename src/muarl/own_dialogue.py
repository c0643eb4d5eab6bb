"""A dialogue that an agent's own loop leads: what its context asks for, carried out and recorded."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, NoReturn

import anyio
import anyio.lowlevel

from muarl.authors import RAISED, blame, let_others_pass
from muarl.conversations import Conversations
from muarl.dialogue import Dialogue
from muarl.errors import AgentError, EpisodeError, SetupError
from muarl.json_values import json_problem
from muarl.messages import Message, ToolCall, ToolResult, ToolSpec, error_result
from muarl.offer import Offer
from muarl.own_calls import OwnCalls
from muarl.own_errands import Errands
from muarl.own_forms import kind_of
from muarl.own_loop import AgentContext, AgentLoop, DialogueOver
from muarl.own_task import OwnTask
from muarl.record import Episode, Outcome, Turn
from muarl.tools import ToolSession

if TYPE_CHECKING:
    from muarl.gateway.server import Endpoint, Gateway

_GRACE_S = 1.0
"""Seconds that an agent has, which was told over HTTP that the dialogue is over, before it is cancelled."""


class LedDialogue(Dialogue):
    """One dialogue of a task, led by an agent. Use once."""

    def __init__(self, loop: AgentLoop, gateway: Gateway | None = None, **dialogue: Any) -> None:
        """Prepare.

        Args:
            loop: Leads it.
            gateway: Where it gets an endpoint, if it asks for one; None: at one of its own.
            dialogue: As of any dialogue.
        """
        super().__init__(**dialogue)
        self._loop = loop
        self._gateway = gateway
        self._endpoint: Endpoint | None = None
        self._opening = anyio.Lock()
        self._held = AsyncExitStack()
        self._unfit: SetupError | None = None
        self._agent: OwnTask | None = None
        self._was_told_by_wire = False
        self._calls = OwnCalls(self._log.turns)
        self._errands = Errands()
        self._conversations = Conversations(self._renderer)
        self._telling = anyio.Lock()
        self._notes: dict[str, Any] = {}
        self._asked = 0
        self._taken_back = 0
        self._being_sampled = 0
        self._another_came = anyio.Event()
        self._over: Outcome | None = None
        self._fault: EpisodeError | None = None
        self._session: ToolSession
        self._offer: Offer

    @property
    def offered(self) -> tuple[ToolSpec, ...]:
        """Tools that the agent is shown now."""
        return tuple(self._log.tools)

    async def _take_turns(self, session: ToolSession, offer: Offer) -> Outcome:
        if self._log.opening.stop:
            return Outcome.ABANDONED
        self._session, self._offer = session, offer
        self._agent = OwnTask(self._lead, DialogueOver(Outcome.LEFT))
        try:
            async with self._errands.under_way(), self._held:
                await self._agent.run()
        finally:  # nor do those of one that was left behind itself
            self._over = self._over or Outcome.LEFT
        if self._unfit is not None:
            raise self._unfit
        if self._fault is not None:  # whatever the agent made of it: no fault becomes a reward
            raise self._fault
        return self._over

    async def _lead(self) -> None:
        try:
            led = self._loop(AgentContext(self, self._log.history, self._task))
            if not isawaitable(led):
                raise TypeError(f"expected an async function of a context; it gave {kind_of(led)}")
            await led
        except RAISED as error:
            if self._is_known(error):
                return
            let_others_pass(error)  # a cancellation among them: `OwnTask` knows whose it is
            if self._was_told_by_wire:  # what a client made of it is its own business
                return
            raise AgentError(f"the agent raised {self._without_key(blame(error))}") from error
        finally:  # tasks that it left behind do nothing more
            self._over = self._over or Outcome.LEFT

    def _is_known(self, error: BaseException) -> bool:
        return self._fault is not None or self._unfit is not None or _is_the_end(error)

    def _without_key(self, text: str) -> str:
        return text if self._endpoint is None else text.replace(self._endpoint.key, "KEY")

    def end_agent_soon(self) -> None:
        """Give the agent a moment to end by itself: the end was told to a client of its, not to it."""
        self._was_told_by_wire = True
        self._cancel_agent_soon()

    def _cancel_agent_soon(self) -> None:
        assert self._agent is not None  # it asks
        scope = self._agent.scope
        scope.deadline = min(scope.deadline, anyio.current_time() + _GRACE_S)

    @property
    def domain_id(self) -> str:
        """Its domain."""
        return self._domain.spec.id

    @property
    def lane(self) -> Hashable:
        """With whom it takes turns at gates."""
        return self._waits.lane

    @property
    def temperature(self) -> float:
        """That the policy is sampled at."""
        return self._temperature

    async def endpoint(self) -> Endpoint:
        """See `AgentContext.endpoint`."""
        from muarl.gateway.server import Gateway
        from muarl.own_line import DialogueLine

        await self._let_others_on()
        async with self._opening:
            self._refuse_after_the_end()
            if self._endpoint is None:
                gateway = await self._held.enter_async_context(self._gateway or Gateway())
                line = gateway.admitted(DialogueLine(self))
                try:
                    self._endpoint = await self._held.enter_async_context(line)
                except SetupError as error:
                    self._unfit = error
                    raise
            return self._endpoint

    async def generated(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], max_tokens: int | None
    ) -> Message:
        """See `AgentContext.generate`."""
        return (await self.sampled(messages, tools, max_tokens)).message

    async def sampled(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], max_tokens: int | None
    ) -> Turn:
        """See `AgentContext.generate`; the turn that the message begins."""
        await self._let_others_on()
        with self._still_on():
            return await self._sampled(messages, tools, max_tokens)

    async def called(
        self, call: ToolCall | str, arguments: dict[str, Any], *, patience_s: float = 0.0
    ) -> tuple[ToolCall, ToolResult]:
        """See `AgentContext.call_tool`; the call that was made, and its result.

        Args:
            call: Likewise. A name and arguments of a call that the policy made and nobody has carried
                out yet stand for that call.
            arguments: Likewise.
            patience_s: Seconds that it waits for those before it in its message.
        """
        await self._let_others_on()
        with self._still_on():
            turn, call = self._calls.claim(call, arguments)
            make = partial(self._made_in_order, turn, call, patience_s)
            return call, await self._errands.to_its_end(make)

    async def told(self, text: str) -> Message:
        """See `AgentContext.tell_user`."""
        await self._let_others_on()
        with self._still_on():
            return await self._errands.to_its_end(partial(self._told_in_order, text))

    def noted(self, values: Mapping[str, Any]) -> None:
        """See `AgentContext.note`."""
        with self._still_on():
            problem = json_problem(dict(values))
            if problem is not None:
                raise AgentError(f"a note must be JSON: {problem}")
            self._notes.update(values)

    async def _sampled(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], max_tokens: int | None
    ) -> Turn:
        limits = self._limits
        await self._turn_left()
        number, self._asked = self._asked, self._asked + 1
        conversation = self._conversations.ask(messages, tools)
        room = limits.context_tokens - len(conversation.prompt)
        if room <= 0:
            self._end(Outcome.TRUNCATED_CONTEXT)
        cap = min(room, limits.max_tokens, max_tokens or limits.max_tokens)
        self._being_sampled += 1
        try:
            generation = await self._sample(conversation.prompt, cap, messages, tools, number)
            self._refuse_after_the_end()  # what nobody waited for any more
        except BaseException:  # cancelled perhaps, by a client that hung up, and will ask again
            self._conversations.take_back(conversation)
            self._taken_back += 1  # no message came of it: it was no turn
            raise
        finally:
            self._being_sampled -= 1
            self._another_came.set()
            self._another_came = anyio.Event()
        message, where = conversation.keep(generation, turn=number)
        turn = self._begin_turn(message, where, generation)
        if generation.finish_reason == "length":
            self._domain.cut_short(self._world, message)
            by_context = room <= limits.max_tokens
            self._end(Outcome.TRUNCATED_CONTEXT if by_context else Outcome.TRUNCATED_LENGTH)
        return turn

    async def _turn_left(self) -> None:
        """End the dialogue where it has had all its turns, once those that are being sampled are had."""
        while self._asked - self._taken_back == self._limits.max_turns:
            if not self._being_sampled:
                self._end(Outcome.TRUNCATED_TURNS)
            await self._another_came.wait()
            self._refuse_after_the_end()

    async def _made_in_order(self, turn: Turn, call: ToolCall, patience_s: float) -> ToolResult:
        async with self._calls.in_order(turn, call, self.offered, patience_s):
            if problem := json_problem(call.arguments):
                return error_result(call, f"wrong arguments: {problem}")
            with self._still_on():  # another one may have ended it meanwhile
                return await self._called(turn, call)

    async def _called(self, turn: Turn, call: ToolCall) -> ToolResult:
        result = await self._call(self._session, call, turn)
        self._calls.made(turn, call)
        if result.name in self._domain.spec.terminal and not result.is_error:
            self._end(Outcome.COMPLETED)
        if self._domain.is_over(self._world):
            self._end(Outcome.COMPLETED)
        if self._steps_are_over():
            self._end(Outcome.TRUNCATED_TURNS)
        return result

    async def _told_in_order(self, text: str) -> Message:
        async with self._telling:
            with self._still_on():
                return await self._told(text)

    async def _told(self, text: str) -> Message:
        turn = self._calls.last_turn("tell the user anything")
        if turn.reply is not None:
            raise AgentError(
                "the agent told the user something twice without sampling in between; let the policy "
                "say it, or tell her all at once"
            )
        if text != turn.message.content:
            turn.told = text
        turn.reply = await self._user_says(partial(self._user.reply, text))
        if turn.reply.stop:
            left = turn.reply.act == "abandon"
            self._end(Outcome.ABANDONED if left else Outcome.COMPLETED)
        if self._offer.show(turn.reply.shows):
            self._log.tools = list(self._offer.tools)
        return Message("user", turn.reply.text)

    async def _let_others_on(self) -> None:
        """Refuse who asks again after the end, once others had their turn; it is cancelled in a moment.

        A loop that catches every error and tries again would else keep all dialogues waiting for ever.
        """
        if self._fault is not None or self._over is not None:
            self._cancel_agent_soon()
            await anyio.lowlevel.checkpoint()

    @contextmanager
    def _still_on(self) -> Iterator[None]:
        self._refuse_after_the_end()
        try:
            yield
        except EpisodeError as fault:
            self._fault = fault
            raise

    def _refuse_after_the_end(self) -> None:
        if self._fault is not None:
            raise self._fault
        if self._over is not None:
            raise DialogueOver(self._over)

    def _end(self, outcome: Outcome) -> NoReturn:
        self._over = outcome
        raise DialogueOver(outcome)

    def broken_off(self, why: EpisodeError) -> Episode:
        if self._agent is not None and self._agent.left_at is not None:
            self._waits.now = f"its agent does not end when it is cancelled{self._agent.left_at}"
        return super().broken_off(why)

    def _episode(self, outcome: Outcome, error: EpisodeError | None = None) -> Episode:
        episode = super()._episode(outcome, error)
        if not self._is_behind_endpoint:
            episode.samples = self._conversations.samples
            episode.forks = self._conversations.forks
        episode.notes = self._notes
        return episode


def _is_the_end(error: BaseException) -> bool:
    """Whether it is nothing but the end of the dialogue; of a task group of the agent's own perhaps."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_the_end, error.exceptions))
    return isinstance(error, DialogueOver)
