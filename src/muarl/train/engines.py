"""What samples the policy and its users during a run, and how it gets the trainer's new weights."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from transformers import PreTrainedModel

from muarl.domain import Domain
from muarl.kernel.device import moved
from muarl.kernel.lora import adapter_rank, add_adapters, has_adapters
from muarl.kernel.model import copy_weights, load_model
from muarl.kernel.ranks import ALONE, Ranks
from muarl.kernel.shards import is_sharded, whole
from muarl.messages import Message, with_rules
from muarl.policy.plugin import Seat, open_policy
from muarl.policy.slot_cache import common_prefix
from muarl.policy.torch_engine import Engine as SlotEngine
from muarl.policy.torch_sampler import TorchPolicy
from muarl.policy.vllm_adapters import lora_args
from muarl.policy.vllm_engine import VllmPolicy
from muarl.render import Renderer, TextTokenizer, in_convention
from muarl.spec import RunSpec
from muarl.spec.engine import EngineSpec
from muarl.suite import AnyDomain
from muarl.train.plan import pace_of
from muarl.train.servers import open_servers
from muarl.train.weights import Engine, by_disk, by_folder


@asynccontextmanager
async def open_engine(
    run: RunSpec,
    model: PreTrainedModel,
    model_folder: Path,
    shared_prompts: list[list[int]],
    ranks: Ranks = ALONE,
) -> AsyncIterator[Engine]:
    """Start the engine that samples a run's policy; it ends with the block.

    Args:
        run: Says which, and how large.
        model: The trainer's model. The embedded sampler reads its weights in place, or a copy of them if
            it samples while the trainer learns or the model is in pieces.
        model_folder: Holds the same weights, for engines with memory of their own.
        shared_prompts: What all dialogues begin with; see `shared_prompts`. The embedded sampler
            holds each once. Known from the start, they make log-probs independent of what is sampled
            beside a dialogue, to the last bit (law L5).
        ranks: Who train the model. Each has an embedded sampler of its own; servers are everybody's.
    """
    tokens = run.rollout.context_tokens
    async with _open(run.engine, run, tokens, model, model_folder, shared_prompts, ranks) as engine:
        yield engine


@asynccontextmanager
async def open_user_engine(
    run: RunSpec, model: PreTrainedModel, model_folder: Path
) -> AsyncIterator[Engine]:
    """Likewise the one that samples its users; prefixes of theirs are found on the way."""
    spec = run.user_model
    assert spec is not None
    async with _open(
        spec.engine, run, spec.context_tokens, model, model_folder, None, ALONE
    ) as engine:
        yield engine


def require_sampler(
    spec: EngineSpec,
    run: RunSpec,
    context_tokens: int,
    model: PreTrainedModel,
    ranks: Ranks = ALONE,
) -> None:
    """Look, before anything is trained, whether the embedded sampler will be able to begin.

    It is built once and thrown away: on a CPU its memory is only asked for, and a proof that it computes
    the model exactly takes a few tokens. Other engines are looked at by `muarl.train.ready`; a model in
    pieces can be sampled only as a copy, which is too much for a look.

    Raises:
        SetupError: The machine has no memory for keys and values, or the sampler cannot run such a model.
    """
    embedded = not (spec.vllm or spec.vllm_server or spec.plugin)
    if embedded and not is_sharded(model):
        SlotEngine(model, max_len=context_tokens, slots=_slots(run, ranks))


def _slots(run: RunSpec, ranks: Ranks) -> int:
    return max(1, run.rollout.concurrency // ranks.size)


@asynccontextmanager
async def _open(
    spec: EngineSpec,
    run: RunSpec,
    context_tokens: int,
    model: PreTrainedModel,
    model_folder: Path,
    prefixes: list[list[int]] | None,
    ranks: Ranks,
) -> AsyncIterator[Engine]:
    if spec.vllm_server is not None:
        async with open_servers(
            spec.vllm_server, context_tokens, model, model_folder, ranks
        ) as engine:
            yield engine
    elif spec.vllm is not None:
        adapters = lora_args(adapter_rank(model)) if has_adapters(model) else {}
        async with VllmPolicy(
            model_folder,
            max_model_len=context_tokens,
            max_num_seqs=run.rollout.concurrency,
            threads=run.threads,
            engine_args=adapters | spec.vllm.args,
        ) as vllm:
            yield Engine(vllm, by_disk(vllm, model))
    elif spec.plugin is not None:
        renderer = Renderer(TextTokenizer.load(model_folder))
        seat = Seat(model_folder, context_tokens, run.rollout.concurrency, renderer)
        async with open_policy(spec.plugin, seat) as plugged:
            yield Engine(plugged, by_folder(plugged, model))
    else:
        overlaps = run.grpo is not None and pace_of(run.grpo).max_lag > 0
        apart = overlaps or is_sharded(model)
        async with TorchPolicy(
            _copy_of(model, model_folder, run) if apart else model,
            max_len=context_tokens,
            slots=_slots(run, ranks),
            prefixes=prefixes,
        ) as embedded:

            async def sync(version: int) -> None:
                if apart:
                    with whole(model):
                        await embedded.load_weights(model, version)
                else:
                    embedded.set_version(version)

            yield Engine(embedded, sync)


def _copy_of(model: PreTrainedModel, folder: Path, run: RunSpec) -> PreTrainedModel:
    """The same model with weights of its own; `folder` holds one of its shape."""
    if not is_sharded(model):
        return copy.deepcopy(model)
    twin = moved(load_model(folder), model.device)
    if run.model.lora is not None:
        add_adapters(twin, run.model.lora, seed=0)
    with whole(model):
        copy_weights(model, twin)
    return twin


async def shared_prompts(domain: AnyDomain, renderer: Renderer) -> list[list[int]]:
    """Ids that every dialogue of a domain begins with: rules, tool schemas, and markup; of each.

    Not of a domain whose tasks say which tools are shown: a list of all of them, which may be long, is
    in no prompt of theirs.
    """
    return [
        await _shared_prompt(one, renderer)
        for one in domain.members
        if all(task.tools is None for task in one.tasks(one.splits[0]))
    ]


async def _shared_prompt(domain: Domain, renderer: Renderer) -> list[int]:
    tools = await domain.tools()
    renderer = in_convention(renderer, domain.convention)
    prompts = [
        renderer.start(
            [*with_rules(domain.spec.rules), Message(role="user", content=opening)],
            tools,
        )
        for opening in ("a", "0")
    ]
    return prompts[0][: common_prefix(*prompts)]
