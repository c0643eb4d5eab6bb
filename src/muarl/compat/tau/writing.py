"""Writes an imported domain: an ordinary folder that `muarl check` reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from muarl.compat.tau.importer import Made, as_json
from muarl.spec.schema import schema_files

_TOOLS_PY = '''\
"""Official {domain} tasks on muarl's own tools; written by `muarl import`."""

from muarl.compat.tau.imported import {generation}

domain = {generation}("{domain}", __file__)
{names} = {values}
'''
_STOPS = {
    "Tau1": ["###STOP###"],
    "Tau2": ["###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###"],
}
_MAX_RESULT_CHARS = 200_000
"""More than any official answer has: none is cut."""


def write(made: Made, below: Path) -> Path:
    """Write a domain into its folder.

    Args:
        made: The domain.
        below: Where its folder is made.

    Returns:
        The folder.

    Raises:
        OSError: A file cannot be written.
    """
    folder = below / made.folder
    schemas = folder / "schemas"
    schemas.mkdir(parents=True, exist_ok=True)
    for name, text in schema_files().items():
        (schemas / name).write_text(text, encoding="utf-8")
    for name, content in made.files.items():
        text = content if isinstance(content, str) else as_json(content)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "tools.py").write_text(_tools_py(made), encoding="utf-8")
    (folder / "domain.yaml").write_text(_yaml(made, made.splits), encoding="utf-8")
    for split, ids in made.more_splits.items():
        (folder / f"{split}.yaml").write_text(_yaml(made, {split: ids}), encoding="utf-8")
    return folder


def _names(made: Made) -> list[str]:
    names = ["serve", "tasks", "reward", "training_reward"]
    if made.generation == "Tau2":
        names.append("partial")
    names.append("expert" if made.user_writes is None else "serve_user")
    if made.syncs:
        names.append("sync")
    return names


def _tools_py(made: Made) -> str:
    names = _names(made)
    return _TOOLS_PY.format(
        domain=made.upstream_domain,
        generation=made.generation,
        names=", ".join(names),
        values=", ".join(f"domain.{name}" for name in names),
    )


def _yaml(made: Made, splits: Mapping[str, Sequence[str]]) -> str:
    """A domain's file; values are in flow style, which JSON is."""
    lines: list[tuple[str, Any]] = [
        ("version", 1),
        ("id", made.id),
        ("summary", made.summary),
        ("rules", {"file": "rules.md"}),
        ("tools", _served("serve")),
        ("writes", made.writes),
        ("terminal", made.terminal),
        ("world", {"file": "world.json"}),
    ]
    if made.user_writes is not None:
        device: dict[str, Any] = {
            "tools": _served("serve_user"),
            "writes": made.user_writes,
            "world": {"file": "device.json"},
        }
        if made.syncs:
            device["sync"] = [{"python": "tools.py:sync"}]
        lines.append(("device", device))
    prompts = [name for name in made.files if name.startswith("simulator-")]
    lines += [
        (
            "tasks",
            {
                "python": "tools.py:tasks",
                "splits": {name: len(ids) for name, ids in splits.items()},
            },
        ),
        (
            "simulator",
            {
                "stops": _STOPS[made.generation],
                **{
                    name.removeprefix("simulator-").removesuffix(".md"): {"file": name}
                    for name in prompts
                },
            },
        ),
        ("personas", {"official": {"style": "As the benchmark's own prompt has her."}}),
        *([("expert", "tools.py:expert")] if made.user_writes is None else []),
        ("reward", [{"gold_world": True}]),
        ("benchmark", {"name": made.benchmark, "unsolved": made.unsolved}),
    ]
    said = "\n".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in lines)
    said = said.replace("\nreward:", f"\n{_OWN_REWARD}\nreward:")
    return f"# yaml-language-server: $schema=schemas/domain.v1.json\n# {_NOTE}\n{said}\n"


_NOTE = "Written by `muarl import`; what it was made from stands in origin.json."
_OWN_REWARD = "# Each task has the official reward of its own; this one counts for none."


def _served(function: str) -> dict[str, Any]:
    return {
        "python": f"tools.py:{function}",
        "stateless": True,
        "verbatim": True,
        "max_result_chars": _MAX_RESULT_CHARS,
    }
