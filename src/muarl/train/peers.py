"""When a rank ends, the others end too, soon, and say which one it was and why.

Each rank watches the others from a thread, over the store through which torchrun introduced them:

    muarl/N/who/RANK     host, process, and what numbers processes there
    muarl/N/beat/RANK    a number that grows as long as the process lives
    muarl/N/ended/RANK   how it ended: `done`, `interrupted` or `failed`, whose fault it was, and why

(N: how often torchrun has started the ranks.) A process that is numbered by what numbers this one, and is
gone, is seen at once; any other, and one that was stopped, by its heart. A silence is said before it is taken
for an end. Whatever a rank has finished is on disk, so that any number of ranks can go on.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Literal, Protocol

import anyio
import msgspec

from muarl.errors import MuarlError, RankLost, SetupError, SpecError, leaves
from muarl.kernel.ranks import Ranks, notice_board
from muarl.scheduler.rounds import Interrupted, StopSignal
from muarl.train.process import is_stopped, lives, numbered_by

_LOOK_S = 0.25
_SILENT_S = 30.0
"""Without a heartbeat, until it is said."""
_DEAD_S = 90.0
"""Without one, until the rank is taken for dead."""
_ASLEEP_S = 5.0
"""So late a look of ours means that we were stopped ourselves, and with us perhaps all."""
_VERDICT_S = 10.0
"""So long is waited to hear who ended, after a connection broke."""
_SIGNAL_S = 3.0
"""And so long after a signal: torchrun sends one to all other ranks when one has failed."""
_GRACE_S = 30.0
"""So long may a rank take to end in order, once another has; then it is ended."""
_FAILED = 1
_WORDS = 2000


class Ending(msgspec.Struct, frozen=True):
    """How a rank ended.

    Attributes:
        rank: Whose fault it was: that rank, or one that ended before it.
        how: As the module says.
        why: In words.
    """

    rank: int
    how: Literal["done", "interrupted", "failed"]
    why: str = ""


class _Store(Protocol):
    def set(self, key: str, value: str) -> None: ...

    def get(self, key: str) -> bytes: ...

    def check(self, keys: list[str]) -> bool: ...


class Peers:
    """The other ranks, as one of them watches them.

    Args:
        ranks: Who they are.
        say: Tells whoever reads stderr of a silence, and that this process has to be ended.
    """

    def __init__(self, ranks: Ranks, say: Callable[[str], None]) -> None:
        self._ranks = ranks
        self._say = say
        self._ended = threading.Event()
        self._found = threading.Event()
        self._ending: Ending | None = None
        self._left: set[int] = set()
        self._hearts: dict[int, tuple[bytes, float]] = {}
        self._silent: set[int] = set()
        self._lock = threading.Lock()
        self._store: _Store = notice_board()
        self._set("who", f"{socket.gethostname()} {os.getpid()} {numbered_by()}")
        self._set("beat", "0")
        self._watch = threading.Thread(target=self._look, name="muarl peers", daemon=True)
        self._watch.start()

    @property
    def ending(self) -> Ending | None:
        """How the first of the others ended before it was done."""
        return self._ending

    def wait(self, seconds: float) -> Ending | None:
        """The same, once it is known, if that is not later than so."""
        self._found.wait(seconds)
        return self._ending

    def leave(self, ending: Ending) -> None:
        """Tell the others that this rank ends, and watch them no longer."""
        self._ended.set()
        self._watch.join()
        with suppress(RuntimeError):  # torchrun is gone itself
            self._set("ended", msgspec.json.encode(ending).decode())

    def in_words(self) -> str:
        """What happened, and what is to be done."""
        assert self._ending is not None
        return (
            f"rank {self._ending.rank} of {self._ranks.size} has ended: {self._ending.why}. All that was "
            "finished is on disk; once that is mended, the run goes on with --resume, with as many ranks "
            "as you like"
        )

    def _look(self) -> None:
        began, looked = 0, time.monotonic()
        while not self._ended.wait(_LOOK_S):
            began += 1
            if time.monotonic() - looked > _ASLEEP_S:
                self._hearts.clear()
            looked = time.monotonic()
            try:
                self._set("beat", str(began))
                for rank in range(self._ranks.size):
                    if rank != self._ranks.rank and rank not in self._left:
                        self._look_at(rank)
            except RuntimeError as error:  # of the store
                self._note(Ending(0, "failed", f"torchrun does not answer ({_first_line(error)})"))
            if self._ending is not None:
                break
        if self._ending is not None and self._ending.how == "failed":
            self._see_to_the_end()

    def _look_at(self, rank: int) -> None:
        ended = self._get("ended", rank)
        if ended is not None:
            ending = msgspec.json.decode(ended, type=Ending)
            self._left.add(rank)
            if ending.how != "done":
                self._note(ending)
            return
        who = self._get("who", rank)
        if who is None:  # not come yet
            return
        host, number, place = who.decode().split(" ", 2)
        process, here = int(number), place == numbered_by()
        if here and not lives(process):
            if self._get("ended", rank) is None:
                self._note(Ending(rank, "failed", f"process {process} on {host} is gone (killed?)"))
            return
        self._listen(rank, f"process {process} on {host}", here and is_stopped(process))

    def _listen(self, rank: int, name: str, stopped: bool) -> None:
        """Look whether a rank's heart beats; say that it does not, and end once that lasts."""
        beat, now = self._get("beat", rank) or b"", time.monotonic()
        before = self._hearts.get(rank)
        if before is None or before[0] != beat:
            self._hearts[rank] = beat, now
            if rank in self._silent:
                self._silent.remove(rank)
                self._tell(rank, "gives signs again")
            return
        silent = now - before[1]
        how = " (it was stopped)" if stopped else ""
        if silent > _SILENT_S and rank not in self._silent:
            self._silent.add(rank)
            self._tell(
                rank,
                f"({name}) has given no sign for {_SILENT_S:.0f} s{how}; the run waits for it, and ends "
                f"after {_DEAD_S:.0f} s",
            )
        elif silent > _DEAD_S:
            why = f"{name} has given no sign for {_DEAD_S:.0f} s{how}"
            self._note(Ending(rank, "failed", why))

    def _tell(self, rank: int, what: str) -> None:
        """Say something of a rank, which one of the others does for all."""
        if self._ranks.rank == (1 if rank == 0 else 0):
            self._say(f"rank {rank} of {self._ranks.size} {what}")

    def _note(self, ending: Ending) -> None:
        self._ending = ending
        self._found.set()

    def _see_to_the_end(self) -> None:
        """End this process if it hangs in what the other one will never answer."""
        if not self._ended.wait(_GRACE_S):
            self._say(self.in_words())
            os._exit(_FAILED)

    def _set(self, what: str, value: str) -> None:
        with self._lock:
            self._store.set(f"{what}/{self._ranks.rank}", value)

    def _get(self, what: str, rank: int) -> bytes | None:
        key = f"{what}/{rank}"
        with self._lock:
            found: bytes | None = self._store.get(key) if self._store.check([key]) else None
        return found


