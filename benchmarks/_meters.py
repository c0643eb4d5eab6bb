"""Meters that run beside a workload: how late the event loop is, and how much memory is resident."""

from __future__ import annotations

import gc
import itertools
import os
import resource
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

_PERIOD_S = 0.01
_TICKS_PER_RSS = 10  # reading it costs as much as everything else of a tick
_PAGE = resource.getpagesize()


def rss_bytes() -> int:
    """Memory resident now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def open_handles() -> int:
    """Files, sockets and pipes this process holds open now."""
    return len(os.listdir("/proc/self/fd"))


class Meters:
    """What was seen while the block ran.

    Attributes:
        lags_s: How late the loop was, once every 10 ms. Where it stood still for longer, each tick
            it missed counts with its own lateness: a second of standing still is a hundred samples,
            as it would be for a hundred dialogues, not one.
        peak_rss: The most memory that was resident, looked at every 100 ms, in bytes.
        wall_s: Seconds the block took.
        cpu_s: Seconds of processor time of this process, all its threads.
    """

    def __init__(self) -> None:
        self.lags_s: list[float] = []
        self.peak_rss = 0
        self.wall_s = 0.0
        self.cpu_s = 0.0

    def lag_ms(self, share: float) -> float:
        """A percentile of the lags, `share` in [0, 1]."""
        ordered = sorted(self.lags_s)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    async def _watch(self) -> None:
        due = time.perf_counter() + _PERIOD_S
        for tick in itertools.count():
            await anyio.sleep(max(0.0, due - time.perf_counter()))
            late = time.perf_counter() - due
            while late >= 0:
                self.lags_s.append(late)
                late -= _PERIOD_S
                due += _PERIOD_S
            if tick % _TICKS_PER_RSS == 0:
                self.peak_rss = max(self.peak_rss, rss_bytes())


@asynccontextmanager
async def metered() -> AsyncIterator[Meters]:
    """Measure what runs in the block."""
    gc.collect()
    meters = Meters()
    async with anyio.create_task_group() as watching:
        watching.start_soon(meters._watch)
        cpu, wall = time.process_time(), time.perf_counter()
        yield meters
        meters.cpu_s = time.process_time() - cpu
        meters.wall_s = time.perf_counter() - wall
        watching.cancel_scope.cancel()
