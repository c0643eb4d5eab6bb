"""Versions of a policy as adapters of one vLLM engine: each under a name of its own, old ones gone.

A message is sampled from first to last by the adapter that was the newest when it began. An older
adapter stays as long as a message uses it, and is removed when a newer one is taken into use.
"""

from __future__ import annotations

import itertools
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio.to_thread

from muarl.errors import WeightSyncError

_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""What `max_lora_rank` of vLLM may be."""
_AT_ONCE = 2
"""Adapters that may be sampled with at once: the newest, and that of messages begun before."""


class Adapter(NamedTuple):
    """One version.

    Attributes:
        version: Of the policy.
        request: vLLM's `LoRARequest`; None is the model without adapters.
    """

    version: int
    request: Any


def lora_args(rank: int) -> dict[str, Any]:
    """The `vllm.AsyncEngineArgs` of an engine that takes adapters of a rank."""
    return {
        "enable_lora": True,
        "max_lora_rank": next(allowed for allowed in _RANKS if rank <= allowed),
        "max_loras": _AT_ONCE,
        "max_cpu_loras": _AT_ONCE,
    }


class Adapters:
    """The adapters that an engine holds.

    Args:
        engine: vLLM's `AsyncLLM`.
        folder: A private folder; adapters are kept there as long as the engine may read them.
        version: Version of the model without adapters.
    """

    def __init__(self, engine: Any, folder: Path, version: int) -> None:
        self._engine = engine
        self._folder = folder
        self._ids = itertools.count(1)
        self._newest = Adapter(version, None)
        self._held: list[Adapter] = []
        self._messages: Counter[Adapter] = Counter()

    @contextmanager
    def newest(self) -> Iterator[Adapter]:
        """The version to sample a message with; it is kept for the length of the block."""
        adapter = self._newest
        self._messages[adapter] += 1
        try:
            yield adapter
        finally:
            self._messages[adapter] -= 1

    async def add(self, version: int, source: Path) -> Adapter:
        """Have the engine read an adapter, which nothing is sampled with yet.

        Args:
            version: Of the policy.
            source: Holds adapter_config.json and adapter_model.safetensors; copied.

        Raises:
            WeightSyncError: The engine refused it.
        """
        from vllm.lora.request import LoRARequest

        number = next(self._ids)
        # vLLM tells cached keys and values apart by name, so no name is used twice.
        name = f"muarl-v{version}-{number}"
        folder = self._folder / name
        await anyio.to_thread.run_sync(shutil.copytree, source, folder)
        adapter = Adapter(version, LoRARequest(name, number, str(folder)))
        self._held.append(adapter)
        try:
            await self._engine.add_lora(adapter.request)
        except Exception as error:  # the engine re-raises whatever its worker raised
            raise WeightSyncError(
                f"vLLM could not load the adapters of version {version} from {source}: {error}"
            ) from error
        return adapter

    async def use(self, adapter: Adapter) -> None:
        """Sample messages that begin from now on with it, and remove those that none uses."""
        self._newest = adapter
        for old in [old for old in self._held if old != adapter and not self._messages[old]]:
            await self.remove(old)

    async def remove(self, adapter: Adapter) -> None:
        """Have the engine forget it."""
        self._held.remove(adapter)
        await self._engine.remove_lora(adapter.request.lora_int_id)
        await anyio.to_thread.run_sync(shutil.rmtree, adapter.request.lora_path)
