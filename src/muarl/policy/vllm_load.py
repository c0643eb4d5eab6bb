"""How busy vLLM is: in process as its engine says after each step, over HTTP from `/metrics`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import anyio
import msgspec

from muarl.http.call import Call, Refused
from muarl.http.retry import PassingFailure
from muarl.policy.protocol import EngineLoad

_EVERY_S = 0.5
"""Between two readings; taking one costs a server some milliseconds, one or two in a hundred."""
_DEADLINE_S = 1.0

_GAUGES = re.compile(
    rb"^vllm:(num_requests_running|num_requests_waiting|kv_cache_usage_perc|num_preemptions_total)"
    rb"(?:\{[^}\n]*\})? (\d+(?:\.\d+)?(?:e[+-]?\d{1,2})?)$",
    re.MULTILINE,
)


class LoadReader:
    """Reads the load of servers for as long as somebody looks.

    Preemptions are counted from each server's first reading on: what one did before, or while it did
    not answer for a moment, is none of the load that others see now.

    It has a clock of its own. Were it read along with messages, an engine that has had all messages
    it was sent would not be seen to have room for more until one of them ends.

    Args:
        call: Asks a server.
        urls: Of the servers.
    """

    def __init__(self, call: Call, urls: Sequence[str]) -> None:
        self._call = call
        self._urls = urls
        self._load: EngineLoad | None = None
        self._preemptions: dict[str, int] = {}  # of each server, as last heard
        self._preempted = 0
        self._wanted = anyio.Event()

    def latest(self) -> EngineLoad | None:
        """The last reading, once; None until there is another.

        What is decided on a reading does not show in it: who saw it twice would decide twice.
        """
        load, self._load = self._load, None
        self._wanted.set()
        return load

    async def run(self) -> None:
        """Take readings, as many as somebody looks at, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted = anyio.Event()
            self._load = await self._read()
            await anyio.sleep(_EVERY_S)

    async def _read(self) -> EngineLoad | None:
        """The load of all servers that answer; None if none does."""
        loads: dict[str, EngineLoad] = {}

        async def one(url: str) -> None:
            with suppress(PassingFailure, Refused):
                loads[url] = read_load(await self._call("GET", url + "/metrics"))

        with anyio.move_on_after(_DEADLINE_S):
            async with anyio.create_task_group() as tasks:
                for url in self._urls:
                    tasks.start_soon(one, url)
        if not loads:
            return None
        for url, load in loads.items():
            before = self._preemptions.get(url, load.preemptions)
            self._preempted += max(0, load.preemptions - before)  # less: it was started anew
            self._preemptions[url] = load.preemptions
        return msgspec.structs.replace(total(list(loads.values())), preemptions=self._preempted)


class EngineWatch:
    """Told by an engine in process after each of its steps: a vLLM `StatLoggerBase`, in form."""

    def __init__(self) -> None:
        self._by_engine: dict[int, EngineLoad] = {}

    def latest(self) -> EngineLoad | None:
        """As of the last step; None before the first."""
        return total(list(self._by_engine.values())) if self._by_engine else None

    def record(
        self,
        scheduler_stats: Any,
        iteration_stats: Any,
        mm_cache_stats: Any = None,
        engine_idx: int = 0,
    ) -> None:
        """Note one step of one engine; there are several under data parallelism."""
        del mm_cache_stats
        before = self._by_engine.get(engine_idx, EngineLoad(0, 0, 0.0))
        preempted = iteration_stats.num_preempted_reqs if iteration_stats is not None else 0
        now = before if scheduler_stats is None else _load_of(scheduler_stats)
        self._by_engine[engine_idx] = msgspec.structs.replace(
            now, preemptions=before.preemptions + preempted
        )

    def log_engine_initialized(self) -> None:
        """Asked for by vLLM."""

    def log(self) -> None:
        """Asked for by vLLM."""

    def record_sleep_state(self, is_awake: int, level: int) -> None:
        """Asked for by vLLM."""


def _load_of(scheduler_stats: Any) -> EngineLoad:
    return EngineLoad(
        running=scheduler_stats.num_running_reqs,
        waiting=scheduler_stats.num_waiting_reqs,
        kv_use=scheduler_stats.kv_cache_usage,
    )


_MOST = 1e12
"""Of a count that is none; a server may write any."""


def read_load(metrics: bytes) -> EngineLoad:
    """The load in a server's `/metrics`; one server may stand before several engines."""
    found: dict[bytes, list[float]] = {}
    for name, value in _GAUGES.findall(metrics):
        found.setdefault(name, []).append(min(float(value), _MOST))
    return EngineLoad(
        running=int(sum(found.get(b"num_requests_running", ()))),
        waiting=int(sum(found.get(b"num_requests_waiting", ()))),
        kv_use=max(found.get(b"kv_cache_usage_perc", ()), default=0.0),
        preemptions=int(sum(found.get(b"num_preemptions_total", ()))),
    )


def total(loads: Sequence[EngineLoad]) -> EngineLoad:
    """That of several engines; their memory counts as full as the fullest's."""
    return EngineLoad(
        running=sum(load.running for load in loads),
        waiting=sum(load.waiting for load in loads),
        kv_use=max(load.kv_use for load in loads),
        preemptions=sum(load.preemptions for load in loads),
    )
