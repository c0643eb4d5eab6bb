"""What samples the policy during a run, and how it gets the trainer's new weights."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from transformers import PreTrainedModel

from muarl.policy import Policy
from muarl.spec import RunSpec


class Engine(Protocol):
    """A policy that can be given new weights."""

    @property
    def policy(self) -> Policy:
        """What dialogues sample from."""
        ...

    async def sync(self, version: int) -> None:
        """Sample with the trainer's present weights from now on, as `version`.

        Raises:
            WeightSyncError: The engine does not answer with those weights.
        """
        ...


@asynccontextmanager
async def open_engine(
    run: RunSpec, model: PreTrainedModel, model_folder: Path
) -> AsyncIterator[Engine]:
    """Start the engine the run names; it ends with the block."""
    if run.engine == "vllm":
        from muarl.train.vllm_sync import VllmEngine

        async with VllmEngine.open(run, model, model_folder) as engine:
            yield engine
        return
    from muarl.policy.torch_sampler import TorchPolicy

    slots = run.rollout.concurrency
    async with TorchPolicy(model, max_len=run.rollout.context_tokens, slots=slots) as policy:
        yield _Embedded(policy)


class _Embedded:
    """Shares the trainer's weights: a sync only forgets what older weights computed."""

    def __init__(self, policy: object) -> None:
        self._policy = policy

    @property
    def policy(self) -> Policy:
        return self._policy  # type: ignore[return-value]

    async def sync(self, version: int) -> None:
        self._policy.set_version(version)  # type: ignore[attr-defined]
