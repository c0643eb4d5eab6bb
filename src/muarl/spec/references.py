"""What the names in a spec refer to: personas, splits, acts, facts, ids, files.

Each function yields findings about one model, and needs nothing but the specs and, for file
references, the folder that holds them. Nothing of a domain is imported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

from muarl.spec.declared_tools import domain_tool_findings, task_tool_findings
from muarl.spec.device import DEVICE
from muarl.spec.domain import DomainSpec, PersonaSpec, SplitPhrasings, UserScriptSpec
from muarl.spec.finding import Finding, unknown
from muarl.spec.named_files import leads_outside, no_file, no_python
from muarl.spec.predicate import PredicateSpec
from muarl.spec.run import EvalSpec, RunSpec
from muarl.spec.suite import SuiteSpec
from muarl.spec.task import FactSpec, RequestSpec, TasksFile, TaskSpec
from muarl.spec.tools import CommandToolsSpec, PythonToolsSpec, ToolsSpec
from muarl.spec.wording import BUILT_IN, OF_DEEDS, slots, unsayable, unworded

ANY_SPLIT = "any"

_SPLITS = ("train", EvalSpec.model_fields["split"].default)
"""Splits that a run file means if it names none."""

_ALIKE = 0.8
"""How alike two names of splits are, of 1, if one is taken for a slip of the pen."""

_ODD_SLOT = re.compile(r"\{(?![A-Za-z0-9][A-Za-z0-9_.-]*\})[\w .-]*\}")

_AGENT_ACTS = ("confirm", "refuse", "done")
_USER_ACTS = (
    *("open", "next", "confirm", "deny", "change", "accept_refusal"),
    *("unknown", "unclear", "stop", "abandon"),
    *(act for act in BUILT_IN if act != "partly"),
)
_ACTS_ON_FACTS = ("ask:", "tell:", "partly:")
_ACTS_OF_DEEDS = tuple(f"{kind}:" for kind in OF_DEEDS)


def domain_findings(domain: DomainSpec, folder: Path) -> Iterator[Finding]:
    """Dangling names of a domain's file."""
    yield from _domain_files(domain, folder)
    yield from _servers(domain.tools, ("tools",), folder)
    yield from _device(domain, folder)
    yield from domain_tool_findings(domain)
    yield from _queries_of_no_database(domain, domain)
    if not any(persona.weight for persona in domain.personas.values()):
        yield Finding(("personas",), "every persona has weight 0, so none can be drawn", True)
    splits = domain.tasks.splits
    actions = domain.user.actions if domain.user is not None else {}
    for name, persona in domain.personas.items():
        at = ("personas", name)
        for finding in _phrasings(persona.phrasings, splits, actions):
            yield finding.below(*at, "phrasings")
        if domain.user is not None:
            yield from (f.below(*at) for f in _voice(persona, domain.user))
            yield from (f.below(*at, "understands") for f in _own_ears(persona, domain.user))
            facts = _facts_spoken_of(domain)
            for fact in persona.disclose:
                if fact not in facts:
                    message = f"{unknown('fact', fact, facts)} (no act and no wording names it)"
                    yield Finding((*at, "disclose", fact), message, True)
    if domain.user is not None:
        of_all = _phrasings(domain.user.phrasings, splits, actions)
        yield from (f.below("user", "phrasings") for f in of_all)
        for voice, phrasings in domain.user.voices.items():
            of_voice = _phrasings(phrasings, splits, actions)
            yield from (f.below("user", "voices", voice) for f in of_voice)
        yield from (f.below("user", "understands") for f in _understands(domain.user))
        yield from (f.below("user") for f in _actions(domain.user, domain.device is not None))


def tasks_findings(file: TasksFile, domain: DomainSpec | None) -> Iterator[Finding]:
    """Ids given twice and dangling names of a tasks file."""
    if domain is not None and file.domain != domain.id:
        yield Finding(("domain",), f"these tasks are for domain {file.domain!r}, not {domain.id!r}")
    seen: dict[str, int] = {}
    for index, task in enumerate(file.tasks):
        at = ("tasks", index)
        if seen.setdefault(task.id, index) != index:
            message = f"task id {task.id!r} is also item {seen[task.id] + 1}; ids are unique"
            yield Finding((*at, "id"), message)
        for finding in task_findings(task, domain):
            yield finding.below(*at)


