"""Whether a scripted user can word what a task may make her say.

A user without words is a fault in the middle of a rollout; here it is a problem of the spec. The
rules are those of `muarl.user.scripted`: a template may use only facts that may be told by then.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from difflib import get_close_matches
from functools import cache

from muarl.spec.base import ID_PATTERN
from muarl.spec.domain import PersonaSpec, Phrasings, SplitPhrasings, UserScriptSpec
from muarl.spec.task import Disclosure, FactSpec, RequestSpec, TaskSpec

SLOT = re.compile(r"\{(" + ID_PATTERN.strip("^$") + r")\}")
"""`{order_id}` in a template; the group is the fact."""


def unsayable(
    task: TaskSpec, script: UserScriptSpec, personas: Mapping[str, PersonaSpec]
) -> Iterator[str]:
    """One message for each persona of a task whose words all need facts that she may not tell.

    Acts that have no words at all are the domain's affair: see `unworded`.
    """
    for name in task.personas:
        persona = personas[name]
        lacking = [
            f"`{act}`"
            for act in dict.fromkeys(_lacking(task, script, persona))
            if templates(act, task.split, script, persona)
        ]
        if lacking:
            yield (
                f"persona {name!r} has no wording in split {task.split!r} for {', '.join(lacking)} "
                "that needs only what she may tell; add one under user.phrasings"
            )


def unworded(
    tasks: Iterable[TaskSpec], script: UserScriptSpec, personas: Mapping[str, PersonaSpec]
) -> str:
    """What to say about acts that some user must be able to say and has no words for, or "".

    Args:
        tasks: All tasks; their personas exist.
        script: The language of their users.
        personas: Theirs.
    """
    lacking: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    splits: dict[str, None] = {}
    met: dict[str, None] = {}
    needed: set[str] = set()
    for task in tasks:
        if task.user is None:
            continue
        splits[task.split] = None
        needed.update(_acts_of(task))
        for name in task.personas:
            met[name] = None
            for act in _lacking(task, script, personas[name]):
                if not templates(act, task.split, script, personas[name]):
                    in_splits, of_personas = lacking.setdefault(act, ({}, {}))
                    in_splits[task.split] = of_personas[name] = None
    if not lacking:
        return ""
    given = {act for acts in script.phrasings.values() for act in acts}
    strays = sorted(act for act in given - needed if act.startswith(("ask:", "tell:")))
    said = []
    for act, (in_splits, of_personas) in lacking.items():
        in_some = act in given or len(in_splits) < len(splits)
        where = [f"split {name!r}" for name in in_splits] if in_some else []
        who = [f"persona {name!r}" for name in of_personas] if len(of_personas) < len(met) else []
        near = get_close_matches(act, strays, n=1)
        slip = [f"is {near[0]!r} a slip of the pen?"] if near else []
        notes = ", ".join((*where, *who, *slip))
        said.append(f"`{act}` ({notes})" if notes else f"`{act}`")
    return (
        f"users may have to say what they have no words for: {', '.join(said)}; give each a template, "
        "under `any` or under each split"
    )


def _acts_of(task: TaskSpec) -> Iterator[str]:
    """Acts that name what stands in a task: its intents and facts."""
    assert task.user is not None
    facts = list(task.user.facts)
    for request in task.user.requests:
        at: RequestSpec | None = request
        while at is not None:
            yield f"ask:{at.ask}"
            facts += at.facts
            at = at.instead
    yield from (f"tell:{fact.id}" for fact in facts)


def _lacking(task: TaskSpec, script: UserScriptSpec, persona: PersonaSpec) -> Iterator[str]:
    assert task.user is not None
    for position, first in enumerate(task.user.requests):
        for changed, request in enumerate(versions(first, persona)):
            facts = {fact.id: fact for fact in (*task.user.facts, *request.facts)}
            told = {f.id for f in facts.values() if disclosure(f, persona) == "volunteer"}
            entry = "change" if changed else "next" if position else "open"
            for act in (entry, *answers(script)):
                yield from _unworded(act, request, told, task, script, persona)
            for fact in facts.values():
                if f"ask:{fact.id}" in script.understands and disclosure(fact, persona) != "never":
                    act = f"tell:{fact.id}"
                    yield from _unworded(act, request, told | {fact.id}, task, script, persona)


def answers(script: UserScriptSpec) -> Iterator[str]:
    """Acts that the policy can call forth at any time, facts apart."""
    yield from ("unclear", "abandon")
    needs_facts = any(SLOT.search(str(action.arguments)) for action in script.actions.values())
    if needs_facts or any(act.startswith("ask:") for act in script.understands):
        yield "unknown"
    if "confirm" in script.understands:
        yield from ("confirm", "deny")
    if {"done", "refuse"} & script.understands.keys():
        yield "stop"


def versions(request: RequestSpec, persona: PersonaSpec) -> Iterator[RequestSpec]:
    """The request, and what this persona changes it to."""
    yield request
    if persona.changes_mind and request.instead is not None:
        yield request.instead


def disclosure(fact: FactSpec, persona: PersonaSpec) -> Disclosure:
    """How this persona tells a fact: her own word stands before the task's."""
    return persona.disclose.get(fact.id, fact.disclose)


