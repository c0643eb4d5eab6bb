"""Optimizers, and how their learning rates move."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Literal

import torch
from torch import Tensor
from torch.nn import Parameter
from transformers import PreTrainedModel

from muarl.errors import RecordError, SetupError
from muarl.kernel.lora import adapter_weights
from muarl.kernel.shards import full, share_like
from muarl.spec.grpo import GrpoSpec
from muarl.spec.model import ColdStartSpec


class Optimizer:
    """One or more torch optimizers that share out a model's parameters and step together."""

    def __init__(self, parts: Mapping[str, torch.optim.Optimizer], model: PreTrainedModel) -> None:
        self._parts = dict(parts)
        self._names = {parameter: name for name, parameter in model.named_parameters()}

    @property
    def parameters(self) -> list[Parameter]:
        """Parameters that are trained."""
        return [parameter for _, _, parameter in self._owned()]

    @property
    def unsplit(self) -> set[str]:
        """Names of those that take a whole gradient to move, where each rank has a share of them.

        Muon makes a matrix orthogonal, in bfloat16: of shares that would be slower, and rounded otherwise.
        """
        return {self._names[parameter] for part, _, parameter in self._owned() if part in _UNSPLIT}

    def step(self, lr: float) -> None:
        """Update the parameters from their gradients, and forget the gradients."""
        for part in self._parts.values():
            for group in part.param_groups:
                group["lr"] = lr
            part.step()
            part.zero_grad(set_to_none=True)

    def state(self, *, kept: bool = True) -> dict[str, Tensor]:
        """All moments and counters, by `part/parameter/name`; of a model in pieces, every rank calls.

        Args:
            kept: Whether this rank wants them, or only helps another to put them together.
        """
        found: dict[str, Tensor] = {}
        for part, optimizer, parameter in self._owned():
            for name, value in optimizer.state[parameter].items():
                tensor = full(torch.as_tensor(value)).cpu()
                if kept:
                    found[f"{part}/{self._names[parameter]}/{name}"] = tensor
        return found

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on from `state()`.

        Raises:
            RecordError: It was made by another optimizer or for another model; nothing is changed.
        """
        owners = {
            f"{part}/{self._names[parameter]}": (part, optimizer, parameter)
            for part, optimizer, parameter in self._owned()
        }
        found: dict[str, dict[str, Tensor]] = {owner: {} for owner in owners}
        for key, value in state.items():
            owner, _, name = key.rpartition("/")
            if owner not in found:
                raise RecordError(
                    f"optimizer state for {owner!r} has no owner here: it was saved by another "
                    "optimizer or for another model"
                )
            found[owner][name] = value
        for owner, values in found.items():
            part, optimizer, parameter = owners[owner]
            optimizer.state[parameter] = {
                name: _revived(value, parameter, unsplit=part in _UNSPLIT)
                for name, value in values.items()
            }

    def _owned(self) -> Iterator[tuple[str, torch.optim.Optimizer, Parameter]]:
        for name, optimizer in self._parts.items():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    yield name, optimizer, parameter


_UNSPLIT = {"muon"}


def _revived(value: Tensor, parameter: Parameter, *, unsplit: bool) -> Tensor | int:
    """As an optimizer holds it: what counts in integers (bitsandbytes) takes no tensor."""
    if value.ndim == 0:
        return value.clone() if value.is_floating_point() else int(value)
    return share_like(parameter, value.to(parameter.device), unsplit=unsplit).clone()


def adamw(
    model: PreTrainedModel,
    *,
    freeze_embeddings: bool,
    weight_decay: float = 0.0,
    bits: Literal[8, 32] = 32,
) -> Optimizer:
    """AdamW with betas (0.9, 0.95).

    With frozen embeddings (and a tied output layer), Adam's normalised steps cannot carry rarely
    seen tokens away.

    Args:
        model: Whose parameters are trained; of one with adapters, those alone.
        freeze_embeddings: Leave embeddings and output layer as they are.
        weight_decay: Decoupled.
        bits: Of each number of the state. With 8, blocks of 256 share a scale (arXiv 2110.02861);
            tensors of less than 4,096 numbers keep 32.

    Raises:
        SetupError: 8 bits are asked for and bitsandbytes is not installed.
    """
    trained = _trained(model, _embeddings(model) if freeze_embeddings else set())
    part = _adamw8(trained, weight_decay) if bits == 8 else _adamw(trained, weight_decay)
    return Optimizer({"adamw" if bits == 32 else "adamw8": part}, model)


def muon(model: PreTrainedModel) -> Optimizer:
    """Muon on the body's matrices, AdamW on embeddings and norms, for the cold start.

    Of a model with adapters those alone are trained, which are matrices all.

    Steps of both have the same root mean square at the same rate (arXiv 2502.16982).
    """
    trained, embeddings = _trained(model, set()), _embeddings(model)
    matrices = [p for p in trained if p.ndim == 2 and p not in embeddings]
    others = [p for p in trained if p.ndim != 2 or p in embeddings]
    parts = {"muon": torch.optim.Muon(matrices, weight_decay=0.0, adjust_lr_fn="match_rms_adamw")}
    return Optimizer(parts | ({"adamw": _adamw(others)} if others else {}), model)


def _trained(model: PreTrainedModel, frozen: set[Parameter]) -> list[Parameter]:
    """The adapters of a model that has some, else all but the frozen; these alone get gradients."""
    chosen = set(adapter_weights(model).values()) or set(model.parameters()) - frozen
    for parameter in model.parameters():
        parameter.requires_grad_(parameter in chosen)
    return [parameter for parameter in model.parameters() if parameter in chosen]


_BETAS = (0.9, 0.95)
_WARMUP = 30
"""Updates over which a cold start's rate rises, where nothing else is said."""


