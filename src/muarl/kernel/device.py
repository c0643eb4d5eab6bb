"""Where a model is trained."""

from __future__ import annotations

import os

import torch
from torch import nn
from transformers import PreTrainedModel

from muarl.errors import SetupError
from muarl.spec.model import Device


def device_for(asked: Device) -> torch.device:
    """The device of this process: of several on one machine each has a GPU of its own.

    Args:
        asked: `auto` takes a GPU if there is one.

    Raises:
        SetupError: A GPU is asked for, and there is none for this process.
    """
    number = int(os.environ.get("LOCAL_RANK", "0"))
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if asked == "cpu" or (asked == "auto" and not found):
        return torch.device("cpu")
    if not found:
        raise SetupError(
            f"model.device: {asked}: torch sees no GPU on this machine. Say model.device: cpu, or "
            "install a torch for its GPU (`muarl doctor` says what the driver sees)"
        )
    if number >= found:
        raise SetupError(
            f"model.device: {asked}: process {number} of this machine needs a GPU of its own, and torch "
            f"sees {found}. Start fewer (torchrun --nproc-per-node), or say model.device: cpu"
        )
    return torch.device("cuda", number)


def moved(model: PreTrainedModel, device: torch.device) -> PreTrainedModel:
    """The same model, there."""
    module: nn.Module = model  # whose `to` transformers wraps without a type
    module.to(device)
    return model
