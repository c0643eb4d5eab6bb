"""Low-rank adapters (LoRA, arXiv 2106.09685) through peft: the model stays, small factors learn.

A linear layer with weights W [out, in] gets A [rank, in] and B [out, rank], and computes

    y = W x + (alpha / rank) · B A x

B begins as zero, so that adapters change nothing until they have learned. peft exchanges the layers
in place: the model's class, its backbone and its output layer are what they were, and all that
scores or samples with it goes on.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import Parameter
from transformers import PreTrainedModel

from muarl.errors import SetupError, did_you_mean
from muarl.kernel.shards import rewritten, state_of
from muarl.record.saving import saving
from muarl.spec.lora import LoraSpec

_NAME = "default"
"""What peft calls adapters that nobody named; it is a part of the parameters' names."""
_MARK = "lora_"
"""Begins the names of adapters' parts, and of nothing else in a model."""
_FILE = "adapter_model.safetensors"


def require_peft() -> None:
    """Look whether peft is there, without the seconds it takes to import it.

    Raises:
        SetupError: It is not.
    """
    if importlib.util.find_spec("peft") is None:
        raise SetupError(
            "adapters (`lora`) need peft, which is not installed: pip install 'muarl[lora]'"
        )


def add_adapters(model: PreTrainedModel, spec: LoraSpec, *, seed: int) -> None:
    """Give a model's linear layers adapters that change nothing yet; equal seeds, equal adapters.

    Raises:
        SetupError: peft is not installed, or the model has no layer of a name that was given.
    """
    require_peft()
    from peft import LoraConfig, inject_adapter_in_model

    config = LoraConfig(
        r=spec.rank,
        lora_alpha=spec.alpha,
        target_modules=_targets(model, spec),
        lora_dropout=spec.dropout,
    )
    inject_adapter_in_model(config, model)
    model.eval()
    _begin(model, seed)


def _targets(model: PreTrainedModel, spec: LoraSpec) -> list[str]:
    """Last names of the layers that get adapters; embeddings and output layer get none."""
    head = model.get_output_embeddings()
    layers = {
        name.rpartition(".")[2]
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and module is not head
    }
    wanted = sorted(layers) if spec.targets == "all-linear" else list(spec.targets)
    for name in wanted:
        if name not in layers:
            raise SetupError(
                f"lora.targets: {type(model).__name__} has no linear layer {name!r}"
                f"{did_you_mean(name, sorted(layers))}; it has {', '.join(sorted(layers))}"
            )
    if not wanted:
        raise SetupError(
            f"lora: {type(model).__name__} has no linear layers that could have adapters"
        )
    return wanted


def has_adapters(model: PreTrainedModel) -> bool:
    """Whether adapters are what of it is trained."""
    return hasattr(model, "peft_config")


def adapter_rank(model: PreTrainedModel) -> int:
    """Rank of its adapters."""
    rank: int = _config(model).r
    return rank


def adapter_weights(model: PreTrainedModel) -> dict[str, Parameter]:
    """Its adapters' factors by name; none if it has no adapters."""
    if not has_adapters(model):
        return {}
    return {name: part for name, part in model.named_parameters() if f".{_MARK}" in name}


@contextmanager
def adapters_off(model: PreTrainedModel) -> Iterator[None]:
    """Within the block the model is the one that its adapters were added to."""
    layers = [layer for _, layer in _layers(model)]
    for layer in layers:
        layer.enable_adapters(False)
    try:
        yield
    finally:
        for layer in layers:
            layer.enable_adapters(True)


def merged_weights(model: PreTrainedModel) -> dict[str, Tensor]:
    """The state of the model without adapters that computes the same: W + (alpha / rank) · B A."""
    weights = dict(state_of(model))
    with torch.no_grad():
        for name, layer in _layers(model):
            weights[f"{name}.base_layer.weight"] = _merged(layer)
    return {
        name.replace(".base_layer.", "."): weight
        for name, weight in weights.items()
        if f".{_MARK}" not in name
    }


def merge_adapters(model: PreTrainedModel, *, seed: int) -> None:
    """Put what the adapters learned into the model's own weights, and begin them anew.

    What then is with adapters off was on before.
    """
    with rewritten(model):
        with torch.no_grad():
            for _, layer in _layers(model):
                layer.get_base_layer().weight.copy_(_merged(layer))
        _begin(model, seed)


def save_adapters(model: PreTrainedModel, folder: Path) -> None:
    """Write adapter_config.json and adapter_model.safetensors, as peft and vLLM read them.

    Raises:
        RecordError: The disk refused.
    """
    with saving(folder, SafetensorError):
        folder.mkdir(parents=True, exist_ok=True)
        _config(model).save_pretrained(str(folder))
        weights = adapter_weights(model).items()
        save_file({_in_file(name): part.detach().clone() for name, part in weights}, folder / _FILE)


def read_adapters(model: PreTrainedModel, folder: Path, *, mend: str) -> Mapping[str, Tensor]:
    """What `save_adapters` wrote, by the names of the model's own.

    Args:
        model: They are meant for it.
        folder: Where they are.
        mend: What to do if they are damaged.

    Raises:
        SetupError: There are none in the folder, or they are damaged.
    """
    names = {_in_file(name): name for name in adapter_weights(model)}
    try:
        found = load_file(folder / _FILE)
    except (OSError, SafetensorError) as error:
        raise SetupError(f"cannot load the adapters at `{folder}`: {error}. {mend}") from error
    return {names.get(name, name): part for name, part in found.items()}


def _in_file(name: str) -> str:
    """`model.layers.0.mlp.up_proj.lora_A.default.weight` as peft writes it."""
    return "base_model.model." + name.replace(f".{_NAME}.", ".")


def _layers(model: PreTrainedModel) -> Iterator[tuple[str, Any]]:
    """Layers that have adapters, by name."""
    from peft.tuners.lora import LoraLayer

    for name, module in model.named_modules():
        if isinstance(module, LoraLayer):
            yield name, module


def _merged(layer: Any) -> Tensor:
    weight: Tensor = layer.get_base_layer().weight
    learned: Tensor = layer.get_delta_weight(_NAME)
    return weight + learned.to(weight.dtype)


def _config(model: PreTrainedModel) -> Any:
    return model.peft_config[_NAME]


def _begin(model: PreTrainedModel, seed: int) -> None:
    """A as a linear layer begins, drawn from the seed; B zero. The global generator stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for _, layer in _layers(model):
            layer.reset_lora_parameters(_NAME, True)