def generated_findings(tasks: Iterable[TaskSpec], domain: DomainSpec) -> Iterator[str]:
    """Ids given twice and dangling names of tasks that no file holds."""
    seen: set[str] = set()
    for task in tasks:
        if task.id in seen:
            yield f"task {task.id!r}: the id is given twice"
        seen.add(task.id)
        for finding in task_findings(task, domain):
            yield f"task {task.id!r}: {finding.message}"


def task_findings(task: TaskSpec, domain: DomainSpec | None) -> Iterator[Finding]:
    """Facts given twice and dangling names of one task, from a file or from a generator."""
    if task.user is not None:
        yield from (f.below("user") for f in _ledger(task.user.facts))
        for index, request in enumerate(task.user.requests):
            yield from (f.below("user", "requests", index) for f in _request(request))
    if domain is None or domain.benchmark is None:  # published tasks are as they are
        yield from _fixed_turns(task)
    if domain is None:
        return
    if domain.device is None:
        for index, call in enumerate(task.gold):
            if call.by == "user":
                yield Finding(("gold", index, "by"), _NO_DEVICE)
        for field in ("reward", "training_reward", "metrics"):
            for loc in _by_user(getattr(task, field) or ()):
                yield Finding((field, *loc), _NO_DEVICE)
    elif domain.device.world is not None and not isinstance(task.world.get(DEVICE, {}), Mapping):
        message = "the device's part of the world is a mapping; name what is to change in it"
        yield Finding(("world", DEVICE), message)
    yield from task_tool_findings(task, domain)
    yield from _queries_of_no_database(task, domain)
    dangling = False
    for index, persona in enumerate(task.personas):
        if persona not in domain.personas:
            dangling = True
            yield Finding(("personas", index), unknown("persona", persona, domain.personas))
    if dangling:
        return
    if not any(domain.personas[persona].weight for persona in task.personas):
        yield Finding(("personas",), "all these personas have weight 0, so none can be drawn")
    if domain.user is not None and task.user is not None:
        for message in unsayable(task, domain.user, domain.personas):
            yield Finding(("user",), message, at_key=True)


def _fixed_turns(task: TaskSpec) -> Iterator[Finding]:
    """Gold calls after messages that the user does not have, or says before; tools shown to no end."""
    there = len(task.turns)
    before = 0
    for index, call in enumerate(task.gold):
        at = ("gold", index, "turn")
        if call.turn and call.turn >= there:
            have = f"{there} `turns`, counted from 0" if there else "no `turns`"
            yield Finding(at, f"there is no turn {call.turn}: the task has {have}")
        elif call.turn < before:
            message = (
                f"the gold call before this one is made after turn {before}, so that this one cannot be "
                f"made after turn {call.turn}; gold calls stand in the order in which they are made"
            )
            yield Finding(at, message)
        before = max(before, call.turn)
    for index, turn in enumerate(task.turns if task.tools is None else ()):
        if turn.shows:
            message = (
                "the agent is shown all tools from the beginning, since the task names none; list "
                "those that it is shown at first under the task's `tools`"
            )
            yield Finding(("turns", index, "shows"), message)


def wording_findings(domain: DomainSpec, tasks: Iterable[TaskSpec]) -> Iterator[Finding]:
    """Acts that users of these tasks may have to say and have no words for, in one finding."""
    if domain.user is not None and (message := unworded(tasks, domain.user, domain.personas)):
        yield Finding(("user", "phrasings"), message, at_key=True)


def misspelt_splits(used: Mapping[str, int], domain: DomainSpec) -> dict[str, str]:
    """Splits of tasks that look like another one with a slip of the pen, and which that is.

    A split is whatever a task names, so a slip would silently make one that no run plays.

    Args:
        used: Split to the number of its tasks.
        domain: Its wordings know some splits by name.
    """
    manners = (domain.user, *domain.personas.values())
    known = {*_SPLITS, *(split for m in manners if m is not None for split in m.phrasings)}
    found = {}
    for split, count in used.items():
        near = get_close_matches(split, known & used.keys(), n=1, cutoff=_ALIKE)
        # What differs in a number was meant: train, train2. Of two that are alike, the rarer is it.
        if split not in known and near and used[near[0]] >= count and _letters(split) == split:
            found[split] = near[0]
    return found


