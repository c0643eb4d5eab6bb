"""The policy that GRPO began with: divergence is measured from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from transformers import PreTrainedModel

from muarl.kernel.device import moved
from muarl.kernel.lora import adapters_off, has_adapters
from muarl.kernel.model import RESTORE, load_model

Reference = Callable[[], AbstractContextManager[PreTrainedModel]]
"""A model that for the length of a block is the policy that GRPO began with."""


def reference_of(model: PreTrainedModel, cold_model: Path) -> Reference:
    """The reference policy.

    Args:
        model: The trainer's. If it has adapters, the reference is the same model without them.
        cold_model: Otherwise, the folder of the weights that GRPO began with: a second model.
    """
    if not has_adapters(model):
        cold = moved(load_model(cold_model, mend=RESTORE), model.device)
        return lambda: nullcontext(cold)

    @contextmanager
    def without_adapters() -> Iterator[PreTrainedModel]:
        with adapters_off(model):
            yield model

    return without_adapters
