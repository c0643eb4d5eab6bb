"""The policy that GRPO began with: divergence is measured from it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from transformers import PreTrainedModel

from muarl.kernel.lora import adapters_off, has_adapters
from muarl.kernel.model import load_model
from muarl.kernel.step import sample_logprobs
from muarl.record import Sample


class Reference(Protocol):
    """Log-probs of samples under the policy that GRPO began with, laid out like theirs."""

    def __call__(self, samples: Sequence[Sample], *, temperature: float) -> list[list[float]]: ...


def reference_of(model: PreTrainedModel, cold_model: Path) -> Reference:
    """The reference policy.

    Args:
        model: The trainer's. If it has adapters, the reference is the same model without them.
        cold_model: Otherwise, the folder of the weights that GRPO began with: a second model.
    """
    if not has_adapters(model):
        cold = load_model(cold_model)
        return lambda samples, *, temperature: sample_logprobs(
            cold, samples, temperature=temperature
        )

    def without_adapters(samples: Sequence[Sample], *, temperature: float) -> list[list[float]]:
        with adapters_off(model):
            return sample_logprobs(model, samples, temperature=temperature)

    return without_adapters
