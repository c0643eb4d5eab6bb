"""How late the event loop is: what a dialogue waits although all it waited for is there."""

from __future__ import annotations

from collections.abc import Callable

import anyio

INTERVAL_S = 0.1


async def sample_loop_lag(tick: Callable[[float], None], interval_s: float = INTERVAL_S) -> None:
    """Tell every `interval_s` how many seconds late the loop is. Never returns.

    A loop that stood still for two seconds missed twenty wakings, and each is told with its own
    lateness: told once, the worst moments would weigh least.
    """
    due = anyio.current_time() + interval_s
    while True:
        await anyio.sleep_until(due)
        now = anyio.current_time()
        while due <= now:
            tick(now - due)
            due += interval_s
