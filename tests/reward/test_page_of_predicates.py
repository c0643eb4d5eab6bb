"""docs/predicates.md names every predicate and every field of it."""

from __future__ import annotations

import re
from pathlib import Path

from muarl.spec import PredicateSpec
from muarl.spec.base import Spec
from muarl.spec.predicate import SideTerm, Weighted
from muarl.spec.predicate_kinds import (
    Called,
    Confirmed,
    Counted,
    JudgeSpec,
    NeverCalled,
    Preceded,
    PythonSpec,
    Said,
    SqlValue,
    WorldAt,
)

PAGE = Path(__file__).parents[2] / "docs" / "predicates.md"
MODELS: dict[str, list[type[Spec]]] = {
    "world": [WorldAt],
    "sql": [SqlValue],
    "called": [Called],
    "never_called": [NeverCalled],
    "said": [Said],
    "count": [Counted],
    "confirmed": [Confirmed],
    "preceded": [Preceded],
    "judge": [JudgeSpec],
    "python": [PythonSpec],
    "weighted": [Weighted, SideTerm],
}
TESTS = {"equals", "one_of", "matches", "changed"}


def test_the_table_has_every_predicate_with_every_field() -> None:
    rows: dict[str, str] = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            for key in re.findall(r"`(\w+)`", line.split("|")[1]):
                rows[key] = line
    assert set(rows) == {name.removesuffix("_") for name in PredicateSpec.model_fields}
    for key, models in MODELS.items():
        fields = {field for model in models for field in model.model_fields} - TESTS
        assert fields <= set(re.findall(r"`(\w+)`", rows[key])), key
    assert set(re.findall(r"`(\w+)`", PAGE.read_text(encoding="utf-8"))) >= TESTS
