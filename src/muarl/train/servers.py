"""vLLM servers as a run's engine: they must hold the run's weights before anything is sampled."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import anyio
import anyio.to_thread
from transformers import PreTrainedModel

from muarl.errors import SetupError
from muarl.kernel.lora import has_adapters
from muarl.kernel.ranks import ALONE, Ranks
from muarl.kernel.shards import whole
from muarl.policy.vllm_server import VllmServerPolicy
from muarl.policy.vllm_transfer import WeightTransfer
from muarl.spec.engine import VllmServerSpec
from muarl.train.crew import in_thread
from muarl.train.weights import Engine, by_disk, probe_of

_log = logging.getLogger(__name__)


def server_policy(
    spec: VllmServerSpec, context_tokens: int, run: str | None = None
) -> VllmServerPolicy:
    """The policy that a run file describes, for dialogues of so many tokens."""
    return VllmServerPolicy(
        spec.endpoints,
        api_key_env=spec.api_key_env,
        timeout_s=spec.timeout_s,
        sync_timeout_s=spec.sync_timeout_s,
        logprob_tolerance=spec.logprob_tolerance,
        weights_dir=spec.weights_dir,
        context_tokens=context_tokens,
        run=run,
    )


async def require_servers(
    spec: VllmServerSpec, context_tokens: int, *, trains: bool, adapters: bool = False
) -> None:
    """Look at the servers without sampling more than a few tokens.

    Args:
        spec: Which.
        context_tokens: Of the longest dialogue.
        trains: They will be given new weights.
        adapters: Those are adapters.

    Raises:
        SetupError: One is not there, or not started as the run needs it.
    """
    async with server_policy(spec, context_tokens) as policy:
        if trains and adapters:
            policy.require_adapters()
        elif trains:
            policy.require_weight_sync()


@asynccontextmanager
async def open_servers(
    spec: VllmServerSpec,
    context_tokens: int,
    model: PreTrainedModel,
    model_folder: Path,
    ranks: Ranks = ALONE,
) -> AsyncIterator[Engine]:
    """Connect to the servers and make sure that they hold the model's weights.

    Of several ranks all sample from them, and the first one brings them new weights, once for each.

    Args:
        spec: Which.
        context_tokens: Of the longest dialogue.
        model: The trainer's model.
        model_folder: Holds the same weights, for the message to whoever has to start a server.
        ranks: Who train it.

    Raises:
        SetupError: A server is not there, or has other weights and takes no new ones.
        WeightSyncError: A server does not answer with the weights it was given.
    """
    name = None if ranks.alone else (await _agreed(ranks, uuid4().hex[:12])).decode()
    async with (
        server_policy(spec, context_tokens, name) as policy,
        _sync(spec, policy, model, ranks) as sync,
    ):
        with whole(model):
            probe = await anyio.to_thread.run_sync(probe_of, model)
        gap = float(await _agreed(ranks, str(await policy.probe_gap(probe))))
        if gap > policy.logprob_tolerance and has_adapters(model):
            raise SetupError(
                f"the servers do not serve the weights that the adapters stand on (log-probs differ "
                f"by {gap:.3g}); start them on {model_folder}"
            )
        if gap > policy.logprob_tolerance:
            _log.info("servers hold other weights (log-probs differ by %.3g); sending ours", gap)
            try:
                await sync(policy.policy_version)
            except SetupError as problem:
                raise SetupError(
                    f"the servers do not serve the weights of {model_folder} (log-probs differ by "
                    f"{gap:.3g}); start them on that folder. And {problem}"
                ) from problem
        yield Engine(policy, sync)


async def _agreed(ranks: Ranks, said: str) -> bytes:
    """What the first rank says."""
    return (await in_thread(ranks.gather, said.encode()))[0]


@asynccontextmanager
async def _sync(
    spec: VllmServerSpec, policy: VllmServerPolicy, model: PreTrainedModel, ranks: Ranks
) -> AsyncIterator[Callable[[int], Awaitable[float]]]:
    """How the servers get a version; of several ranks all call, and the first one brings it."""
    if not ranks.is_first:
        yield _following(policy, model, ranks)
        return
    async with _bringing(spec, policy, model) as bring:

        async def sync(version: int) -> float:
            with whole(model):
                gap = await bring(version)
            return float(await _agreed(ranks, str(gap)))

        yield sync


def _following(
    policy: VllmServerPolicy, model: PreTrainedModel, ranks: Ranks
) -> Callable[[int], Awaitable[float]]:
    async def follow(version: int) -> float:
        with whole(model):  # the first rank's is whole while it writes or sends it
            gap = float(await _agreed(ranks, ""))
        policy.follow(version, adapters=has_adapters(model))
        return gap

    return follow


@asynccontextmanager
async def _bringing(
    spec: VllmServerSpec, policy: VllmServerPolicy, model: PreTrainedModel
) -> AsyncIterator[Callable[[int], Awaitable[float]]]:
    if has_adapters(model):
        policy.require_adapters()
    if spec.sync == "disk" or has_adapters(model):
        yield by_disk(policy, model)
        return
    policy.require_weight_sync()
    transfer = await WeightTransfer.join(policy.call, policy.urls, model, spec.trainer_address)

    async def sync(version: int) -> float:
        probe = await anyio.to_thread.run_sync(probe_of, model)
        return await policy.push_weights(transfer.push, version, probe)

    try:
        yield sync
    finally:
        with anyio.CancelScope(shield=True):
            await transfer.leave()
