"""Run many dialogues at once, and hand over their groups as they become whole.

Owns: admission, grouping, deadlines, retries, the fuse, what is journaled when, cancellation.
Does not own: what happens inside a dialogue, how a fault is told from an answer.

What is to be done is decided by state machines without awaits (`Admission`, `Window`, `Fuse`); the
shell carries it out. One task starts dialogues, of thousands a few in each pass of the event loop and
none while it lags, so that those that talk already are served; each dialogue has a task of its own.

Invariants, each with a property test:
  1. every planned dialogue gives exactly one episode, or is named by `Groups.unfinished`;
  2. never more than `limits.concurrency` dialogues are live, nor more than the window admits that
     follows the engine's load;
  3. a dialogue that fails does not cancel another;
  4. a group is handed over whole, and once, as soon as its last episode is final;
  5. an episode is in the journal before its group is handed over;
  6. which episodes there are does not depend on how long dialogues take (no deadline passing);
  7. a dialogue that passes its deadline is cancelled and gives an INFRA_FAULT that names it;
  8. after `stop_admitting` nothing starts, all that is live finishes, and whole groups come out;
  9. leaving the `async with` block, by whatever way, leaves no dialogue alive;
 10. a dialogue is tried again only if it ended in a fault before its first effect, after a wait, and
     then before anything fresh.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from muarl.authors import blame, is_cancelled_around
from muarl.errors import EpisodeError, EpisodeTimeout, MuarlError, SetupError
from muarl.policy import EngineLoad
from muarl.record import Episode, EpisodeKey, Outcome, UserReply
from muarl.scheduler.admission import Admission, EpisodePlan, Group, GroupSource
from muarl.scheduler.fuse import Fuse
from muarl.scheduler.journal import Journal
from muarl.scheduler.limits import Limits
from muarl.scheduler.observer import Observer
from muarl.scheduler.window import PERIOD_S, Window

RunDialogue = Callable[[EpisodePlan], Awaitable[Episode]]
"""Runs one dialogue. A failure is an episode with a fault; an exception is a bug, and ends all."""

HAVE_ENDED = (
    "these rollouts have ended, for their block was left; iterate over them within it. Episodes that were "
    "final by then are in the journal, if they were given one (journal=PATH)"
)
_AT_A_STROKE = 64
"""So many dialogues are started in a row; a start costs as much as a turn, and thousands in a row
would stop all who talk for seconds."""
_STARTS_PER_PASS = 8
"""Beyond them, in one pass of the event loop."""
_UNHURRIED = 256
"""So many get started however slow the loop is: the engine shall have its batch."""
_MAX_LAG_S = 0.02
"""Beyond them: a pass that takes longer shows that the loop does not keep up with those that live."""

ReadLoad = Callable[[], EngineLoad | None]
"""How busy the policy's engine is now; None where it cannot say."""

FaultEpisode = Callable[[EpisodePlan, EpisodeError], Episode]
"""The episode of a dialogue that was cut off from outside."""


async def _take_back_cancellation() -> None:
    """Go on, though code in the dialogue cancelled its task; unless asyncio ends, and cancels all."""
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()
    await anyio.lowlevel.checkpoint()  # raises then: who opened the round was cancelled as well


def blank_fault(plan: EpisodePlan, error: EpisodeError) -> Episode:
    """An INFRA_FAULT about which nothing is known but its key and its error."""
    return Episode(
        key=plan.key,
        domain="",
        persona="",
        split="",
        task_hash="",
        system="",
        opening=UserReply(""),
        outcome=Outcome.INFRA_FAULT,
        fault=type(error).__name__,
        error=str(error),
    )


