"""JSON Schemas of the spec files, for editors: generated, committed, checked fresh."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any, get_args

from muarl.spec.base import Spec
from muarl.spec.domain import DomainSpec
from muarl.spec.grid import GridSpec
from muarl.spec.plugged import installed_shown
from muarl.spec.predicate import RewardFile
from muarl.spec.run import RunSpec
from muarl.spec.suite import SuiteSpec
from muarl.spec.synth import SynthSpec
from muarl.spec.task import TasksFile

KINDS: dict[str, type[Spec]] = {
    "domain": DomainSpec,
    "tasks": TasksFile,
    "run": RunSpec,
    "reward": RewardFile,
    "grid": GridSpec,
    "suite": SuiteSpec,
    "synth": SynthSpec,
}
"""File kind to the model of a whole file."""


OVERLAY = "overlay"
"""What a part of a run file is called, which is laid over another."""


def schema_name(kind: str) -> str:
    """File name of a kind's schema, `domain.v1.json`."""
    return f"{kind}.v{newest_version(KINDS.get(kind, RunSpec))}.json"


def newest_version(model: type[Spec]) -> int:
    """The version of a file kind's form that this muarl writes, and its model describes."""
    (version,) = get_args(model.model_fields["version"].annotation)
    return int(version)


def schema_files(*, installed: bool = False) -> dict[str, str]:
    """File name to text of every schema, `domain.v1.json` and so on.

    Args:
        installed: They know the plug-ins that are installed here, and refuse all others.
    """
    with installed_shown() if installed else nullcontext():
        return _schema_files()


def _schema_files() -> dict[str, str]:
    schemas = {kind: model.model_json_schema() for kind, model in KINDS.items()}
    schemas["tasks"] = _with_defaults(schemas["tasks"])
    for kind in ("run", "synth"):
        schemas[kind] = _or_base(schemas[kind])
    schemas[OVERLAY] = {**_partial(RunSpec.model_json_schema()), "required": ["version"]}
    return {schema_name(kind): _schema(kind, schema) for kind, schema in schemas.items()}


def _with_defaults(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of tasks, where a task must give only what the file's defaults do not."""
    needed = [("goal",), ("personas",), ("gold",), ("user", "requests")]
    schema["$defs"]["TaskSpec"]["required"] = ["id"]
    del schema["$defs"]["UserGoalSpec"]["required"]
    schema["allOf"] = []
    for *above, last in needed:
        given: dict[str, Any] = {"required": [last]}
        missing: dict[str, Any] = {"required": [last]}
        for key in above:
            given = {"properties": {key: {"type": "object", **given}}, "required": [key]}
            missing = {"properties": {key: missing}}
        schema["allOf"].append(
            {
                "if": {"properties": {"defaults": given}, "required": ["defaults"]},
                "else": {"properties": {"tasks": {"items": missing}}},
            }
        )
    return schema


def _or_base(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of files with a `base`, where what is required may stand in the files that one is laid over."""
    required = [key for key in schema["required"] if key != "version"]
    schema["required"] = ["version"]
    schema["anyOf"] = [{"required": ["base"]}, {"required": required}]
    return schema


def _partial(schema: Any) -> Any:
    """A schema of what may hold any part of what another describes."""
    if isinstance(schema, dict):
        is_model = "properties" in schema
        return {k: _partial(v) for k, v in schema.items() if not (is_model and k == "required")}
    return [_partial(item) for item in schema] if isinstance(schema, list) else schema


def _schema(kind: str, schema: dict[str, Any]) -> str:
    version = newest_version(KINDS.get(kind, RunSpec))
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:muarl:spec:{kind}:v{version}",
        **schema,
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
