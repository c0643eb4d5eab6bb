"""How a policy gets the trainer's weights, and the proof that it has them."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import anyio.to_thread
from transformers import PreTrainedModel

from muarl.kernel.lora import has_adapters, save_adapters
from muarl.kernel.model import save_model
from muarl.kernel.scoring import sample_logprobs
from muarl.policy import Policy
from muarl.policy.logprob_probe import LogprobProbe
from muarl.policy.plugin import OpenedPolicy
from muarl.record import Sample, Span

_PROBE_TOKENS = 64

Sync = Callable[[int], Awaitable[float | None]]
"""Makes a policy sample with the trainer's present weights, as a version."""


@dataclass(frozen=True)
class Engine:
    """A policy that can be given new weights.

    Attributes:
        policy: What dialogues sample from.
        sync: Gives it the trainer's present weights. Raises WeightSyncError if afterwards it does
            not answer with them. Gives the largest log-prob gap it saw on fixed tokens; None where
            sampler and trainer share their weights.
    """

    policy: Policy
    sync: Sync


class _Loads(Protocol):
    @property
    def staging_dir(self) -> Path: ...

    async def load_weights(self, weights_dir: Path, version: int, probe: LogprobProbe) -> float: ...

    async def load_adapters(
        self, adapters_dir: Path, version: int, probe: LogprobProbe
    ) -> float: ...


def by_folder(policy: OpenedPolicy, model: PreTrainedModel) -> Sync:
    """Save the weights, adapters merged into them, where a policy of a package reads them.

    What it then answers is not compared on fixed tokens, which it need not be able to score; the gap
    to the trainer's log-probs is measured on what it samples (`train.mismatch`).
    """

    async def sync(version: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            await anyio.to_thread.run_sync(save_model, model, Path(folder))
            await policy.load_weights(Path(folder), version)

    return sync


def probe_of(model: PreTrainedModel) -> LogprobProbe:
    """What a model says about fixed tokens."""
    vocab_size: int = model.config.get_text_config(decoder=True).vocab_size
    ids = [(7 + 13 * position) % vocab_size for position in range(_PROBE_TOKENS)]
    sample = Sample(ids, [Span(1, len(ids), 0)])
    return LogprobProbe(ids, sample_logprobs(model, [sample])[0])


def by_disk(policy: _Loads, model: PreTrainedModel) -> Callable[[int], Awaitable[float]]:
    """Save the weights, or the adapters if the model has some, where the policy reads them."""
    save: Callable[[PreTrainedModel, Path], None] = save_model
    load: Callable[[Path, int, LogprobProbe], Awaitable[float]] = policy.load_weights
    if has_adapters(model):
        save, load = save_adapters, policy.load_adapters

    def stage(folder: Path) -> LogprobProbe:
        save(model, folder)
        return probe_of(model)

    async def sync(version: int) -> float:
        folder = policy.staging_dir
        probe = await anyio.to_thread.run_sync(stage, folder)
        return await load(folder, version, probe)

    return sync
