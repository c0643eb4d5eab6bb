"""From a user's copy of ACEBench to domains of muarl that run on our tools.

A domain has one set of tools, and an entry has its own; so entries that share classes, functions,
language and kind become a domain. Nothing is downloaded, and nothing of the copy is executed.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from muarl.compat.acebench.entries import KINDS, LANGUAGES, Entry, entries, first_records
from muarl.compat.acebench.environment import NO_QUESTIONS
from muarl.compat.acebench.imported import ENTRIES, FINISHED, RECORDS
from muarl.compat.python_text import parsed, texts
from muarl.compat.upstream import Upstream
from muarl.errors import RecordError, SetupError
from muarl.spec.schema import schema_files

_FILES = tuple(
    f"data_{language}/{folder}data_agent_{kind}.json"
    for language in LANGUAGES
    for folder in ("", "possible_answer/")
    for kind in KINDS
)
_LAYOUTS = ("data_all", ".", "acebench", "..")
_PROMPTS = "model_inference/multi_turn/APIModel_user.py"
_RULES = {"en": "model_inference/prompt_en.py", "zh": "model_inference/prompt_zh.py"}
_PATIENCE = 40
"""More messages than upstream allows."""
_WRITES = {
    *("turn_on_wifi", "login_device", "send_message", "delete_message", "add_reminder"),
    *("delete_reminder", "login_food_platform", "add_food_delivery_order"),
    *("reserve_flight", "modify_flight", "cancel_reservation"),
}
_SCRIPT = {
    "understands": {"done": [FINISHED]},
    "phrasings": {
        "any": {
            "open": ["{request}"],
            "ask:solve": ["{question}"],
            "unclear": [NO_QUESTIONS],
            "stop": [FINISHED],
            "abandon": [FINISHED],
        }
    },
}
"""How the other side of multi_step speaks: it tells the task, and has one sentence for all that is no
call. Upstream has that in English for both languages."""
_TOOLS_PY = '''\
"""Official ACEBench entries on muarl's own tools; written by `muarl import`."""

from muarl.compat.acebench.imported import Imported