def misspelt_wordings(used: Collection[str], domain: DomainSpec) -> Iterator[Finding]:
    """Splits that users have words for and no task is of, and that look like one that tasks are of."""
    voices = domain.user.voices.items() if domain.user is not None else ()
    spoken: list[tuple[tuple[str, ...], SplitPhrasings]] = [
        *((("personas", name, "phrasings"), of.phrasings) for name, of in domain.personas.items()),
        *((("user", "voices", voice), phrasings) for voice, phrasings in voices),
    ]
    if domain.user is not None:
        spoken.append((("user", "phrasings"), domain.user.phrasings))
    for at, phrasings in spoken:
        for split in phrasings.keys() - {*used, ANY_SPLIT}:
            near = get_close_matches(split, used, n=1, cutoff=_ALIKE)
            if near and _letters(split) == split:
                message = f"no task is of split {split!r}; did you mean {near[0]!r}?"
                yield Finding((*at, split), message, at_key=True)


def _letters(name: str) -> str:
    return re.sub(r"[0-9]", "", name)


def member_findings(suite: SuiteSpec, splits: Mapping[str, Collection[str]]) -> Iterator[Finding]:
    """Splits that a suite names and that its members do not have.

    Args:
        suite: The suite.
        splits: Member to the splits of its domain.
    """
    for name, member in suite.members.items():
        for split, own in member.splits.items():
            if own not in splits[name]:
                at = ("members", name, "splits", split)
                yield Finding(at, unknown("split", own, splits[name]))


def split_findings(run: RunSpec, splits: Collection[str]) -> Iterator[Finding]:
    """Splits a run names that its domain does not have."""
    named = {part: spec.split for part, spec in run.trained_on()} | {("eval",): run.eval.split}
    if run.grpo is not None and run.grpo.validation is not None:
        named["grpo", "validation"] = run.grpo.validation.split
    for part, split in named.items():
        if split not in splits:
            yield Finding((*part, "split"), unknown("split", split, splits))


def _domain_files(domain: DomainSpec, folder: Path) -> Iterator[Finding]:
    code: dict[tuple[str | int, ...], str | None] = {
        ("world", "python"): domain.world.python,
        domain.tasks.loc: domain.tasks.generator,
        ("expert",): domain.expert,
        **dict(_predicates_in_python(domain)),
    }
    if domain.calls.text is not None:
        code["calls", "text", "convention"] = domain.calls.text.convention
    for index, server in enumerate(domain.tools):
        if isinstance(server, PythonToolsSpec):
            code["tools", index, "python"] = server.python
    if domain.device is not None:
        for index, server in enumerate(domain.device.tools):
            if isinstance(server, PythonToolsSpec):
                code["device", "tools", index, "python"] = server.python
        for index, step in enumerate(domain.device.sync):
            code["device", "sync", index, "python"] = step.python
        if domain.device.world is not None:
            code["device", "world", "python"] = domain.device.world.python
    for loc, reference in code.items():
        if reference is not None and (message := no_python(folder, reference)):
            yield Finding(loc, message)
    files: dict[tuple[str, ...], str | None] = {("world", "file"): domain.world.file}
    if domain.device is not None and domain.device.world is not None:
        files["device", "world", "file"] = domain.device.world.file
    for at, name in files.items():
        if name is not None and (message := _no_file_within(folder, name)):
            yield Finding(at, message)
    for index, name in enumerate(domain.world.sql.files if domain.world.sql else ()):
        if message := _no_file_within(folder, name):
            yield Finding(("world", "sql", "files", index), message)
    for index, pattern in enumerate(domain.tasks.files):
        if message := leads_outside(pattern):
            yield Finding(("tasks", "files", index), message)
            continue
        try:
            found = any(os.path.isfile(path) for path in folder.glob(pattern))
        except (NotImplementedError, ValueError, OSError, RuntimeError):
            yield Finding(
                ("tasks", "files", index), f"{pattern!r} is no path relative to this file"
            )
            continue
        if not found:
            message = f"nothing matches {pattern!r}" if "*" in pattern else no_file(folder, pattern)
            yield Finding(("tasks", "files", index), message)


def _no_file_within(folder: Path, reference: str) -> str:
    if message := leads_outside(reference):
        return message
    return "" if os.path.isfile(folder / reference) else no_file(folder, reference)


