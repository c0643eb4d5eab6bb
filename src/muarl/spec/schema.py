"""JSON Schemas of the spec files, for editors: generated, committed, checked fresh."""

from __future__ import annotations

import json

from muarl.spec.base import Spec
from muarl.spec.domain import DomainSpec
from muarl.spec.predicate import RewardFile
from muarl.spec.run import RunSpec
from muarl.spec.task import TasksFile

KINDS: dict[str, type[Spec]] = {
    "domain": DomainSpec,
    "tasks": TasksFile,
    "run": RunSpec,
    "reward": RewardFile,
}
"""File kind to the model of a whole file."""


def schema_files() -> dict[str, str]:
    """File name to text of every schema, `domain.v1.json` and so on."""
    return {f"{kind}.v1.json": _schema(kind, model) for kind, model in KINDS.items()}


def _schema(kind: str, model: type[Spec]) -> str:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:muarl:spec:{kind}:v1",
        **model.model_json_schema(),
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
