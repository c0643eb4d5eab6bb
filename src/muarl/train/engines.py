"""What samples the policy during a run, and how it gets the trainer's new weights."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread
from transformers import PreTrainedModel

from muarl.domain import Domain
from muarl.kernel.model import save_model
from muarl.kernel.step import sample_logprobs
from muarl.messages import Message
from muarl.policy import Policy
from muarl.policy.slot_cache import common_prefix
from muarl.policy.torch_sampler import TorchPolicy
from muarl.policy.logprob_probe import LogprobProbe
from muarl.policy.vllm_engine import VllmPolicy
from muarl.record import Sample, Span
from muarl.render import Renderer
from muarl.spec import RunSpec

_PROBE_TOKENS = 64


@dataclass(frozen=True)
class Engine:
    """A policy that can be given new weights.

    Attributes:
        policy: What dialogues sample from.
        sync: Makes the policy sample with the trainer's present weights, as a version. Raises
            WeightSyncError if afterwards it does not answer with them. Gives the largest log-prob
            gap it saw on fixed tokens; None where sampler and trainer share their weights.
    """

    policy: Policy
    sync: Callable[[int], Awaitable[float | None]]


@asynccontextmanager
async def open_engine(
    run: RunSpec, model: PreTrainedModel, model_folder: Path, shared_prompt: list[int]
) -> AsyncIterator[Engine]:
    """Start the engine the run names; it ends with the block.

    Args:
        run: Says which, and how large.
        model: The trainer's model.
        model_folder: Holds the same weights, for engines with memory of their own.
        shared_prompt: What all dialogues begin with; see `shared_prompt`. The embedded sampler
            holds it once. Known from the start, it makes log-probs independent of what is sampled
            beside a dialogue, to the last bit (law L5).
    """
    limits = run.rollout
    if run.engine == "vllm":
        async with VllmPolicy(
            model_folder,
            max_model_len=limits.context_tokens,
            max_num_seqs=limits.concurrency,
            threads=run.threads,
        ) as vllm:
            yield Engine(vllm, _into_vllm(vllm, model))
        return
    async with TorchPolicy(
        model,
        max_len=limits.context_tokens,
        slots=limits.concurrency,
        prefixes=[shared_prompt],
    ) as embedded:

        async def forget(version: int) -> None:
            embedded.set_version(version)

        yield Engine(embedded, forget)


async def shared_prompt(domain: Domain, renderer: Renderer) -> list[int]:
    """Ids that every dialogue of a domain begins with: rules, tool schemas, and markup."""
    tools = await domain.tools()
    prompts = [
        renderer.start(
            [
                Message(role="system", content=domain.spec.rules),
                Message(role="user", content=opening),
            ],
            tools,
        )
        for opening in ("a", "0")
    ]
    return prompts[0][: common_prefix(*prompts)]


def _into_vllm(policy: VllmPolicy, model: PreTrainedModel) -> Callable[[int], Awaitable[float]]:
    vocab_size: int = model.config.get_text_config(decoder=True).vocab_size

    def stage() -> LogprobProbe:
        """Save the weights, and what they say about fixed tokens."""
        save_model(model, policy.staging_dir)
        ids = [(7 + 13 * position) % vocab_size for position in range(_PROBE_TOKENS)]
        probe = Sample(ids, [Span(1, len(ids), 0)])
        return LogprobProbe(ids, sample_logprobs(model, [probe])[0])

    async def sync(version: int) -> float:
        probe = await anyio.to_thread.run_sync(stage)
        return await policy.load_weights(policy.staging_dir, version, probe)

    return sync
