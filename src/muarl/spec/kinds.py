"""Which kind of spec file a document is, told by its fields."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muarl.spec.base import Spec
from muarl.spec.document import parse_document
from muarl.spec.schema import KINDS
from muarl.spec.source import read_source


def kind_of(path: str | Path) -> str:
    """What kind of spec file this is by its fields, sound or not: a key of `KINDS`.

    Raises:
        SpecError: It cannot be read.
    """
    root, _ = parse_document(read_source(Path(path)), str(path))
    return kind_of_document(root.data) if isinstance(root.data, dict) else "domain"


def kind_of_document(data: Mapping[str, Any]) -> str:
    """What kind of spec file this is, or a part of: a key of `KINDS`."""
    return _nearest_kinds(data)[0]


def is_overlay(path: Path) -> bool:
    """Whether a file holds a part of a run file, to be laid over one.

    Raises:
        SpecError: It cannot be read.
    """
    if path.is_dir():
        return False
    root, _ = parse_document(read_source(path), str(path))
    return isinstance(root.data, dict) and is_part_of_run(root.data)


def is_part_of_run(data: Mapping[str, Any]) -> bool:
    """Whether a document is no whole run file, but may be laid over one."""
    whole = "base" in data or {"domain", "model"} <= data.keys()
    return kind_of_document(data) == "run" and not whole


def of_another_kind(data: Mapping[str, Any], model: type[Spec]) -> str:
    """What to say of a file that is a sound one of another kind; "" if it is not."""
    kind = _nearest_kinds(data)[0]
    expected = next((name for name, one in KINDS.items() if one is model), kind)
    other = KINDS[kind]
    # If it may be either, what is wrong with it says more.
    known, lacking = _num_known(data, model), _lacking(data, model)
    if _lacking(data, other) or (_num_known(data, other) <= known and len(lacking) <= known):
        return ""
    fields = [name for name in other.model_fields if name in data][1:5]
    return f"this is a {kind} file (it has {', '.join(fields)}); expected a {expected} file"


def _nearest_kinds(data: Mapping[str, Any]) -> list[str]:
    """Kinds of spec files, those first whose fields most keys are, and that lack least."""
    return sorted(
        KINDS, key=lambda kind: (-_num_known(data, KINDS[kind]), len(_lacking(data, KINDS[kind])))
    )


def _lacking(data: Mapping[str, Any], model: type[Spec]) -> set[str]:
    required = {name for name, field in model.model_fields.items() if field.is_required()}
    return required - data.keys()


def _num_known(data: Mapping[str, Any], model: type[Spec]) -> int:
    return len(data.keys() & model.model_fields.keys())
