"""Checkpoints: weights, optimizer state and counters on disk, whole or not at all.

    checkpoint/
        000003/                 a complete older one, in case
        000004/                 the newest
            config.json, model.safetensors    in Hugging Face form
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
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from muarl.errors import RecordError, SetupError
from muarl.kernel.model import (
    copy_weights,
    load_model,
    save_model,
    tensors_checksum,
    weights_checksum,
)
from muarl.kernel.step import Trainer
from muarl.record.saving import saving
from muarl.record.whole import whole_folder

CHECKPOINT_VERSION = 1
Counters = Mapping[str, int | float | str]


class _State(msgspec.Struct):
    """What `state.json` holds."""

    version: int
    num_updates: int
    weights: str
    optimizer: str
    counters: dict[str, int | float | str]


def save_checkpoint(folder: Path, trainer: Trainer, counters: Counters, *, keep: int = 2) -> Path:
    """Save all that the next update depends on, as the newest checkpoint of a folder.

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
    with saving(folder, SafetensorError):
        return _save(folder, trainer, counters, keep)


def _save(folder: Path, trainer: Trainer, counters: Counters, keep: int) -> Path:
    older = _complete(folder)
    target = folder / f"{int(older[-1].name) + 1 if older else 1:06d}"
    with whole_folder(target) as draft:
        save_model(trainer.model, draft)
        state = {name: value.contiguous() for name, value in trainer.optimizer.state().items()}
        save_file(state, draft / "optimizer.safetensors")
        content = {
            "version": CHECKPOINT_VERSION,
            "num_updates": trainer.num_updates,
            "weights": weights_checksum(trainer.model),
            "optimizer": tensors_checksum(state),
            "counters": dict(counters),
        }
        (draft / "state.json").write_text(json.dumps(content, indent=1), encoding="utf-8")
    for path in older[: max(0, len(older) + 1 - keep)]:
        shutil.rmtree(path)
    return target


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
        saved = load_model(path, dtype=trainer.model.dtype)
        moments = load_file(path / "optimizer.safetensors")
    except (OSError, SafetensorError, SetupError) as error:
        raise RecordError(f"checkpoint `{path}` is damaged: {error}") from error
    for what, found, expected in (
        ("weights are", weights_checksum(saved), state.weights),
        ("optimizer state is", tensors_checksum(moments), state.optimizer),
    ):
        if found != expected:
            raise RecordError(
                f"checkpoint `{path}` is damaged: its {what} not what it was saved with. "
                "Remove the folder to resume from the one before"
            )
    ours, theirs = (dict(model.named_parameters()) for model in (trainer.model, saved))
    shapes = [{name: tuple(p.shape) for name, p in side.items()} for side in (ours, theirs)]
    if shapes[0] != shapes[1]:
        raise RecordError(f"checkpoint `{path}` is of a model of another shape than the run's")
    trainer.optimizer.load_state(moments)
    copy_weights(saved, trainer.model)
    trainer.num_updates = state.num_updates
    return state.counters


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
            f"checkpoint `{path}` is damaged: state.json: {error}. "
            "Remove the folder to resume from the one before"
        ) from error
    raise RecordError(
        f"checkpoint `{path}` has version {version}, this muarl reads {CHECKPOINT_VERSION}; "
        "use the muarl that wrote it"
    )