def _adamw(parameters: list[Parameter], weight_decay: float = 0.0) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, betas=_BETAS, weight_decay=weight_decay)


def _adamw8(parameters: list[Parameter], weight_decay: float) -> torch.optim.Optimizer:
    try:
        from bitsandbytes.optim import AdamW8bit
    except ImportError as error:
        raise SetupError(
            "kernel.optimizer_bits: 8 needs bitsandbytes, which is not installed: "
            "pip install 'muarl[bits8]'"
        ) from error
    optimizer: torch.optim.Optimizer = AdamW8bit(
        parameters, betas=_BETAS, weight_decay=weight_decay
    )
    return optimizer


def _embeddings(model: PreTrainedModel) -> set[Parameter]:
    modules = (model.get_input_embeddings(), model.get_output_embeddings())
    return {parameter for module in modules for parameter in module.parameters()}


def cold_start_lr(step: int, spec: ColdStartSpec, *, steps: int) -> float:
    """Rate of a step (from 0) of so many: up to the peak linearly, then as the schedule says.

    `hold` holds it long, because copying is learned abruptly, and when it is differs by hundreds of
    steps from seed to seed: a rate that falls from the start can be too low by then.
    """
    warmup = min(_WARMUP, steps) if spec.warmup_steps is None else spec.warmup_steps
    share = (step + 1) / warmup if step < warmup else 1.0
    left = (steps - step) / max(1, steps - warmup)  # 1 after the warm-up, nearly 0 at the last
    if spec.schedule == "hold":
        share = min(share, max(0.05, (steps - step) / (0.3 * steps)))
    elif spec.schedule == "linear":
        share = min(share, left)
    elif spec.schedule == "cosine":
        share = min(share, 0.5 - 0.5 * math.cos(math.pi * min(1.0, left)))
    return spec.lr * share


def grpo_lr(iteration: int, spec: GrpoSpec) -> float:
    """Rate of an iteration (from 0): up to the peak, held, and down at the end.

        linear   end + (1 - end) * x
        cosine   end + (1 - end) * (1 - cos(pi * x)) / 2

    of the peak, where x falls from 1 to 0, which it is at the last iteration. In a run that has no more
    iterations than the decay, all of them take the rate down.
    """
    peak = spec.lr * min(1.0, (iteration + 1) / (spec.lr_warmup_iterations + 1))
    left = spec.iterations - 1 - iteration
    fall = min(spec.lr_decay_iterations, spec.iterations)
    if left >= fall:
        return peak
    x = left / fall
    if spec.lr_decay == "cosine":
        x = (1 - math.cos(math.pi * x)) / 2
    return peak * (spec.lr_end + (1 - spec.lr_end) * x)
