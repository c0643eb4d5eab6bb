"""Pipeline one: from a brief to a domain, with data, rules and tools, in SQL or simulated, that an LLM drafts.

What the LLM writes is data only: `muarl.spec` validates it like any file of a person's, SQL runs in the
sandbox that all tools in SQL run in, and nothing of it is ever executed as Python.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from muarl.domain import Domain, load_domain
from muarl.errors import ToolServerError
from muarl.spec import load_domain_spec
from muarl.synth.draft_tasks import draft_tasks
from muarl.synth.drafting import Drafter, Unfit, drafted

_COMMON = """\
You design small, realistic customer-service domains for training agents. You are given a brief. Answer with \
one JSON object and nothing else, with exactly these keys:
- "summary": one line.
- "rules": what the agent must do and must refuse, in a few sentences. It must look things up before it \
changes them and ask for a yes before it changes anything.
- "personas": name to {"style": how this user writes}; two or three.
"""
_IN_SQL = """\
- "tables": SQLite CREATE TABLE statements, each with a TEXT or INTEGER primary key, at most five tables.
- "rows": table to key (a text) to the row's other columns; five to fifteen rows a table.
- "tools": name to tool; three to eight of them, some that look, some that change. A tool is {"description": \
text, "parameters": {name: {"type": "string"|"integer"|"number"|"boolean", "description": text}}, "guards": \
[{"query": "SELECT ... with :name", "error": text}], "statements": ["UPDATE ... with :name"], "query": \
"SELECT ... with :name", "result": "text with {column} or {parameter}"}; guards, statements, query and result may be \
left out. A guard holds if the first value of its first row is neither NULL nor 0. Every rule that a tool can \
enforce is a guard.
- "writes": names of the tools that change something.
Identifiers have letters and digits. Use no function of SQLite that depends on the time or on chance."""
_SIMULATED = """\
- "data": a JSON object with all that the service knows: kind to key to record; five to fifteen records a kind.
- "tools": name to tool; three to eight of them, some that look, some that change. A tool is {"description": \
what it tells, does and refuses, for whoever plays it, "parameters": {name: {"type": \
"string"|"integer"|"number"|"boolean", "description": text}}, "writes": true if it changes the data}.
Identifiers have letters and digits."""
_KEYS = {"summary", "rules", "personas", "tools"}


async def draft_domain(
    client: Drafter,
    brief: str,
    folder: Path,
    *,
    name: str,
    tasks: int,
    repairs: int,
    seed: int,
    max_tokens: int,
    on_unfit: Callable[[str], None] = lambda _: None,
    simulator: Mapping[str, Any] | None = None,
) -> int:
    """Write a domain and its tasks into a folder; gives how many repairs that took.

    Args:
        client: Who drafts.
        brief: What the domain is to be, in a person's words.
        folder: Empty; gets `domain.yaml` and `tasks.yaml`.
        name: Id of the domain.
        tasks: How many.
        repairs: How often each draft may be sent back.
        seed: Of the sampling.
        max_tokens: Of one draft.
        on_unfit: Told of each draft that cannot be used, and why.
        simulator: `base_url`, `model` and `api_key_env` of who simulates the tools; None: they are in SQL.

    Raises:
        SetupError: A draft could not be mended.
        EndpointError: The endpoint fails.
    """
    (folder / "tasks.yaml").write_text(_no_tasks(name), encoding="utf-8")

    async def build(draft: Any) -> Domain:
        keys = _KEYS | ({"tables", "rows", "writes"} if simulator is None else {"data"})
        given = draft.keys() if isinstance(draft, dict) else set()
        if wrong := sorted(given ^ keys):
            raise Unfit([f"expected exactly the keys {', '.join(sorted(keys))}; wrong: {wrong}"])
        path = folder / "domain.yaml"
        path.write_text(
            json.dumps(_as_spec(draft, name, simulator)), encoding="utf-8"
        )  # YAML holds all of JSON
        spec = load_domain_spec(path).spec
        path.write_text(spec.to_yaml(), encoding="utf-8")
        domain = load_domain(folder)
        problems = [
            f"'writes' names {tool!r}, which is no tool"
            for tool in spec.writes
            if tool not in draft["tools"]
        ]
        try:
            await domain.tools()
        except ToolServerError as error:
            problems.append(str(error))
        if problems:
            raise Unfit(problems)
        return domain

    domain, first = await drafted(
        client,
        _COMMON + (_IN_SQL if simulator is None else _SIMULATED),
        f"Brief:\n{brief}",
        build,
        repairs=repairs,
        seed=seed,
        max_tokens=max_tokens,
        on_unfit=on_unfit,
    )
    second = await draft_tasks(
        client,
        domain,
        folder / "tasks.yaml",
        count=tasks,
        repairs=repairs,
        seed=seed,
        max_tokens=max_tokens,
        on_unfit=on_unfit,
    )
    return first + second


def _as_spec(
    draft: dict[str, Any], name: str, simulator: Mapping[str, Any] | None
) -> dict[str, Any]:
    common = {
        "version": 1,
        "id": name,
        "summary": draft["summary"],
        "rules": draft["rules"],
        "tasks": {"files": ["tasks.yaml"]},
        "reward": [{"gold_world": True}],
        "personas": draft["personas"],
    }
    if simulator is None:
        return common | {
            "tools": {"sql": draft["tools"]},
            "writes": draft["writes"],
            "world": {"sql": {"tables": draft["tables"], "rows": draft["rows"]}},
        }
    tools = draft["tools"] if isinstance(draft["tools"], dict) else {}
    return common | {
        "tools": {"simulated": {**simulator, "tools": draft["tools"]}},
        "writes": [
            name for name, tool in tools.items() if isinstance(tool, dict) and tool.get("writes")
        ],
        "world": {"data": draft["data"]},
    }


def _no_tasks(name: str) -> str:
    """A file that stands in until there are tasks."""
    task = {"id": "none", "goal": "Nothing.", "gold": []}
    return json.dumps({"version": 1, "domain": name, "tasks": [task]})
