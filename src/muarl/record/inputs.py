"""What no output ever replaces: what is read for it, and what a run's folder is made of."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from muarl.errors import SetupError
from muarl.record.claim import LOCK

OWN = frozenset(
    {
        LOCK,
        "spec.resolved.yaml",
        "versions.json",
        "plan.json",
        "domain.json",
        "metrics.jsonl",
        "log.jsonl",
        "episodes.journal",
        "batches.jsonl",
        "learned.jsonl",
        "grid.json",
        "model",
        "tokenizer",
        "cold_start",
        "base",
        "best",
        "checkpoint",
        "user_model",
        "user_cold_start",
        "user_base",
        "user_checkpoint",
        "user_past",
    }
)
"""What a run's folder holds that only a run writes; a report can be written again at any time."""

_TELLTALES = ("spec.resolved.yaml", "episodes.journal")
"""A folder that holds one of these is a run's."""


def refuse_inputs(path: Path, reads: Iterable[Path] = ()) -> None:
    """Make sure that an output takes nobody's place, whatever `--overwrite` says.

    Args:
        path: Where the output goes.
        reads: Files and folders that are read for it. An output may lie in such a folder.

    Raises:
        SetupError: Something of `reads` is there or below, or it is one of a run's own files.
    """
    real = Path(os.path.realpath(path))  # does without links that lead in a circle
    for needed in reads:
        if Path(os.path.realpath(needed)).is_relative_to(real):
            raise SetupError(f"{path} would replace {needed}, which is read; name another place")
    for folder in real.parents:
        inside = real.relative_to(folder).parts[0]
        if inside in OWN and any((folder / name).exists() for name in _TELLTALES):
            raise SetupError(
                f"{path} is among the files of the run in {folder}, and stays as it is; "
                "name another place"
            )
