"""Whether a cancellation is one, or an exception of that name that an author's tool raised."""

from __future__ import annotations

import asyncio
import math

import anyio


def is_cancelled() -> bool:
    """Whether the current task was told to end, by a scope around it or by asyncio itself.

    On trio nobody but trio can raise its `Cancelled`.
    """
    if anyio.current_effective_deadline() == -math.inf:
        return True
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no asyncio here
        return True
    return task is None or task.cancelling() > 0
