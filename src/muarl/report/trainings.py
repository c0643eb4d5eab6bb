"""What runs that differ by the seed of their training alone say together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from muarl.evaluate.trainings import over_trainings
from muarl.report.run_folder import RunFolder

_BESIDE = ("seed", "threads", "sinks")
"""What makes no other kind of training."""


def trainings(folders: Sequence[RunFolder], names: Sequence[str]) -> list[dict[str, Any]]:
    """Of each kind of which there are several: the names of its runs, and what `over_trainings` says.

    A training counts with the evaluation that its run is known by, the last at its first temperature. Runs
    whose specs name the domain otherwise, or are evaluated otherwise, are told apart.
    """
    kinds: dict[bytes, dict[int, tuple[str, float]]] = {}
    for folder, name in zip(folders, names, strict=True):
        seed, success = folder.spec.get("seed", 0), _success(folder.lines["eval"])
        if success is not None and isinstance(seed, int):
            spec = {key: value for key, value in folder.spec.items() if key not in _BESIDE}
            kind = msgspec.json.encode(spec, enc_hook=str, order="sorted")
            kinds.setdefault(kind, {}).setdefault(seed, (name, success))
    return [
        {
            "runs": [name for name, _ in by_seed.values()],
            "says": over_trainings({seed: value for seed, (_, value) in by_seed.items()}).says,
        }
        for by_seed in kinds.values()
        if len(by_seed) > 1
    ]


def _success(evals: Sequence[dict[str, Any]]) -> float | None:
    """Of the trained policy; None where none was evaluated."""
    temperature = evals[0].get("temperature") if evals else None
    for line in reversed(evals):
        success = line.get("success")
        if line.get("phase") == "final" and line.get("temperature") == temperature:
            value = success.get("value") if isinstance(success, dict) else success
            return float(value) if isinstance(value, int | float) else None
    return None
