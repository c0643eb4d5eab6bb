"""Models with adapters that have learned something, where peft is installed."""

from __future__ import annotations

import importlib.util
import os

import pytest
import torch
from kernel_kit import tiny_model
from transformers import PreTrainedModel

from muarl.kernel.lora import adapter_weights, add_adapters
from muarl.spec.lora import LoraSpec

needs_peft = pytest.mark.skipif(
    importlib.util.find_spec("peft") is None and not os.environ.get("MUARL_REQUIRE_PEFT"),
    reason="peft is not installed: pip install 'muarl[lora]'",
)
SMALL = LoraSpec(rank=4, alpha=8)


def adapted_model(
    seed: int = 0, spec: LoraSpec = SMALL, *, learned: bool = True
) -> PreTrainedModel:
    """The kit's tiny model with adapters; those that have learned change what it says by much."""
    model = tiny_model(seed)
    add_adapters(model, spec, seed=seed)
    if learned:
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for part in adapter_weights(model).values():
                part.normal_(std=0.3, generator=generator)
    return model