def _device(domain: DomainSpec, folder: Path) -> Iterator[Finding]:
    """What two sides on one world cannot be, and calls of a user who has no device."""
    if domain.device is None:
        for field in ("reward", "training_reward", "metrics"):
            for loc in _by_user(getattr(domain, field) or ()):
                yield Finding((field, *loc), _NO_DEVICE)
        return
    yield from _servers(domain.device.tools, ("device", "tools"), folder)
    sides: dict[tuple[str, ...], Sequence[ToolsSpec]] = {
        ("tools",): domain.tools,
        ("device", "tools"): domain.device.tools,
    }
    for at, servers in sides.items():
        for index, server in enumerate(servers):
            if isinstance(server, CommandToolsSpec) and server.world_resource is not None:
                message = (
                    "this server holds the whole world by itself, and would not see what the other "
                    "side does; name its parts of the world under `state`"
                )
                yield Finding((*at, index, "world_resource"), message, at_key=True)
            if server.state and domain.device.sync:
                message = (
                    "this server's state is read before and after a dialogue only, so `device.sync` "
                    "cannot keep it in step; keep it in the world, or drop `sync`"
                )
                yield Finding((*at, index, "state"), message, at_key=True)
    if domain.device.world is not None and DEVICE in (domain.world.data or ()):
        message = f"{DEVICE!r} is where `device.world` lies in the world; name this key otherwise"
        yield Finding(("world", "data", DEVICE), message, at_key=True)


_NO_DEVICE = (
    "the user has no device to call tools on; give the domain a `device`, or leave `by` out"
)


def _by_user(predicates: Iterable[PredicateSpec]) -> Iterator[tuple[str | int, ...]]:
    """Where predicates ask for calls of the user's."""
    for index, predicate in enumerate(predicates):
        for below, part in predicate.walk():
            for kind in ("called", "never_called"):
                if (call := getattr(part, kind)) is not None and call.by == "user":
                    yield (index, *below, kind, "by")


def _actions(script: UserScriptSpec, device: bool) -> Iterator[Finding]:
    """Actions that nobody asks for, that there are none of, or that want a device."""
    asked = {act.removeprefix("do:") for act in script.understands if act.startswith("do:")}
    for act in sorted(asked - script.actions.keys()):
        yield Finding(
            ("understands", f"do:{act}"), unknown("action", act, script.actions), at_key=True
        )
    for action in script.actions:
        if action not in asked:
            message = f"nobody can ask for it: `understands` has no `do:{action}`"
            yield Finding(("actions", action), message, at_key=True)
    if script.actions and not device:
        yield Finding(("actions",), "actions are done on a `device`, which this domain lacks", True)


def _servers(
    servers: Sequence[ToolsSpec], above: tuple[str, ...], folder: Path
) -> Iterator[Finding]:
    """Names given twice, and parts of the world that two servers keep."""
    names: set[str] = set()
    keys: set[str] = set()
    for index, server in enumerate(servers):
        at: tuple[str | int, ...] = (*above, index)
        if server.label in names:
            message = f"two servers are named {server.label!r}; give one another `name`"
            yield Finding((*at, "name") if server.name else at, message)
        names.add(server.label)
        for key in server.state:
            if key in keys:
                message = f"another server keeps {key!r} of the world as well"
                yield Finding((*at, "state", key), message, at_key=True)
            keys.add(key)
        if isinstance(server, CommandToolsSpec):
            if server.files is not None and (message := leads_outside(server.files)):
                yield Finding((*at, "files"), message)
            elif server.files is not None and not os.path.isdir(folder / server.files):
                yield Finding((*at, "files"), no_file(folder, server.files, "folder"))
            if server.world_resource is not None and len(servers) > 1:
                message = (
                    "the world cannot be that of one of several servers; name its parts of the "
                    "world under `state`"
                )
                yield Finding((*at, "world_resource"), message, at_key=True)


def _predicates_in_python(domain: DomainSpec) -> Iterator[tuple[tuple[str | int, ...], str]]:
    for field in ("reward", "training_reward", "metrics"):
        for index, predicate in enumerate(getattr(domain, field) or ()):
            for below, part in predicate.walk():
                if part.python is not None:
                    yield (field, index, *below, "python", "function"), part.python.function