def _unworded(
    act: str,
    request: RequestSpec,
    known: set[str],
    task: TaskSpec,
    script: UserScriptSpec,
    persona: PersonaSpec,
) -> Iterator[str]:
    """The act, or the act inside it, that no template words with the known facts."""
    found = fitting(act, known, task.split, script, persona)
    if not found:
        yield act
    begins = act in ("open", "next", "change") and not templates(act, task.split, script, persona)
    if begins or any("{request}" in template for template in found):
        inner = f"ask:{request.ask}"
        if not fitting(inner, known, task.split, script, persona):
            yield inner


def fitting(
    act: str,
    known: AbstractSet[str],
    split: str,
    script: UserScriptSpec,
    persona: PersonaSpec,
) -> list[str]:
    """Templates of an act that need only known facts."""
    found = [t for t in templates(act, split, script, persona) if slots(t) <= known]
    kind, _, intent = act.partition(":")
    if found or kind != "ask" or script.phrasings:
        return found
    return [" ".join([intent.replace("_", " "), *(f"{{{fact}}}" for fact in sorted(known))])]


def templates(act: str, split: str, script: UserScriptSpec, persona: PersonaSpec) -> list[str]:
    """How a persona words an act: her own words, her language's, her tone's, the domain's."""
    voices = [script.voices.get(v, {}) for v in (persona.language, persona.tone) if v]
    built_in: SplitPhrasings = {"any": BUILT_IN}
    own = script.phrasings or {"any": PLAIN}
    for phrasings in (persona.phrasings, *voices, own, built_in):
        found = [
            template for name in (split, "any") for template in phrasings.get(name, {}).get(act, [])
        ]
        if found:
            return found
    kind, _, fact = act.partition(":")
    if kind == "tell" and fact and not script.phrasings:
        return [f"{{{fact}}}"]
    general = fact and kind in ("partly", *OF_DEEDS)
    return templates(kind, split, script, persona) if general else []


@cache
def slots(template: str) -> frozenset[str]:
    """Facts that a template tells."""
    return frozenset(SLOT.findall(template)) - RESERVED


RESERVED = frozenset({"request", "part"})
"""Slots that stand for no fact: the wording of a request, and a part of a value."""

OF_DEEDS = ("did", "failed")
"""Kinds of acts that tell what came of an action; their slots may stand for parts of its result."""

BUILT_IN: Phrasings = {
    "partly": ["it starts with {part}", "{part} something", "the beginning is {part}"],
    "refuse": ["i'd rather not say", "why do you need that?", "do you really need that?"],
    "silence": ["..."],
    "digress": [
        "my cat just jumped on the table",
        "it is raining here, by the way",
        "sorry, the phone rang",
        "i had such a long day",
    ],
    "unavailable": ["can you also book me a taxi?", "could you also water my plants?"],
    "push_back": ["that can't be right. please {request}", "i insist, please {request}"],
    "challenge": ["but i never said yes to that", "you never asked me whether you should"],
    "pass": ["ok", "i see", "all right"],
    "did": ["i did it, it says: {result}", "ok, now it says: {result}"],
    "failed": ["it does not let me: {result}", "that did not work: {result}"],
}
"""Words of the acts that knobs and actions bring about, for domains that have none of their own."""

PLAIN: Phrasings = {
    "open": ["hello, {request}", "hi, {request}, please", "please {request}"],
    "next": ["and {request}, please"],
    "change": ["no, wait, rather {request}"],
    "confirm": ["yes", "yes, please"],
    "deny": ["no, {request}"],
    "unknown": ["i do not know"],
    "unclear": ["sorry?"],
    "stop": ["thanks, bye"],
    "abandon": ["never mind, bye"],
}
"""Words of a domain that gives no phrasings at all. A request is worded as its intent and what may be
told (`cancel W17`), a fact by its value."""