@asynccontextmanager
async def run_groups(
    keys: Iterable[EpisodeKey] | GroupSource,
    run_dialogue: RunDialogue,
    *,
    limits: Limits,
    journal: Journal,
    done: Mapping[EpisodeKey, Episode] | None = None,
    fuse: Fuse | None = None,
    fault_episode: FaultEpisode = blank_fault,
    observer: Observer | None = None,
    load: ReadLoad | None = None,
) -> AsyncIterator[Groups]:
    """Run dialogues while the block is open; iterate over what it gives for the groups.

    Example:
        >>> async with run_groups(keys, run_dialogue, limits=limits, journal=journal) as groups:
        ...     async for group in groups:
        ...         learn_from(group)

    Args:
        keys: Dialogues; those of a group stand together. Read as slots become free. Or what decides
            group by group; then call `Groups.look_again` when it may have decided otherwise.
        run_dialogue: Runs one attempt; called in a task of its own.
        limits: Bounds.
        journal: Gets each final episode. Attempts that are tried again are not journaled.
        done: Final episodes of an earlier run (from its journal). They are not run again, and come
            out in their groups.
        fuse: One that has seen earlier rounds; default: a new one.
        fault_episode: Makes the episode of a dialogue that passed its deadline.
        observer: Told what happens.
        load: Reads how busy the policy's engine is; admission then follows it. None, or a reading
            of None, leaves admission at `limits.concurrency`.

    Raises:
        FaultRateError: The fuse blew. Live dialogues are cancelled; final episodes are journaled.
        RecordError: The journal could not be written.
        BaseExceptionGroup: Several things went wrong at once; a single one, or the same several times, comes
            bare.
    """
    admission = Admission(
        keys,
        concurrency=limits.concurrency,
        attempts=limits.attempts,
        done=done or {},
        first_wait_s=limits.retry_wait_s,
    )
    fuse = fuse or Fuse(limits.max_fault_rate, limits.concurrency)
    send, receive = anyio.create_memory_object_stream[Group](limits.buffer_groups)
    unbegun: dict[object, Coroutine[Any, Any, object]] = {}
    try:
        async with anyio.create_task_group() as live, send, receive:
            shell = _Shell(
                admission=admission,
                fuse=fuse,
                run_dialogue=run_dialogue,
                fault_episode=fault_episode,
                deadline_s=limits.deadline_s,
                journal=journal,
                observer=observer or Observer(),
                window=Window(limits.concurrency),
                load=load,
                live=live,
                unbegun=unbegun,
                send=send,
            )
            live.start_soon(shell.admit, name="admission")
            yield Groups(shell, receive)
            live.cancel_scope.cancel()
    except BaseExceptionGroup as problems:
        # Anyio wraps even a single exception; the caller wrote `except FaultRateError`.
        problem = _single(problems)
        raise problem from problem.__cause__
    finally:
        # A second Ctrl-C breaks asyncio's loop off: tasks are cancelled that have not run yet, and
        # Python would warn on the terminal of each coroutine that it was never awaited.
        for coroutine in unbegun.values():
            coroutine.close()


def _single(problems: BaseExceptionGroup) -> BaseException:
    """The one that went wrong, or all; what dialogues that began together met alike is one."""
    problem: BaseException = problems
    while isinstance(problem, BaseExceptionGroup):
        if len({(type(one), str(one)) for one in problem.exceptions}) > 1:
            break
        problem = problem.exceptions[0]
    return problem


class Groups:
    """The whole groups of a run, in the order in which they became whole."""

    def __init__(self, shell: _Shell, receive: MemoryObjectReceiveStream[Group]) -> None:
        self._shell = shell
        self._receive = receive

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Group:
        try:
            return await self._receive.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None
        except anyio.ClosedResourceError:
            raise SetupError(HAVE_ENDED) from None

    def stop_admitting(self) -> None:
        """Drain: start nothing more, let live dialogues finish, end after the last whole group."""
        self._shell.stop_admitting()

    def look_again(self) -> None:
        """Ask the source of groups once more: it may let one begin that it held back."""
        self._shell.look_again()

    @property
    def num_live(self) -> int:
        """Dialogues live now."""
        return self._shell.num_live

    @property
    def num_final(self) -> int:
        """Episodes that are final and journaled, those of `done` not counted."""
        return self._shell.num_final

    @property
    def num_retried(self) -> int:
        """Faulty attempts that were, or will be, tried again."""
        return self._shell.num_retried

    def unfinished(self) -> list[EpisodeKey]:
        """Dialogues without a final episode, in order: what a resumed run has to do."""
        return self._shell.admission.unfinished()


