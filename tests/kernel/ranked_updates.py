"""Updates by one rank or several, to be compared.

torchrun ... ranked_updates.py FOLDER [CHECKPOINT]
"""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch
from kernel_kit import MODELS, other_model, random_samples, tiny_model
from safetensors.torch import save_file
from torch import Tensor
from transformers import PreTrainedModel

from muarl.errors import NonFiniteLoss
from muarl.kernel.checkpoint import load_checkpoint, save_checkpoint
from muarl.kernel.lora import add_adapters, merge_adapters
from muarl.kernel.model import save_model
from muarl.kernel.optimizer import Optimizer
from muarl.kernel.ranks import Ranks, joined
from muarl.kernel.scoring import sample_logprobs
from muarl.kernel.shards import full, shard, whole
from muarl.kernel.step import Trainer
from muarl.record import Sample
from muarl.spec import GrpoSpec
from muarl.spec.grpo import CorrectionSpec
from muarl.spec.kernel import KernelSpec
from muarl.spec.lora import LoraSpec
from muarl.spec.model import ColdStartSpec

NAMES = ("tiny", "Llama", "Gemma2", "Qwen3Moe")
NAMES += ("Llama+adapters",) if importlib.util.find_spec("peft") else ()
GRPO = GrpoSpec(
    freeze_embeddings=False,
    kl_coef=0.1,
    aggregation="sequence",
    correction=CorrectionSpec(level="token", truncate=1.1, reject_above=1.4),
)
PLAIN = GrpoSpec(freeze_embeddings=True)
KERNEL = KernelSpec(max_tokens=64)
"""Several micro-batches for each family, so that ranks have different numbers of them."""
ADVANTAGES = [1.0, -1.0, 0.5, None, -0.7, 0.2, 1.0]


class Gradients:
    """What an optimizer was given at its last step, put together."""

    def __init__(self, optimizer: Optimizer, model: PreTrainedModel) -> None:
        self._names = {p: name for name, p in model.named_parameters()}
        self._optimizer, self._step = optimizer, optimizer.step
        self.found: dict[str, Tensor] = {}
        optimizer.step = self.step  # type: ignore[method-assign]

    def step(self, lr: float) -> None:
        for parameter in self._optimizer.parameters:
            if parameter.grad is not None:
                self.found[self._names[parameter]] = full(parameter.grad).clone()
        self._step(lr)


def build(name: str, ranks: Ranks) -> PreTrainedModel:
    kind, _, adapters = name.partition("+")
    model = tiny_model() if kind == "tiny" else other_model(kind, **MODELS[kind])
    if adapters:
        add_adapters(model, LoraSpec(rank=2), seed=3)
    shard(model, ranks)
    if adapters:
        merge_adapters(model, seed=4)  # what is written to a model in pieces stays
    return model


def sampled(model: PreTrainedModel, ranks: Ranks, count: int = 7) -> list[Sample]:
    """By weights a little different: some ratios are clipped, some tokens are rejected."""
    samples = random_samples(count)
    for number, row in enumerate(sample_logprobs(model, samples, kernel=KERNEL, ranks=ranks)):
        samples[number].logprobs = [
            value + 0.4 * math.sin(7 * number + place) for place, value in enumerate(row)
        ]
    return samples


def of_sft(name: str, ranks: Ranks) -> tuple[Any, dict[str, Tensor]]:
    model = build(name, ranks)
    spec = ColdStartSpec(optimizer="adamw")
    trainer = Trainer.for_cold_start(model, spec, KERNEL, ranks)
    gradients = Gradients(trainer.optimizer, model)
    return trainer.sft_step(random_samples(7), 0.01), gradients.found


def of_grpo(name: str, ranks: Ranks, count: int = 7) -> tuple[Any, dict[str, Tensor]]:
    model = build(name, ranks)
    trainer = Trainer.for_grpo(model, GRPO, KERNEL, ranks)
    gradients = Gradients(trainer.optimizer, model)
    samples = sampled(model, ranks, count)
    old = sample_logprobs(model, samples, kernel=KERNEL, ranks=ranks)
    metrics = trainer.grpo_update(
        samples,
        [*ADVANTAGES[: count - 1], [0.1] * samples[-1].num_sampled],
        spec=GRPO,
        lr=0.01,
        temperature=0.7,
        old_logprobs=old,
        reference_logprobs=[[value - 0.2 for value in row] for row in old],
    )
    return metrics, gradients.found


def updated(trainer: Trainer, samples: Sequence[Sample]) -> None:
    trainer.grpo_update(samples, ADVANTAGES, spec=PLAIN, lr=0.01)


def of_checkpoints(ranks: Ranks, folder: Path, before: Path | None) -> None:
    """Two updates, or the second of them after a first one by another number of ranks."""
    model = build("Llama", ranks)
    samples = sampled(model, ranks)
    trainer = Trainer.for_grpo(model, PLAIN, KERNEL, ranks)
    if before is None:
        updated(trainer, samples)
        save_checkpoint(folder / "first", trainer, {"iteration": 1})
    else:
        assert load_checkpoint(before, trainer) == {"iteration": 1}
    updated(trainer, samples)
    save_checkpoint(folder / "second", trainer, {"iteration": 2})


def of_non_finite(ranks: Ranks) -> str:
    """One rank meets it, and all refuse."""
    model = build("tiny", ranks)
    trainer = Trainer.for_grpo(model, PLAIN, KERNEL, ranks)
    samples = sampled(model, ranks)
    try:
        trainer.grpo_update(samples, [math.inf, *ADVANTAGES[1:]], spec=PLAIN, lr=0.01)
    except NonFiniteLoss as refusal:
        with whole(model):
            plain = tiny_model()
            theirs, ours = model.parameters(), plain.parameters()
            assert all(map(torch.equal, theirs, ours)), "the weights moved"
        assert trainer.grpo_update(samples, ADVANTAGES, spec=PLAIN, lr=0.01).grad_norm > 0
        return str(refusal)
    return ""


def of_muon(ranks: Ranks) -> list[float]:
    trainer = Trainer.for_cold_start(build("tiny", ranks), None, KERNEL, ranks)
    return [trainer.sft_step(random_samples(5), 0.01).loss for _ in range(3)]


def main(ranks: Ranks, folder: Path, before: Path | None = None) -> None:
    """Carry all of it out; the first rank leaves in the folder what came of it."""
    found: dict[str, Any] = {}
    for name in NAMES:
        for kind, outcome in (("sft", of_sft), ("grpo", of_grpo)):
            metrics, gradients = outcome(name, ranks)
            found[f"{name}.{kind}"] = msgspec.to_builtins(metrics)
            if ranks.is_first:
                save_file(gradients, folder / f"{name}.{kind}.safetensors")
    found["few.grpo"] = msgspec.to_builtins(of_grpo("tiny", ranks, 2)[0])
    found["refusal"] = of_non_finite(ranks)
    found["muon"] = of_muon(ranks)
    of_checkpoints(ranks, folder, before)
    model = build("tiny", ranks)
    with whole(model):
        if ranks.is_first:
            save_model(model, folder / "tied")
    if ranks.is_first:
        (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    torch.set_num_threads(1)
    with joined() as ours:
        main(ours, *map(Path, sys.argv[1:]))
