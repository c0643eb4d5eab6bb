"""What the verbs that run dialogues share: Ctrl-C and threads."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import anyio

from muarl.cli._signals import Requests
from muarl.cli._telling import remark, tell
from muarl.http.descriptors import allow_many_connections
from muarl.scheduler.rounds import StopSignal

if TYPE_CHECKING:
    from muarl.observe import Observation

Found = TypeVar("Found")

_LOOK_S = 0.1
"""How often a run looks whether it was asked to end."""


def prepare_torch(threads: int) -> None:
    """Set torch up for this machine; call before anything imports it.

    Of several processes on this machine (torchrun) each takes its part of the cores.

    Two busy OpenMP teams that spin while they wait starve each other: one sampled 116 tokens/s
    where it reached 8,000 alone.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    if (
        "torch" not in sys.modules and os.environ.get("RANK", "0") == "0"
    ):  # which takes half a minute on a busy machine, or a cold disk
        tell("loading torch and transformers")
    import torch
    from transformers.utils import logging

    processes = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    torch.set_num_threads(threads or max(1, (os.cpu_count() or 1) // processes))
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
    requests = Requests()
    with requests.heard():
        was_interrupted = anyio.run(_until_interrupted, work, requests, backend="asyncio")
    if was_interrupted:
        raise KeyboardInterrupt


def run_resumably(
    work: Callable[[StopSignal], Awaitable[Found]],
    out: Path,
    observation: Observation,
    *,
    overwrote: bool,
) -> Found:
    """Run async work that a folder can be taken up from, observed; if interrupted, say how it goes on.

    Args:
        work: What is to be done.
        out: The folder.
        observation: Who sees it.
        overwrote: Whether the command was told to replace what was there, which it must not be told again.

    Raises:
        KeyboardInterrupt: It was interrupted.
    """
    found: list[Found] = []

    async def observed(stop: StopSignal) -> None:
        async with observation.running():
            found.append(await work(stop))

    try:
        run_interruptibly(observed)
    except* KeyboardInterrupt as interrupted:
        instead = " instead of --overwrite" if overwrote else ""
        remark(f"stopped; the same command with --resume{instead} goes on in {out}")
        raise KeyboardInterrupt from interrupted
    return found[0]


async def _until_interrupted(
    work: Callable[[StopSignal], Awaitable[None]], requests: Requests
) -> bool:
    """Whether it was interrupted; said so, since asyncio logs what a task raises at its very end."""
    stop = StopSignal()
    was_interrupted = False

    async def watch() -> None:
        while not requests.look():  # noqa: ASYNC110 (a signal handler cannot set an Event)
            await anyio.sleep(_LOOK_S)
        stop.request()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            await work(stop)
            tasks.cancel_scope.cancel()
    except* KeyboardInterrupt:
        was_interrupted = True
    return was_interrupted
