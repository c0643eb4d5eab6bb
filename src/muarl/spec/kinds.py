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
    return _nearest_kinds(root.data)[0] if isinstance(root.data, dict) else "domain"


def of_another_kind(data: Mapping[str, Any], model: type[Spec]) -> str:
    """What to say of a file that is a sound one of another kind; "" if it is not."""
    kind = _nearest_kinds(data)[0]
    expected = next((name for name, one in KINDS.items() if one is model), kind)
    other = KINDS[kind]
    required = {name for name, field in other.model_fields.items() if field.is_required()}
    # If it may be either, what is wrong with it says more.
    if required - data.keys() or _num_known(data, other) <= _num_known(data, model):
        return ""
    fields = [name for name in other.model_fields if name in data][1:5]
    return f"this is a {kind} file (it has {', '.join(fields)}); expected a {expected} file"


def _nearest_kinds(data: Mapping[str, Any]) -> list[str]:
    """Kinds of spec files, those first whose fields most keys are."""
    return sorted(KINDS, key=lambda kind: -_num_known(data, KINDS[kind]))


def _num_known(data: Mapping[str, Any], model: type[Spec]) -> int:
    return len(data.keys() & model.model_fields.keys())
