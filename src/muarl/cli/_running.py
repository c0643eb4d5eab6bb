"""What the verbs that run dialogues share: Ctrl-C and threads."""

from __future__ import annotations

import atexit
import gc
import os
import signal
from collections.abc import Awaitable, Callable

import anyio

from muarl.http.descriptors import allow_many_connections
from muarl.scheduler.rounds import StopSignal


def prepare_torch(threads: int) -> None:
    """Set torch up for this machine; call before anything imports it.

    Two busy OpenMP teams that spin while they wait starve each other: one sampled 116 tokens/s
    where it reached 8,000 alone.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    import torch
    from transformers.utils import logging

    torch.set_num_threads(threads or os.cpu_count() or 1)
    logging.disable_progress_bar()


def calm_collector() -> None:
    """Let Python's cycle collector look at what dialogues make, seldom; call after all imports.

    Libraries are a million objects that never go. Looking at them again and again took a tenth of
    the time of 1,000 dialogues, in pauses of 0.2 s in which the event loop stood still.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    # What is still frozen when Python ends, triton takes for leaked, and says so in forty lines.
    atexit.register(gc.unfreeze)


def run_interruptibly(work: Callable[[StopSignal], Awaitable[None]]) -> None:
    """Run async work on asyncio; Ctrl-C once asks it to drain, twice ends it at once.

    Raises:
        KeyboardInterrupt: It was interrupted.
    """
    calm_collector()
    allow_many_connections()
    if anyio.run(_with_signals, work, backend="asyncio"):
        raise KeyboardInterrupt


async def _with_signals(work: Callable[[StopSignal], Awaitable[None]]) -> bool:
    """Do the work; whether it was ended before its end."""
    stop = StopSignal()
    is_ended = False
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            nonlocal is_ended
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                async for _ in signals:
                    if stop.requested:
                        break
                    stop.request()
            # Not by raising KeyboardInterrupt here: asyncio then drops everything where it stands.
            is_ended = True
            tasks.cancel_scope.cancel()

        tasks.start_soon(watch)
        await work(stop)
        tasks.cancel_scope.cancel()
    return is_ended
