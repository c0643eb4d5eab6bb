"""Queries that an LLM drafts for a domain, whatever its tools: pipeline two needs nothing else.

A draft is fit if it is a sound file of tasks, if the gold calls of each are answered and change the world,
if what they are called with can be known (it stands in the goal, or in what a tool can tell), and if no two
tasks come to the same.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

from muarl.domain import Domain
from muarl.errors import ToolServerError
from muarl.overlap import near_duplicates
from muarl.spec import TasksFile, TaskSpec, load_tasks_file
from muarl.synth.drafting import Drafter, Unfit, drafted
from muarl.world import canonical_diff, plain

_WORLD_CHARS = 12_000
"""Of the world that the drafter is shown."""

_ROLE = """\
You write what users want from an agent with tools, for training it. You are given the agent's rules, its \
tools and its data. Answer with one JSON object and nothing else: {"tasks": [...]}. A task is
{"id": short and unique, "goal": what the user wants and knows, addressed to her as "You ...", with every value \
that she must tell, "gold": [{"tool": name, "arguments": {...}}]}.
"gold" are the calls that change the data as the user wants, in order, and no others; calls that only look \
are left out. Every task changes something that the rules allow. Vary which tools, how many changes and which \
data; no two tasks may come to the same change."""


async def draft_tasks(
    client: Drafter,
    domain: Domain,
    path: Path,
    *,
    count: int,
    repairs: int,
    seed: int,
    max_tokens: int,
    on_unfit: Callable[[str], None] = lambda _: None,
) -> int:
    """Write a file of tasks for a domain; gives how many repairs that took; see `muarl.synth.drafting.drafted`.

    Raises:
        SetupError: The draft could not be mended.
        EndpointError: The endpoint fails.
        ToolServerError: The tool server does not start.
    """
    tools = [tool.as_function()["function"] for tool in await domain.tools()]
    world = json.dumps(plain(domain.base), ensure_ascii=False, default=str)[:_WORLD_CHARS]
    asked = (
        f"Rules:\n{domain.spec.rules}\n\nTools:\n{json.dumps(tools)}\n\nTools that change the data: "
        f"{', '.join(domain.spec.writes)}\n\nData:\n{world}\n\nWrite {count} tasks."
    )

    async def build(draft: Any) -> None:
        made = draft.get("tasks") if isinstance(draft, dict) else None
        if not isinstance(made, list) or len(made) != count:
            got = f"{len(made)} tasks" if isinstance(made, list) else "none"
            raise Unfit([f'expected {{"tasks": [...]}} with {count} tasks, got {got}'])
        file = {"version": 1, "domain": domain.spec.id, "tasks": made}
        path.write_text(json.dumps(file), encoding="utf-8")
        tasks = load_tasks_file(path, domain.spec).spec.tasks
        problems = [problem for task in tasks async for problem in _unsolvable(domain, task)]
        problems += _alike(tasks)
        if problems:
            raise Unfit(problems)
        path.write_text(TasksFile(version=1, domain=domain.spec.id, tasks=tasks).to_yaml(), "utf-8")

    _, taken = await drafted(
        client,
        _ROLE,
        asked,
        build,
        repairs=repairs,
        seed=seed,
        max_tokens=max_tokens,
        on_unfit=on_unfit,
    )
    return taken


async def _unsolvable(domain: Domain, task: TaskSpec) -> AsyncIterator[str]:
    """Why a task has no outcome of its own."""
    where = f"task {task.id!r}"
    if not task.gold:
        yield f"{where}: gold is empty; every task changes something"
        return
    try:
        gold = await domain.gold_world(task)
    except ToolServerError as error:
        yield f"{where}: {error}"
        return
    if not canonical_diff(domain.world_for(task), gold, gold.unordered):
        yield f"{where}: its gold calls change nothing"


def _alike(tasks: list[TaskSpec]) -> Iterator[str]:
    for pair in near_duplicates(tasks):
        yield f"tasks {pair.first.id!r} and {pair.second.id!r} are nearly the same; change one"
