"""What the state machines of a round decide, carried out: dialogues started, ended, settled, handed over.

One task starts dialogues, of thousands a few in each pass of the event loop and none while it lags, so that
those that talk already are served; each dialogue has a task of its own.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectSendStream

from muarl.authors import blame, is_cancelled_around
from muarl.errors import EpisodeError, EpisodeTimeout, MuarlError
from muarl.record import Episode
from muarl.scheduler.admission import Admission, EpisodePlan, Group
from muarl.scheduler.fuse import Fuse
from muarl.scheduler.journal import Journal
from muarl.scheduler.observer import Observer
from muarl.scheduler.window import PERIOD_S, ReadLoad, Window

RunDialogue = Callable[[EpisodePlan], Awaitable[Episode]]
"""Runs one dialogue. A failure is an episode with a fault; an exception is a bug, and ends all."""

FaultEpisode = Callable[[EpisodePlan, EpisodeError], Episode]
"""The episode of a dialogue that was cut off from outside."""

_AT_A_STROKE = 64
"""So many dialogues are started in a row; a start costs as much as a turn, and thousands in a row
would stop all who talk for seconds."""
_STARTS_PER_PASS = 8
"""Beyond them, in one pass of the event loop."""
_UNHURRIED = 256
"""So many get started however slow the loop is: the engine shall have its batch."""
_MAX_LAG_S = 0.02
"""Beyond them: a pass that takes longer shows that the loop does not keep up with those that live."""


class Shell:
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


async def _take_back_cancellation() -> None:
    """Go on, though code in the dialogue cancelled its task; unless asyncio ends, and cancels all."""
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()
    await anyio.lowlevel.checkpoint()  # raises then: who opened the round was cancelled as well
