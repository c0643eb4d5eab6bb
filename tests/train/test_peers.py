"""Ranks that watch one another, without ranks: what each reads on the notice board."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import count

import anyio
import msgspec
import pytest
import torch.distributed as dist

from muarl.errors import Problem, RankLost, SetupError, SpecError
from muarl.kernel.ranks import Ranks
from muarl.scheduler.rounds import Interrupted, StopSignal
from muarl.train import peers
from muarl.train.peers import Ending, Peers, heeding, together
from muarl.train.process import is_stopped, lives, numbered_by

HERE = socket.gethostname()
OURS = f"{HERE} {{}} {numbered_by()}"
ELSEWHERE = "elsewhere 4711 another-boot/pid:[1]"


class Quiet(Ranks):
    """Does not wait for others at the end."""

    def meet(self) -> None:
        pass


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch) -> Iterator[dist.Store]:
    """Where the ranks meet. A rank that ends hears no SIGTERM any more; tests after this one do."""
    store = dist.HashStore()
    monkeypatch.setattr(peers, "notice_board", lambda: store)
    monkeypatch.setattr(peers, "_LOOK_S", 0.01)
    monkeypatch.setattr(peers, "_SIGNAL_S", 0.3)
    before = signal.getsignal(signal.SIGTERM)
    yield store
    signal.signal(signal.SIGTERM, before)


def says(board: dist.Store, rank: int, ending: Ending) -> None:
    board.set(f"ended/{rank}", msgspec.json.encode(ending).decode())


def read(board: dist.Store, rank: int) -> Ending:
    return msgspec.json.decode(board.get(f"ended/{rank}"), type=Ending)


def said(_words: str) -> None:
    raise AssertionError("nobody has to be ended by force")


def carry_out(error: BaseException, rank: int = 0, size: int = 2, wait_s: float = 0.0) -> None:
    """A run that ends with an error, after a while in which others are watched."""
    with together(Quiet(rank, size), said) as watch:
        assert watch is not None
        watch.wait(wait_s)
        raise error


BROKEN = RuntimeError("Connection closed by peer")


def a_process_that_is_gone() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def test_a_process_that_is_gone_is_named(board: dist.Store) -> None:
    gone = a_process_that_is_gone()
    board.set("who/2", OURS.format(gone))
    with pytest.raises(
        RankLost, match=rf"rank 2 of 3 .*process {gone} on {HERE} is gone.*--resume"
    ):
        carry_out(BROKEN, size=3)
    assert read(board, 0).rank == 2, "others that see this one end hear whose fault it was"


def test_a_process_on_another_machine_is_known_by_its_heart(
    board: dist.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "_DEAD_S", 0.05)
    board.set("who/1", ELSEWHERE)
    board.set("beat/1", "17")
    with pytest.raises(RankLost, match="process 4711 on elsewhere has given no sign for"):
        carry_out(BROKEN, wait_s=60)


def test_a_heart_that_beats_is_alive(board: dist.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A beat between any two looks, however far apart these are."""
    monkeypatch.setattr(peers, "_SILENT_S", 0.0)
    monkeypatch.setattr(peers, "_DEAD_S", 0.0)
    board.set("who/1", ELSEWHERE)
    board.set("beat/1", "0")
    heard, looks = threading.Event(), count()

    class Beating(Peers):
        def _get(self, what: str, rank: int) -> bytes | None:
            if what == "beat" and (look := next(looks)):
                board.set("beat/1", str(look))
                if look == 20:
                    heard.set()
            return super()._get(what, rank)

    monkeypatch.setattr(peers, "Peers", Beating)
    with together(Quiet(0, 2), said) as watch:
        assert watch is not None
        assert heard.wait(60)
        assert watch.ending is None


def test_the_same_hostname_with_numbers_of_its_own_is_known_by_its_heart(
    board: dist.Store,
) -> None:
    board.set("who/1", f"{HERE} {a_process_that_is_gone()} {numbered_by()}0")
    with together(Quiet(0, 2), said) as watch:
        assert watch is not None
        assert watch.wait(0.1) is None


