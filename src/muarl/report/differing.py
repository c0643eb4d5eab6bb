"""In which settings several runs differ: what an ablation is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


def differing_settings(specs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each setting that is not the same in all runs: its path, and its value in each.

    Example:
        `{"grpo": {"lr": 1}}` and `{"grpo": {"lr": 2}}` give
        `[{"path": "grpo.lr", "values": ["1", "2"]}]`; a value that a run lacks is None.
    """
    flat = [dict(_leaves(spec, ())) for spec in specs]
    paths = dict.fromkeys(path for leaves in flat for path in leaves)
    found = []
    for path in paths:
        values = [leaves.get(path) for leaves in flat]
        if len(set(values)) > 1:
            found.append({"path": ".".join(path), "values": values})
    return found


def _leaves(value: Any, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], str]]:
    if isinstance(value, Mapping) and value:
        return [leaf for key, inner in value.items() for leaf in _leaves(inner, (*path, str(key)))]
    return [(path, msgspec.json.encode(value, enc_hook=str).decode())]
