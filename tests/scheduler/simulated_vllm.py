"""An engine like vLLM in virtual time: a queue, so many rows at once, memory that runs out.

What a step takes is what steps took on two cores with a tiny model: a tenth of a second with 256
rows. What it says of itself it says after a step; over HTTP, to whoever asks for its metrics.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field
from itertools import count

import anyio

from muarl.policy import EngineLoad

_STEP_S = 0.01
_ROW_S = 0.0003
_PROMPT_TOKEN_S = 0.00002
_PROMPT_TOKENS_A_STEP = 8192


@dataclass(eq=False)
class _Row:
    context: int
    new: int
    left: int
    ends: int = 0
    done: anyio.Event = field(default_factory=anyio.Event)


class SimulatedVllm:
    """Samples so many tokens for whoever asks.

    Args:
        rows: Messages sampled at once, at most (`max_num_seqs`).
        memory: Tokens whose keys and values it holds.

    Attributes:
        steps: Time and rows of each step.
        preemptions: Messages thrown out of the memory, to be sampled anew.
    """

    def __init__(self, *, rows: int, memory: int) -> None:
        self._rows = rows
        self._memory = memory
        self._waiting: deque[_Row] = deque()
        # By when they came: the last one is thrown out first. And by the step they end with.
        self._running: dict[_Row, None] = {}
        self._ends: list[tuple[int, int, _Row]] = []
        self._arrivals = count()
        self._taken = 0
        self._asked = anyio.Event()
        self._load: EngineLoad | None = None
        self.preemptions = 0
        self.steps: list[tuple[float, int]] = []

    def load(self) -> EngineLoad | None:
        """As of the last step; None before the first."""
        return self._load

    async def metrics(self, method: str, url: str, body: bytes = b"") -> bytes:
        """What a server answers that stands before the engine: a `Call`."""
        assert (method, url, body) == ("GET", "http://vllm/metrics", b"")
        await anyio.sleep(0.01)
        load = self._load or EngineLoad(0, 0, 0.0)
        return (
            f"vllm:num_requests_running {load.running}\n"
            f"vllm:num_requests_waiting {load.waiting}\n"
            f"vllm:kv_cache_usage_perc {load.kv_use:.6f}\n"
            f"vllm:num_preemptions_total {load.preemptions}\n"
        ).encode()

    async def sample(self, context: int, new: int, tokens: int) -> None:
        """One message of so many tokens after a context of so many, the last of which are new."""
        row = _Row(context, new, tokens)
        self._waiting.append(row)
        self._asked.set()
        await row.done.wait()

    async def run(self) -> None:
        """Make steps for as long as somebody asks."""
        while True:
            if not self._running and not self._waiting:
                self._asked = anyio.Event()
                await self._asked.wait()
            self._throw_out()
            prompts = self._let_in()
            rows = len(self._running)
            self.steps.append((anyio.current_time(), rows))
            await anyio.sleep(_STEP_S + _ROW_S * rows + _PROMPT_TOKEN_S * prompts)
            self._taken += rows
            while self._ends and self._ends[0][0] <= len(self.steps):
                row = heapq.heappop(self._ends)[2]
                if row in self._running and row.ends == len(self.steps):
                    self._leave(row)
                    row.done.set()
            use = min(1.0, self._taken / self._memory)
            self._load = EngineLoad(len(self._running), len(self._waiting), use, self.preemptions)

    def _throw_out(self) -> None:
        while len(self._running) > 1 and self._taken + len(self._running) > self._memory:
            row = next(reversed(self._running))
            self._leave(row)
            self._waiting.appendleft(row)
            self.preemptions += 1

    def _let_in(self) -> int:
        """Start what fits; how many tokens of prompts are to be computed."""
        prompts = 0
        while self._waiting and len(self._running) < self._rows:
            row = self._waiting[0]
            if self._running and self._taken + row.context + row.left > self._memory:
                break
            if prompts and prompts + row.new > _PROMPT_TOKENS_A_STEP:
                break
            self._running[self._waiting.popleft()] = None
            self._taken += row.context
            prompts += row.new
            row.ends = len(self.steps) + row.left
            heapq.heappush(self._ends, (row.ends, next(self._arrivals), row))
        return prompts

    def _leave(self, row: _Row) -> None:
        """It ends, or is thrown out with all that it said."""
        del self._running[row]
        self._taken -= row.context + row.left - (row.ends - len(self.steps))