def _queries_of_no_database(holder: DomainSpec | TaskSpec, domain: DomainSpec) -> Iterator[Finding]:
    """`sql` predicates over a world that is a document."""
    if domain.world.sql is not None:
        return
    for field in ("reward", "training_reward", "metrics"):
        for index, predicate in enumerate(getattr(holder, field) or ()):
            for below, part in predicate.walk():
                if part.sql is not None:
                    message = "the world is no database; use a `world` predicate"
                    yield Finding((field, index, *below, "sql"), message, at_key=True)


def _phrasings(
    phrasings: SplitPhrasings, splits: Collection[str], actions: Collection[str]
) -> Iterator[Finding]:
    for split, acts in phrasings.items():
        if splits and split not in (*splits, ANY_SPLIT):
            yield Finding((split,), unknown("split", split, [*splits, ANY_SPLIT]), True)
        for act, templates in acts.items():
            if act not in _USER_ACTS and not act.startswith((*_ACTS_ON_FACTS, *_ACTS_OF_DEEDS)):
                known = [*_USER_ACTS, "ask:<intent>", "tell:<fact>", "partly:<fact>"]
                known += ["did:<action>", "failed:<action>"]
                yield Finding((split, act), unknown("act", act, known), True)
            kind, _, action = act.partition(":")
            if kind in OF_DEEDS and action and action not in actions:
                yield Finding((split, act), unknown("action", action, actions), True)
            if not templates:
                yield Finding((split, act), f"act {act!r} has no templates; give at least one")
            for index, template in enumerate(templates):
                for braces in _ODD_SLOT.findall(template):
                    message = f"{braces!r} is no fact's name in braces, and is said as it stands"
                    yield Finding((split, act, index), message)
                if "{part}" in template and not act.startswith("partly"):
                    message = "{part} is a part of a value, which only `partly:<fact>` tells"
                    yield Finding((split, act, index), message)
                if act.startswith("ask:") and "{request}" in template:
                    message = f"{act!r} is what {{request}} stands for; it cannot hold it"
                    yield Finding((split, act, index), message)


def _voice(persona: PersonaSpec, script: UserScriptSpec) -> Iterator[Finding]:
    """A language or tone that a scripted user of the domain could not speak in."""
    for field in ("language", "tone"):
        voice = getattr(persona, field)
        if voice is not None and voice not in script.voices:
            yield Finding((field,), f"{unknown('voice', voice, script.voices)} (see user.voices)")


def _own_ears(persona: PersonaSpec, script: UserScriptSpec) -> Iterator[Finding]:
    """Acts that a persona knows in a way of her own, and nobody else knows at all."""
    for act in persona.understands:
        if act not in script.understands:
            message = f"{unknown('act', act, script.understands)} (see user.understands)"
            yield Finding((act,), message, True)
    yield from _empty_phrases(persona.understands)


def _understands(script: UserScriptSpec) -> Iterator[Finding]:
    for act in script.understands:
        if act not in _AGENT_ACTS and not act.startswith(("ask:", "do:")):
            known = [*_AGENT_ACTS, "ask:<fact>", "do:<action>"]
            yield Finding((act,), unknown("act", act, known), True)
    yield from _empty_phrases(script.understands)


def _empty_phrases(understands: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    for act, phrases in understands.items():
        for index, phrase in enumerate(phrases):
            if not phrase.strip():
                yield Finding((act, index), "an empty phrase is in every message; write words")


def _facts_spoken_of(domain: DomainSpec) -> list[str]:
    """Facts that the domain's language can ask for, tell or use."""
    assert domain.user is not None
    acts = list(domain.user.understands)
    facts = [act.removeprefix("ask:") for act in acts if act.startswith("ask:")]
    of_personas = (persona.phrasings for persona in domain.personas.values())
    for phrasings in (domain.user.phrasings, *domain.user.voices.values(), *of_personas):
        for told in phrasings.values():
            facts += [act.removeprefix("tell:") for act in told if act.startswith("tell:")]
            facts += [fact for templates in told.values() for t in templates for fact in slots(t)]
    return sorted(set(facts))


def _request(request: RequestSpec) -> Iterator[Finding]:
    yield from _ledger(request.facts)
    if request.instead is not None:
        yield from (finding.below("instead") for finding in _request(request.instead))


def _ledger(facts: Sequence[FactSpec]) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, fact in enumerate(facts):
        if fact.id in seen:
            yield Finding(("facts", index, "id"), f"fact {fact.id!r} is given twice")
        seen.add(fact.id)