class _Shell:
    """Carries out what Admission decides. One task per attempt; its slot is its own until it ends.

    No locks: between two awaits nothing else runs.
    """

    def __init__(
        self,
        *,
        admission: Admission,
        fuse: Fuse,
        run_dialogue: RunDialogue,
        fault_episode: FaultEpisode,
        deadline_s: float,
        journal: Journal,
        observer: Observer,
        window: Window,
        load: ReadLoad | None,
        live: TaskGroup,
        unbegun: dict[object, Coroutine[Any, Any, object]],
        send: MemoryObjectSendStream[Group],
    ) -> None:
        self.admission = admission
        self._fuse = fuse
        self._run_dialogue = run_dialogue
        self._fault_episode = fault_episode
        self._deadline_s = deadline_s
        self._journal = journal
        self._observer = observer
        self._window = window
        self._load = load
        self._next_reading_s = -math.inf if load is not None else math.inf
        self._live = live
        self._unbegun = unbegun
        self._send = send
        self.num_live = 0
        self.num_final = 0
        self.num_retried = 0
        self._is_failing = False
        self._changed = anyio.Event()

    def stop_admitting(self) -> None:
        self.admission.stop()
        self._changed.set()

    def look_again(self) -> None:
        self._changed.set()

    async def admit(self) -> None:
        """Start what may start; end the stream when nothing is left that ever could."""
        started = 0
        while True:
            now = anyio.current_time()
            self._follow_engine(now)
            action = self.admission.take(now)
            if action is None:
                if self.admission.is_over:
                    break
                await self._change()
                continue
            if isinstance(action, Group):
                self._observer.group_whole(action)
                task = self._live.start_soon(self._pass_on, action, name=f"whole {action.key}")
            else:
                task = self._live.start_soon(self._run, action, name=f"dialogue {action.key}")
            self._unbegun[action.key] = task.coro
            if self.admission.slots_taken > _AT_A_STROKE:
                started += 1
                if started % _STARTS_PER_PASS == 0:
                    await self._keep_up()
        self._send.close()

    async def _keep_up(self) -> None:
        """Let the loop make a pass, and wait until it makes them fast enough for more dialogues.

        Beyond what the processor can serve, each further dialogue makes all of them slower, until
        their deadlines pass for no other reason.
        """
        while True:
            began = anyio.current_time()
            await anyio.lowlevel.checkpoint()
            lag_s = anyio.current_time() - began
            if lag_s <= _MAX_LAG_S or self.admission.slots_taken <= _UNHURRIED:
                return
            await anyio.sleep(lag_s)

    async def _change(self) -> None:
        """Wait until something may start that may not start now."""
        retry_s = self.admission.next_retry_s
        until = min(math.inf if retry_s is None else retry_s, self._next_reading_s)
        self._changed = anyio.Event()
        with anyio.CancelScope(deadline=until):
            await self._changed.wait()

    def _follow_engine(self, now: float) -> None:
        """Read the engine's load if it is time to, and admit accordingly."""
        if self._load is None or now < self._next_reading_s:
            return
        self._next_reading_s = now + PERIOD_S
        load = self._load()
        if load is not None:
            self._window.observe(load, self.num_live)
            self.admission.concurrency = self._window.size
            self._observer.window_set(load, self._window.size)

    async def _pass_on(self, group: Group) -> None:
        del self._unbegun[group.key]
        await self._hand_over(group)

    async def _run(self, plan: EpisodePlan) -> None:
        del self._unbegun[plan.key]
        episode = await self._attempt(plan)
        # Nothing is awaited before the episode is journaled: cancellation cannot lose it.
        try:
            group = self._settle(plan, episode)
        except MuarlError:
            # Dialogues that end at the same instant meet the same full disk: one says so.
            if self._is_failing:
                return
            self._is_failing = True
            raise
        await self._hand_over(group)

    async def _attempt(self, plan: EpisodePlan) -> Episode:
        self.num_live += 1
        self._observer.attempt_started(plan)
        try:
            with anyio.move_on_after(self._deadline_s):
                return await self._run_dialogue(plan)
            return self._fault_episode(plan, EpisodeTimeout("dialogue", self._deadline_s))
        except asyncio.CancelledError as error:
            if is_cancelled_around():
                raise
            await _take_back_cancellation()
            said = f"something in the dialogue cancelled its task: {blame(error)}"
            return self._fault_episode(plan, EpisodeError(said))
        finally:
            self.num_live -= 1

    def _settle(self, plan: EpisodePlan, episode: Episode) -> Group | None:
        """Judge an attempt; the group, if its last episode is now final.

        A fault blows the fuse before it is journaled, so that a resumed run tries it again; after an
        effect it is journaled first, so that none does.
        """
        if episode.key != plan.key:
            raise ValueError(f"the dialogue of {plan.key} gave an episode of {episode.key}")
        if episode.effect is None:
            self._fuse.observe(episode)
        wait_s = self.admission.tries_again(plan, episode, anyio.current_time())
        if wait_s is not None:
            self.num_retried += 1
            self._observer.attempt_ended(plan, episode, wait_s)
            return None
        self._journal.append(episode)
        if episode.effect is not None:
            self._fuse.observe(episode)
        self.num_final += 1
        self._observer.attempt_ended(plan, episode, None)
        group = self.admission.finish(episode)
        if group is not None:
            self._observer.group_whole(group)
        return group

    async def _hand_over(self, group: Group | None) -> None:
        if group is not None:
            await self._send.send(group)
        self.admission.release()
        self._changed.set()
