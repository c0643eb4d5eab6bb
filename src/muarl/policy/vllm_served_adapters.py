"""Versions of a policy as adapters of vLLM servers: each under a name of its own, old ones gone.

    POST /v1/load_lora_adapter ──> messages name the adapter as their model ──> /v1/unload_lora_adapter

The routes stand open on a server that was started with --enable-lora and with
VLLM_ALLOW_RUNTIME_LORA_UPDATING=1. Nothing is paused: a message is sampled from first to last by the
adapter that was the newest when it began, which is unloaded once no message uses it.
"""

from __future__ import annotations

import logging
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import anyio.to_thread

from muarl.errors import WeightSyncError
from muarl.http.call import Call
from muarl.policy.fleet import Endpoint
from muarl.policy.vllm_sync import WeightSync

LOAD = "/v1/load_lora_adapter"
_UNLOAD = "/v1/unload_lora_adapter"
_log = logging.getLogger(__name__)


class ServedAdapter(NamedTuple):
    """One version.

    Attributes:
        version: Of the policy.
        name: What the servers call it.
    """

    version: int
    name: str


class ServedAdapters:
    """The adapters that servers hold.

    Args:
        call: Asks a server.
        endpoints: All of them.
        run: Is in their names; None: an own one.
    """

    def __init__(self, call: Call, endpoints: Sequence[Endpoint], run: str | None = None) -> None:
        self._call = call
        self._endpoints = endpoints
        # Of this run alone: a server may still hold the adapters of another.
        self._run = run or uuid4().hex[:8]
        self._issued = 0
        self._newest: ServedAdapter | None = None
        self._held: dict[ServedAdapter, Path] = {}
        self._messages: Counter[ServedAdapter] = Counter()

    @contextmanager
    def newest(self) -> Iterator[ServedAdapter | None]:
        """The version to sample a message with, kept for the length of the block; None: no adapter."""
        adapter = self._newest
        if adapter is None:
            yield None
            return
        self._messages[adapter] += 1
        try:
            yield adapter
        finally:
            self._messages[adapter] -= 1

    def issue(self, version: int) -> ServedAdapter:
        """A name for adapters that are about to be loaded."""
        self._issued += 1
        return ServedAdapter(version, f"muarl-v{version}-{self._run}-{self._issued}")

    def follow(self, version: int) -> None:
        """Sample with adapters that another process of the run has had the servers load."""
        self._newest = self.issue(version)

    async def load(self, adapter: ServedAdapter, source: Path, folder: Path) -> list[Endpoint]:
        """Have the servers read an adapter, which nothing is sampled with yet.

        Args:
            adapter: What they are to call it.
            source: Holds it; copied.
            folder: Where to, under a path that the servers see too; vLLM may read it again later.

        Returns:
            The endpoints that hold it; nothing is sampled from the others.

        Raises:
            WeightSyncError: None does.
        """
        kept = folder / adapter.name
        await anyio.to_thread.run_sync(shutil.copytree, source, kept)
        posting = WeightSync(self._call, self._endpoints)
        # In place: done again after an answer that was lost, it is done once.
        request = {"lora_name": adapter.name, "lora_path": str(kept), "load_inplace": True}
        held = await posting.on_each(self._endpoints, LOAD, request)
        posting.keep_only(held)
        if not held:
            raise WeightSyncError(f"no server took the new adapters: {posting.reasons()}")
        self._held[adapter] = kept
        return held

    async def use(self, adapter: ServedAdapter) -> None:
        """Sample messages that begin from now on with it, and unload those that none uses."""
        self._newest = adapter
        for old in [old for old in self._held if old != adapter and not self._messages[old]]:
            kept = self._held.pop(old)
            posting = WeightSync(self._call, self._endpoints)
            well = [endpoint for endpoint in self._endpoints if not endpoint.is_stale]
            if len(await posting.on_each(well, _UNLOAD, {"lora_name": old.name})) < len(well):
                # The server's own bound on adapters throws it out in time.
                _log.warning("adapter %s was not unloaded: %s", old.name, posting.reasons())
            await anyio.to_thread.run_sync(shutil.rmtree, kept)
