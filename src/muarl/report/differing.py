"""In which settings several runs differ: what an ablation is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

_LONGEST = 60
"""Characters of a value; what is longer is read in the spec."""
_ABSENT = object()
"""What a run does not say."""
_ELSEWHERE = object()
"""What a run does not say because it lacks what it would be a part of, which has been told."""


def differing_settings(specs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each setting that is not the same in all runs: its path, and its value in each.

    What a run lacks whole is one setting; its parts are told where the runs that have it differ.

    Example:
        `{"grpo": {"lr": 1}}`, `{"grpo": {"lr": 2}}` and `{"grpo": None}` give `grpo` with
        `['{"lr":1}', '{"lr":2}', "null"]` and `grpo.lr` with `["1", "2", None]`; a value that a run lacks
        is None.
    """
    return [
        {"path": ".".join(path), "values": values} for path, values in _differing(list(specs), ())
    ]


def _differing(
    values: Sequence[Any], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], list[str | None]]]:
    texts = [_text(value) for value in values]
    if len({t for v, t in zip(values, texts, strict=True) if v is not _ELSEWHERE}) < 2:
        return
    # An empty mapping is a value, such as that of `mode: {on_policy: {}}`.
    inner = [isinstance(value, Mapping) and (bool(value) or not path) for value in values]
    is_told = path and sum(inner) < sum(value is not _ELSEWHERE for value in values)
    if is_told:
        yield path, [None if text is None else _short(text) for text in texts]
        if sum(inner) < 2:
            return
    keys = dict.fromkeys(
        key for value, has in zip(values, inner, strict=True) if has for key in value
    )
    for key in keys:
        parts = [
            value.get(key, _ABSENT) if has else _ELSEWHERE
            for value, has in zip(values, inner, strict=True)
        ]
        yield from _differing(parts, (*path, str(key)))


def _text(value: Any) -> str | None:
    if value is _ABSENT or value is _ELSEWHERE:
        return None
    return msgspec.json.encode(value, enc_hook=str).decode()


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