def test_a_rank_that_was_stopped_is_named_and_the_run_ends_after_a_while(
    board: dist.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "_SILENT_S", 0.05)
    monkeypatch.setattr(peers, "_DEAD_S", 0.2)
    words: list[str] = []
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        os.kill(process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        assert lives(process.pid)
        assert is_stopped(process.pid)
        board.set("who/1", OURS.format(process.pid))
        board.set("beat/1", "17")
        try:
            with together(Quiet(0, 3), words.append) as watch:
                assert watch is not None
                ending = watch.wait(60)
        finally:
            process.kill()
    assert ending is not None
    assert ending.why.endswith("(it was stopped)")
    assert len(words) == 1
    assert words[0].startswith(f"rank 1 of 3 (process {process.pid} on {HERE}) has given no sign")


def test_a_silence_that_ends_is_said_too(
    board: dist.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "_SILENT_S", 0.05)
    board.set("who/1", ELSEWHERE)
    board.set("beat/1", "17")
    words: list[str] = []
    spoken = threading.Event()

    def say(text: str) -> None:
        words.append(text)
        spoken.set()

    with together(Quiet(0, 2), say):
        assert spoken.wait(60)
        spoken.clear()
        board.set("beat/1", "18")
        assert spoken.wait(60)
    assert words[1] == "rank 1 of 2 gives signs again"


def test_whoever_was_stopped_itself_gives_the_others_time(
    board: dist.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "_ASLEEP_S", 0.0)
    monkeypatch.setattr(peers, "_DEAD_S", 0.0)
    board.set("who/1", ELSEWHERE)
    board.set("beat/1", "17")
    with together(Quiet(0, 2), said) as watch:
        assert watch is not None
        assert watch.wait(0.2) is None


def test_the_error_of_another_rank_is_told_with_its_words(board: dist.Store) -> None:
    says(board, 1, Ending(1, "failed", "RecordError: disk full"))
    with pytest.raises(RankLost, match="rank 1 of 2 has ended: RecordError: disk full"):
        carry_out(BROKEN)


def test_an_error_of_this_rank_is_its_own_and_the_others_are_told(board: dist.Store) -> None:
    with pytest.raises(SetupError, match="no such folder"), together(Quiet(1, 2), said):
        raise SetupError("no such folder")
    assert read(board, 1) == Ending(1, "failed", "SetupError: no such folder")


def test_what_all_ranks_miss_on_a_machine_is_said_by_the_first_alone(board: dist.Store) -> None:
    missing = SetupError("no such folder")
    with pytest.raises(SetupError, match="no such folder"):
        carry_out(missing, rank=0)
    with pytest.raises(SetupError) as silent:
        carry_out(missing, rank=1)
    assert str(silent.value) == ""


def test_what_only_a_later_rank_misses_it_says_itself(
    board: dist.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "_VERDICT_S", 0.05)
    board.set("who/0", OURS.format(os.getpid()))
    with pytest.raises(SetupError, match="process 1 of this machine needs a GPU"):
        carry_out(SetupError("process 1 of this machine needs a GPU of its own"), rank=1)


def test_what_is_wrong_with_files_is_no_loss_of_the_rank_that_found_it_first(
    board: dist.Store,
) -> None:
    says(board, 1, Ending(1, "failed", "SpecError: run.yaml:1:1: wrong"))
    with pytest.raises(SpecError, match="wrong"):
        carry_out(SpecError([Problem("run.yaml", 1, 1, "wrong")]), wait_s=60)


def test_a_bug_of_this_rank_is_its_own_if_nobody_else_has_ended(
    board: dist.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "_VERDICT_S", 0.05)
    board.set("who/1", OURS.format(os.getpid()))
    with pytest.raises(ZeroDivisionError), together(Quiet(0, 2), said):
        raise ZeroDivisionError("by zero")
    assert read(board, 0) == Ending(0, "failed", "ZeroDivisionError: by zero")


def test_all_are_interrupted_if_one_is(board: dist.Store) -> None:
    says(board, 1, Ending(1, "interrupted"))
    with pytest.raises(Interrupted), together(Quiet(0, 2), said):
        raise RuntimeError("Connection closed by peer")
    with pytest.raises(KeyboardInterrupt), together(Quiet(0, 2), said):
        raise KeyboardInterrupt
    assert read(board, 0).how == "interrupted"


def test_a_signal_that_torchrun_sent_because_a_rank_failed_is_no_interrupt(
    board: dist.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "_SIGNAL_S", 60.0)
    threading.Timer(0.2, says, (board, 1, Ending(1, "failed", "killed"))).start()
    with pytest.raises(RankLost, match="rank 1 of 2 has ended: killed"):
        carry_out(KeyboardInterrupt())


def test_whoever_is_done_leaves_in_peace(board: dist.Store) -> None:
    says(board, 1, Ending(1, "done"))
    with together(Quiet(0, 2), said) as watch:
        assert watch is not None
        assert watch.wait(0.1) is None
    assert read(board, 0) == Ending(0, "done")


def test_a_run_under_way_ends_when_a_rank_fails_and_drains_when_one_is_interrupted(
    board: dist.Store,
) -> None:
    async def run(ending: Ending) -> bool:
        stop = StopSignal()
        says(board, 1, ending)
        with together(Quiet(0, 2), said) as watch:
            with anyio.fail_after(60):
                async with heeding(watch, stop):
                    await stop.wait()
        return stop.requested

    assert anyio.run(run, Ending(1, "interrupted"))
    with pytest.raises(RankLost, match="rank 1 of 2 has ended: killed"):
        anyio.run(run, Ending(1, "failed", "killed"))


def test_alone_nobody_is_watched() -> None:
    with together(Ranks(), said) as watch:
        assert watch is None
