"""The committed JSON Schemas are what the models say, and describe every field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML
from spec_files import DOMAIN, GRID, RUN, TASKS

from muarl.spec.base import Spec
from muarl.spec.schema import KINDS, schema_files

COMMITTED = Path(__file__).parents[2] / "specs" / "schemas"
SCHEMAS: dict[str, Any] = {name: json.loads(text) for name, text in schema_files().items()}


def all_models(model: type[Spec] = Spec) -> Iterator[type[Spec]]:
    for below in model.__subclasses__():
        yield below
        yield from all_models(below)


def test_the_committed_schemas_are_fresh() -> None:
    committed = {path.name: path.read_text(encoding="utf-8") for path in COMMITTED.iterdir()}
    assert committed == schema_files(), "run `muarl schema`"


@pytest.mark.parametrize("model", list(all_models()), ids=lambda model: model.__name__)
def test_every_field_says_what_it_means(model: type[Spec]) -> None:
    assert model.__doc__
    undescribed = [name for name, field in model.model_fields.items() if not field.description]
    assert undescribed == []


def test_each_file_kind_has_an_id_and_its_fields() -> None:
    for kind, model in KINDS.items():
        schema = SCHEMAS[f"{kind}.v1.json"]
        assert schema["$id"] == f"urn:muarl:spec:{kind}:v1"
        assert list(schema["properties"]) == list(model.model_fields)
        assert schema["additionalProperties"] is False


@pytest.mark.parametrize(
    ("kind", "text"), [("domain", DOMAIN), ("tasks", TASKS), ("run", RUN), ("grid", GRID)]
)
def test_an_editor_accepts_a_sound_file_and_marks_a_typo(kind: str, text: str) -> None:
    validator = jsonschema.Draft202012Validator(SCHEMAS[f"{kind}.v1.json"])
    data = YAML(typ="safe", pure=True).load(text)
    validator.validate(data)
    with pytest.raises(jsonschema.ValidationError, match="'verzion' was unexpected"):
        validator.validate({**data, "verzion": 1})
