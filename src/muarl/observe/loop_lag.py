"""How late the event loop is: what a dialogue waits although all it waited for is there."""

from __future__ import annotations

from collections.abc import Callable

import anyio

INTERVAL_S = 0.1


async def sample_loop_lag(tick: Callable[[float], None], interval_s: float = INTERVAL_S) -> None:
    """Sleep again and again, and tell how many seconds too late each sleep ended. Never returns."""
    while True:
        due = anyio.current_time() + interval_s
        await anyio.sleep_until(due)
        tick(anyio.current_time() - due)
