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

from muarl.compat.acebench.entries import (
    KINDS,
    LANGUAGES,
    Entry,
    Kind,
    entries,
    first_records,
)
from muarl.compat.acebench.environment import NO_QUESTIONS
from muarl.compat.acebench.imported import ENTRIES, FINISHED, RECORDS
from muarl.compat.acebench.prompting import PROMPT, Prompt
from muarl.compat.imported_folder import domain_yaml
from muarl.compat.python_text import filled, parsed, texts
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
_AGENTS: Mapping[Kind, tuple[str, ...]] = {
    "multi_turn": tuple(
        f"model_inference/multi_turn/{file}.py" for file in ("common_agent", "APIModel_agent")
    ),
    "multi_step": tuple(
        f"model_inference/multi_step/{file}.py" for file in ("common_agent_step", "APIModel_agent")
    ),
}
"""By kind, the files that have the words for models on this machine, or else for those behind an API."""
_OWN_WORDS = (
    "What a prompted model is told is worded by muarl, in English: the copy that was imported has no "
    "model_inference/multi_turn/common_agent.py."
)
_OWN_SYSTEM = f"""\
You carry out tasks with functions. To call some write their calls, and nothing else: \
[first_function(name='value', number=2), second_function()]
What they gave is shown to you. {{ending}} When all is done, write: {FINISHED}"""
_OWN_USER = "The functions:\n{functions}\n\nWhat happened so far:\n{history}"
_OWN_ENDING = {
    "multi_turn": "Whatever else you write is read by the user; ask her for what you need to know.",
    "multi_step": "There is nobody to ask.",
}
_TOOLS, _PROMPTED = "tools.py", "prompted.py"
"""The Python of `domain.yaml`, and that of `prompted.yaml`."""
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

domain = Imported(__file__{prompted})
calls, serve, world, tasks, expert = domain.calls, domain.serve, domain.world, domain.tasks, domain.expert
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
        for name, group in list(_groups(data.parents[1])):
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
    for file, prompted in ((_TOOLS, ""), (_PROMPTED, ", prompted=True")):
        (folder / file).write_text(_TOOLS_PY.format(prompted=prompted), encoding="utf-8")
    (folder / "rules.md").write_text(_rules(first, upstream), encoding="utf-8")
    (folder / "simulator-prompt.md").write_text(_prompt(first, upstream), encoding="utf-8")
    prompt = _agents_prompt(first, upstream)
    (folder / PROMPT).write_bytes(msgspec.json.encode(prompt))
    spec = _spec(folder.name, group, upstream)
    (folder / "domain.yaml").write_text(domain_yaml(spec, _TOOLS), encoding="utf-8")
    text = domain_yaml(_with_text_calls(spec, prompt), _PROMPTED)
    (folder / "prompted.yaml").write_text(text, encoding="utf-8")


def _write_schemas(folder: Path, schemas: Mapping[str, str]) -> None:
    folder.mkdir(exist_ok=True)
    for name, text in schemas.items():
        (folder / name).write_text(text, encoding="utf-8")


def _spec(name: str, group: Sequence[Entry], upstream: Upstream) -> dict[str, Any]:
    """The domain's file; `{code}` stands for the name of its Python."""
    first = group[0]
    offered = [function["name"] for function in first.functions]
    lines: dict[str, Any] = {
        "version": 1,
        "id": f"acebench-{name}",
        "summary": f"ACEBench agent, {first.language} {first.kind}: {', '.join(first.involved)}.",
        "rules": {"file": "rules.md"},
        "tools": {
            "python": "{code}:serve",
            "stateless": True,
            "verbatim": True,
            "max_result_chars": 200_000,
        },
        "writes": [tool for tool in offered if tool in _WRITES],
        "world": {"python": "{code}:world"},
        "tasks": {"python": "{code}:tasks", "splits": {"test": len(group)}},
        "personas": {
            "official": {"style": "As the benchmark's own prompt has her.", "patience": _PATIENCE}
        },
        "expert": "{code}:expert",
        "reward": [{"gold_world": True}],
        "benchmark": {"name": "ACEBench"},
    }
    if first.kind == "multi_turn":
        lines["simulator"] = {
            "prompt": {"file": "simulator-prompt.md"},
            "stops": [FINISHED],
            "leaves": [FINISHED],
            **_greeting(first, upstream),
        }
    else:
        lines["user"] = _SCRIPT
    return lines


def _with_text_calls(spec: Mapping[str, Any], prompt: Prompt) -> dict[str, Any]:
    """The same for a model that writes its calls into its text; its rules stand in its prompt."""
    differs = {} if prompt.official else {"differs": [_OWN_WORDS]}
    return {
        **spec,
        "id": f"{spec['id']}-prompted",
        "summary": f"{spec['summary']} The model writes its calls into its text.",
        "rules": "",
        "calls": {"text": {"convention": "{code}:calls"}},
        "benchmark": {**spec["benchmark"], **differs},
    }


def _rules(entry: Entry, upstream: Upstream) -> str:
    """What the agent follows: upstream's rules of the classes, and how a task without a user ends.

    Upstream's instructions on how to write calls into a text are left out: this agent calls tools.
    """
    parts = _rules_of_classes(entry, upstream)
    if entry.kind == "multi_step":
        parts.append(
            f"Solve the task with the tools, step by step. When it is solved, say: {FINISHED}"
        )
    said = "\n\n".join(part.strip() for part in parts if part.strip())
    return said or "Help the user with the tools. Ask for what you need to know."


def _rules_of_classes(entry: Entry, upstream: Upstream) -> list[str]:
    """Where there is a user, the rules of the classes that an entry has."""
    found = texts(_module(upstream, _RULES[entry.language]))
    return [
        found.get(f"{part}_PROMPT_{entry.language.upper()}", "")
        for part, name in (("TRAVEL", "Travel"), ("BASE", "BaseApi"))
        if name in entry.involved and entry.kind == "multi_turn"
    ]


def _agents_prompt(entry: Entry, upstream: Upstream) -> Prompt:
    """What a model is told that writes its calls into its text."""
    rules = _rules_of_classes(entry, upstream)
    found = texts(_module(upstream, *_AGENTS[entry.kind]))
    names = [
        f"MULTI_TURN_AGENT_PROMPT_{part}_{entry.language.upper()}" for part in ("SYSTEM", "USER")
    ]
    if found.keys() >= set(names):
        system, user = (found[name] for name in names)
        return Prompt("".join([system, *rules]), user, official=True)
    system = filled(_OWN_SYSTEM, {"ending": _OWN_ENDING[entry.kind]})
    return Prompt("\n\n".join([system, *filter(None, rules)]), _OWN_USER, official=False)


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


def _module(upstream: Upstream, *names: str) -> ast.Module:
    """The first of some modules that is there as a tree, which is empty where none is."""
    path = upstream.path(*names)
    return ast.Module([], []) if path is None else parsed(upstream.text(None, *names), path)


def _origin(upstream: Upstream) -> dict[str, Any]:
    files = {
        name: {"id": content_id, "version": upstream.versions(name)}
        for name, content_id in sorted(upstream.read.items())
    }
    return {"benchmark": "acebench", "files": files}