@contextmanager
def together(ranks: Ranks, say: Callable[[str], None]) -> Iterator[Peers | None]:
    """Carry out a block with the other ranks: all come to its end, or none.

    Args:
        ranks: Who they are; alone, nothing is done.
        say: See `Peers`.

    Raises:
        RankLost: Another rank has failed.
        Interrupted: Another rank was interrupted.
    """
    if ranks.alone:
        yield None
        return
    peers = Peers(ranks, say)
    try:
        yield peers
        ranks.meet()
    except BaseException as error:
        _end_in_peace()
        # What is no error of ours may be a connection that broke because another rank has ended.
        # What is wrong with files each rank finds by itself.
        own = _own_ending(ranks.rank, error)
        first = None if _is_of_files(error) else peers.wait(_patience(error, ranks))
        if first is None:
            peers.leave(own)
            raise
        peers.leave(first)
        if first.why == own.why and _is_of_machine(error):
            raise SetupError("") from error  # which that rank has said
        if first.how == "interrupted":
            raise Interrupted from error
        raise RankLost(peers.in_words()) from error
    peers.leave(Ending(ranks.rank, "done"))


@asynccontextmanager
async def heeding(peers: Peers | None, stop: StopSignal) -> AsyncIterator[None]:
    """Within the block end as soon as another rank does: at once, or drained if that was interrupted.

    Raises:
        RankLost: Another rank has failed.
    """
    if peers is None:
        yield
        return

    async def heed() -> None:
        while (ending := peers.ending) is None:  # noqa: ASYNC110 (a thread sets it)
            await anyio.sleep(_LOOK_S)
        if ending.how != "interrupted":
            raise RankLost(peers.in_words())
        stop.request()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(heed)
        yield
        tasks.cancel_scope.cancel()


def _end_in_peace() -> None:
    """Hear no SIGTERM from now on.

    torchrun sends it to all other ranks when one has failed. Heard by a rank that has seen that itself
    and is about to say so, it would end it with "interrupted" instead.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _own_ending(rank: int, error: BaseException) -> Ending:
    found = list(leaves(error))
    if any(isinstance(leaf, KeyboardInterrupt) for leaf in found):
        return Ending(rank, "interrupted")
    said = "; ".join(dict.fromkeys(f"{type(leaf).__name__}: {leaf}" for leaf in found))
    return Ending(rank, "failed", said[:_WORDS])


def _patience(error: BaseException, ranks: Ranks) -> float:
    """Seconds in which it may turn out that another rank has ended, and this one only because of it.

    What the machine lacks the others find as well, and the first of them says it.
    """
    found = list(leaves(error))
    if _is_of_machine(error) and not ranks.is_first:
        return _VERDICT_S
    if any(isinstance(leaf, KeyboardInterrupt) for leaf in found):
        return _SIGNAL_S
    ours = all(isinstance(leaf, MuarlError) and not isinstance(leaf, RankLost) for leaf in found)
    return 0.0 if ours else _VERDICT_S


def _is_of_files(error: BaseException) -> bool:
    return all(isinstance(leaf, SpecError) for leaf in leaves(error))


def _is_of_machine(error: BaseException) -> bool:
    return all(isinstance(leaf, SetupError) for leaf in leaves(error))


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