domain = Imported(__file__)
serve, world, tasks, expert = domain.serve, domain.world, domain.tasks, domain.expert
end_to_end, strict = domain.end_to_end, domain.strict
process, strict_process = domain.process, domain.strict_process
'''


def write_domains(
    source: Path, target: Path, *, accept_unknown: bool = False, overwrite: bool = False
) -> list[Path]:
    """Write a folder for each set of classes and functions.

    Args:
        source: The copy, or its folder with `data_en` and `data_zh`. Only a whole copy has the
            prompts of user and agent; without them the user is told her task and no more.
        target: Where the folders are made.
        accept_unknown: Go on where a file is of no known version.
        overwrite: Replace files of folders that are there already.

    Returns:
        The folders.

    Raises:
        SetupError: The copy lacks something or is of no known version; or nothing can be written.
    """
    upstream = Upstream(source, _LAYOUTS, {})
    for name in _FILES:
        upstream.data(f"acebench/{name}", name)
    if not accept_unknown:
        upstream.refuse_unknown()
    data = upstream.path(_FILES[0])
    assert data is not None  # it was read
    schemas = schema_files()
    written = []
    try:
        for name, group in _groups(data.parents[1]):
            folder = target / name
            if folder.exists() and not overwrite:
                raise SetupError(f"{folder} is there already; replace its files with --overwrite")
            _write(folder, group, data.parents[1], upstream)
            _write_schemas(folder / "schemas", schemas)
            written.append(folder)
    except RecordError as error:
        raise SetupError(str(error)) from None
    except OSError as error:
        raise SetupError(f"cannot write {error.filename or target}: {error.strerror}") from error
    return written


def _groups(data: Path) -> Iterator[tuple[str, list[Entry]]]:
    """Entries that share a domain, under its name."""
    for language in LANGUAGES:
        for kind in KINDS:
            groups: dict[str, list[Entry]] = {}
            for entry in entries(data, language, kind).values():
                groups.setdefault(_name(entry), []).append(entry)
            yield from groups.items()


def _name(entry: Entry) -> str:
    """`en-multi-turn-base-message-15`: language, kind, classes, how many functions."""
    classes = [re.sub(r"(Api|Platform)$", "", name).lower() for name in entry.involved]
    kind = entry.kind.replace("_", "-")
    return "-".join([entry.language, kind, *classes, str(len(entry.functions))])


def _write(folder: Path, group: Sequence[Entry], data: Path, upstream: Upstream) -> None:
    first = group[0]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ENTRIES).write_bytes(msgspec.json.encode(group))
    (folder / RECORDS).write_bytes(msgspec.json.encode(first_records(data, first.language)))
    (folder / "origin.json").write_text(json.dumps(_origin(upstream)) + "\n", encoding="utf-8")
    (folder / "tools.py").write_text(_TOOLS_PY, encoding="utf-8")
    (folder / "rules.md").write_text(_rules(first, upstream), encoding="utf-8")
    (folder / "simulator-prompt.md").write_text(_prompt(first, upstream), encoding="utf-8")
    (folder / "domain.yaml").write_text(_yaml(folder.name, group, upstream), encoding="utf-8")


def _write_schemas(folder: Path, schemas: Mapping[str, str]) -> None:
    folder.mkdir(exist_ok=True)
    for name, text in schemas.items():
        (folder / name).write_text(text, encoding="utf-8")


def _yaml(name: str, group: Sequence[Entry], upstream: Upstream) -> str:
    """The domain's file; values are in flow style, which JSON is."""
    first = group[0]
    offered = [function["name"] for function in first.functions]
    lines: dict[str, Any] = {
        "version": 1,
        "id": f"acebench-{name}",
        "summary": f"ACEBench agent, {first.language} {first.kind}: {', '.join(first.involved)}.",
        "rules": {"file": "rules.md"},
        "tools": {
            "python": "tools.py:serve",
            "stateless": True,
            "verbatim": True,
            "max_result_chars": 200_000,
        },
        "writes": [tool for tool in offered if tool in _WRITES],
        "world": {"python": "tools.py:world"},
        "tasks": {"python": "tools.py:tasks", "splits": {"test": len(group)}},
        "personas": {
            "official": {"style": "As the benchmark's own prompt has her.", "patience": _PATIENCE}
        },
        "expert": "tools.py:expert",
        "reward": [{"gold_world": True}],
        "benchmark": {"name": "ACEBench"},
    }
    if first.kind == "multi_turn":
        lines["simulator"] = {
            "prompt": {"file": "simulator-prompt.md"},
            "stops": [FINISHED],
            **_greeting(first, upstream),
        }
    else:
        lines["user"] = _SCRIPT
    said = "\n".join(
        f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in lines.items()
    )
    return f"# yaml-language-server: $schema=schemas/domain.v1.json\n{_NOTE}\n{said}\n"


_NOTE = """\
# Written by `muarl import`; what it was made from stands in origin.json. Each task has the official reward of its own; the one here counts for none."""


def _rules(entry: Entry, upstream: Upstream) -> str:
    """What the agent follows: upstream's rules of the classes, and how a task without a user ends.

    Upstream's instructions on how to write calls into a text are left out: our agent calls tools.
    """
    found = texts(_module(upstream, _RULES[entry.language]))
    language = entry.language.upper()
    parts = [
        found.get(f"{part}_PROMPT_{language}", "")
        for part, name in (("TRAVEL", "Travel"), ("BASE", "BaseApi"))
        if name in entry.involved and entry.kind == "multi_turn"
    ]
    if entry.kind == "multi_step":
        parts.append(
            f"Solve the task with the tools, step by step. When it is solved, say: {FINISHED}"
        )
    said = "\n\n".join(part.strip() for part in parts if part.strip())
    return said or "Help the user with the tools. Ask for what you need to know."


def _prompt(entry: Entry, upstream: Upstream) -> str:
    found = texts(_module(upstream, _PROMPTS))
    part = "BASE" if "BaseApi" in entry.involved else "TRAVEL"
    prompt = found.get(f"SYSTEM_PROMPT_{part}_{entry.language.upper()}", "{instruction}")
    return prompt.replace("{instruction}", "{goal}")


def _greeting(entry: Entry, upstream: Upstream) -> dict[str, str]:
    """What the user answers to with her first message: the text of a message in upstream's code."""
    for node in ast.walk(_module(upstream, _PROMPTS)):
        match node:
            case ast.Dict(
                keys=[ast.Constant(value="role"), ast.Constant(value="content")],
                values=[ast.Constant(value="user"), ast.Constant(value=str() as text)],
            ) if text.isascii() == (entry.language == "en"):
                return {"greeting": text}
    return {}


def _module(upstream: Upstream, name: str) -> ast.Module:
    """A module as a tree, which is empty where there is no such file."""
    path = upstream.path(name)
    return ast.Module([], []) if path is None else parsed(upstream.text(None, name), path)


def _origin(upstream: Upstream) -> dict[str, Any]:
    files = {
        name: {"id": content_id, "version": upstream.versions(name)}
        for name, content_id in sorted(upstream.read.items())
    }
    return {"benchmark": "acebench", "files": files}
