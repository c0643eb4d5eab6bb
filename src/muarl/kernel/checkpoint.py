"""Checkpoints: weights, optimizer state and counters on disk, whole or not at all.

    checkpoint/
        000003/                 a complete older one, in case
        000004/                 the newest
            config.json, model.safetensors    in Hugging Face form; or, where adapters are trained,
            adapter_config.json, adapter_model.safetensors    those alone, in peft's form
            optimizer.safetensors             moments and counters of the optimizer
            state.json                        counters, and checksums of the two above
        .000005.writing/        what a killed process left; the next save removes it

A checkpoint is written beside the others, flushed to disk and only then renamed, so a kill at any
moment leaves the previous one as the newest. Nothing is pickled: reading one runs no code.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel

from muarl.errors import RecordError, SetupError
from muarl.kernel.lora import adapter_weights, has_adapters, read_adapters, save_adapters
from muarl.kernel.model import RESTORE, load_model, save_model, tensors_checksum
from muarl.kernel.shards import rewritten, whole
from muarl.kernel.step import Trainer
from muarl.record.saving import saving
from muarl.record.whole import whole_folder

CHECKPOINT_VERSION = 1
Counters = Mapping[str, int | float | str]

_BEFORE = "Remove that folder to resume from the one before, or use --overwrite to start anew"


class _State(msgspec.Struct):
    """What `state.json` holds."""

    version: int
    num_updates: int
    weights: str
    optimizer: str
    counters: dict[str, int | float | str]


def save_checkpoint(folder: Path, trainer: Trainer, counters: Counters, *, keep: int = 2) -> Path:
    """Save all that the next update depends on, as the newest checkpoint of a folder.

    Of several ranks all call, and the first one writes. What is written does not depend on how many
    there are: any number can take it up.

    Args:
        folder: Holds the checkpoints of one run; made if missing.
        trainer: Its model, optimizer and number of updates are saved.
        counters: The caller's own place in the run (phase, iteration, ...), as JSON.
        keep: How many checkpoints to leave, this one included.

    Returns:
        The new checkpoint's folder.

    Raises:
        RecordError: The disk refused; the newest checkpoint is the one before.
    """
    with whole(trainer.model), saving(folder, SafetensorError):
        state = trainer.optimizer.state(kept=trainer.ranks.is_first)
        if trainer.ranks.is_first:
            _save(folder, trainer, state, counters, keep)
    trainer.ranks.meet()
    return _complete(folder)[-1]


def _save(
    folder: Path, trainer: Trainer, moments: Mapping[str, Tensor], counters: Counters, keep: int
) -> None:
    older = _complete(folder)
    target = folder / f"{int(older[-1].name) + 1 if older else 1:06d}"
    with whole_folder(target) as draft:
        if has_adapters(trainer.model):
            save_adapters(trainer.model, draft)
        else:
            save_model(trainer.model, draft)
        state = {name: value.contiguous() for name, value in moments.items()}
        save_file(state, draft / "optimizer.safetensors")
        content = {
            "version": CHECKPOINT_VERSION,
            "num_updates": trainer.num_updates,
            "weights": tensors_checksum(trained_weights(trainer.model)),
            "optimizer": tensors_checksum(state),
            "counters": dict(counters),
        }
        (draft / "state.json").write_text(json.dumps(content, indent=1), encoding="utf-8")
    for path in older[: max(0, len(older) + 1 - keep)]:
        shutil.rmtree(path)


def drop_checkpoints(folder: Path, unwanted: Callable[[Mapping[str, Any]], bool]) -> None:
    """Remove the newest checkpoints as long as their counters are unwanted.

    Raises:
        RecordError: The disk refused, or one is damaged.
    """
    with saving(folder):
        for path in reversed(_complete(folder)):
            if not unwanted(_read_state(path).counters):
                return
            shutil.rmtree(path)


def read_counters(folder: Path) -> dict[str, Any] | None:
    """The counters of the newest checkpoint; None if there is none yet.

    Raises:
        RecordError: It is damaged, or of a newer version of muarl.
    """
    complete = _complete(folder)
    return _read_state(complete[-1]).counters if complete else None


def load_checkpoint(folder: Path, trainer: Trainer) -> dict[str, Any]:
    """Take up the newest checkpoint, in place: the next update is the one that would have come.

    Args:
        folder: As given to `save_checkpoint`.
        trainer: With a model of the same shape and an optimizer of the same kind.

    Returns:
        The counters it was saved with.

    Raises:
        RecordError: There is none, it is damaged, or it does not fit the trainer.
    """
    complete = _complete(folder)
    if not complete:
        raise RecordError(f"no checkpoint in `{folder}`: there is nothing to resume")
    path = complete[-1]
    state = _read_state(path)
    try:
        saved = read_weights(trainer.model, path, path, mend=_BEFORE)
        moments = load_file(path / "optimizer.safetensors")
    except (OSError, SafetensorError) as error:
        raise RecordError(f"checkpoint `{path}` is damaged: {error}. {_BEFORE}") from error
    except SetupError as error:
        raise RecordError(f"checkpoint `{path}` is damaged: {error}") from error
    for what, found, expected in (
        ("weights are", tensors_checksum(saved), state.weights),
        ("optimizer state is", tensors_checksum(moments), state.optimizer),
    ):
        if found != expected:
            raise RecordError(
                f"checkpoint `{path}` is damaged: its {what} not what it was saved with. {_BEFORE}"
            )
    ours = trained_weights(trainer.model)
    shapes = [{name: tuple(p.shape) for name, p in side.items()} for side in (ours, saved)]
    if shapes[0] != shapes[1]:
        raise RecordError(
            f"checkpoint `{path}` is of a model of another shape than the run's. Take the model that the "
            "run was begun with, or use --overwrite to start anew"
        )
    trainer.optimizer.load_state(moments)
    set_weights(trainer.model, saved)
    trainer.num_updates = state.num_updates
    return state.counters


def trained_weights(model: PreTrainedModel) -> Mapping[str, Tensor]:
    """What training may move, by name: the adapters if it has any, else all parameters."""
    return adapter_weights(model) or dict(model.named_parameters())


def set_weights(model: PreTrainedModel, weights: Mapping[str, Tensor]) -> None:
    """Give a model other values of what is trained, in place."""
    with torch.no_grad(), rewritten(model):
        for name, parameter in trained_weights(model).items():
            parameter.copy_(weights[name])


def read_weights(
    model: PreTrainedModel, weights_dir: Path, adapters_dir: Path, *, mend: str = RESTORE
) -> Mapping[str, Tensor]:
    """What was saved of them, by name.

    Args:
        model: They are meant for it.
        weights_dir: Folder of a model without adapters, if `model` has none.
        adapters_dir: Folder of adapters, if it has some.
        mend: What to do if it is damaged.

    Raises:
        SetupError: There is nothing of the kind there, or it is damaged.
    """
    if has_adapters(model):
        return read_adapters(model, adapters_dir, mend=mend)
    return dict(load_model(weights_dir, dtype=model.dtype, mend=mend).named_parameters())


def _complete(folder: Path) -> list[Path]:
    """Complete checkpoints, oldest first."""
    return sorted(path for path in folder.glob("[0-9]*") if path.name.isdecimal())


def _read_state(path: Path) -> _State:
    try:
        raw = (path / "state.json").read_bytes()
        version = msgspec.json.decode(raw, type=dict[str, Any]).get("version")
        if version == CHECKPOINT_VERSION:
            return msgspec.json.decode(raw, type=_State)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RecordError(
            f"checkpoint `{path}` is damaged: state.json: {error}. {_BEFORE}"
        ) from error
    raise RecordError(
        f"checkpoint `{path}` has version {version}, this muarl reads {CHECKPOINT_VERSION}; "
        "use the muarl that wrote it"
    )
