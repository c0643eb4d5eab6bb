"""Run many dialogues at once, and hand over their groups as they become whole.

Owns: admission, grouping, deadlines, retries, the fuse, what is journaled when, cancellation.
Does not own: what happens inside a dialogue, how a fault is told from an answer.

What is to be done is decided by state machines without awaits (`Admission`, `Window`, `Fuse`); the
shell (`Shell`) carries it out.

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

from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream

from muarl.errors import EpisodeError, SetupError
from muarl.record import Episode, EpisodeKey, Outcome, UserReply
from muarl.scheduler.admission import Admission, EpisodePlan, Group, GroupSource
from muarl.scheduler.fuse import Fuse
from muarl.scheduler.journal import Journal
from muarl.scheduler.limits import Limits
from muarl.scheduler.observer import Observer
from muarl.scheduler.shell import FaultEpisode, RunDialogue, Shell
from muarl.scheduler.window import ReadLoad, Window

HAVE_ENDED = (
    "these rollouts have ended, for their block was left; iterate over them within it. Episodes that were "
    "final by then are in the journal, if they were given one (journal=PATH)"
)


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
            shell = Shell(
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

    def __init__(self, shell: Shell, receive: MemoryObjectReceiveStream[Group]) -> None:
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
