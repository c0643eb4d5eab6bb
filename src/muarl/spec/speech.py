"""What of a scripted user's language can never be of use: names that no task knows, facts left untold.

Needs the tasks, since only their ledgers say which facts there are. Nothing here stops a dialogue;
a template with a typo is only never said, and a task whose fact is never told cannot be solved.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from muarl.errors import did_you_mean
from muarl.spec.domain import DomainSpec, PersonaSpec, SplitPhrasings, UserScriptSpec
from muarl.spec.explain import Loc
from muarl.spec.finding import Finding, unknown
from muarl.spec.task import FactSpec, RequestSpec, TaskSpec, UserGoalSpec
from muarl.spec.wording import OF_DEEDS, answers, disclosure, fitting, slots, versions


def language_findings(domain: DomainSpec, tasks: Iterable[TaskSpec]) -> Iterator[Finding]:
    """Facts and intents that the domain's file speaks of and none of its tasks has."""
    known = _Names.of(tasks)
    if domain.user is None or not known.intents:
        return
    asked = {act.removeprefix("ask:") for act in domain.user.understands if act[:4] == "ask:"}
    for fact in asked - known.facts:
        # Asking for what nobody knows is a fault of the policy's that a user has to meet with.
        if did_you_mean(fact, known.facts):
            at = ("user", "understands", f"ask:{fact}")
            yield Finding(at, unknown("fact", fact, known.facts), True)
    facts = sorted(known.facts | asked)
    yield from _phrasings(domain.user.phrasings, ("user", "phrasings"), facts, known.intents)
    for voice, phrasings in domain.user.voices.items():
        yield from _phrasings(phrasings, ("user", "voices", voice), facts, known.intents)
    for name, persona in domain.personas.items():
        at_persona = ("personas", name)
        yield from _phrasings(persona.phrasings, (*at_persona, "phrasings"), facts, known.intents)
        for fact in persona.disclose:
            if fact not in facts:
                yield Finding((*at_persona, "disclose", fact), unknown("fact", fact, facts), True)


def untold_findings(task: TaskSpec, domain: DomainSpec) -> Iterator[Finding]:
    """Facts of a task that no words of a persona tell, though she would."""
    if domain.user is None or task.user is None:
        return
    for name in task.personas:
        # Her own facts may be told at any of her requests, and are untold only if none tells them.
        untold: dict[Loc, tuple[int, FactSpec, str]] = {}
        visits = 0
        for at, entry, request in _visited(task.user.requests, domain.personas[name]):
            visits += 1
            for loc, fact in _facts(task.user, request, at):
                why = _untold(fact, entry, request, task, domain.user, domain.personas[name])
                if why:
                    times = untold[loc][0] if loc in untold else 0
                    untold[loc] = (times + 1, fact, why)
        for loc, (times, fact, why) in untold.items():
            if loc[1] != "facts" or times == visits:
                message = f"persona {name!r} can never tell the fact {fact.id!r}: {why}"
                yield Finding(tuple(loc), message)


def _visited(
    requests: Sequence[RequestSpec], persona: PersonaSpec
) -> Iterator[tuple[tuple[str | int, ...], str, RequestSpec]]:
    """Requests that a persona comes to: where each is written, and the act that she begins it with."""
    for position, first in enumerate(requests):
        at: tuple[str | int, ...] = ("user", "requests", position)
        for changed, request in enumerate(versions(first, persona)):
            entry = "change" if changed else "next" if position else "open"
            yield (*at, "instead") if changed else at, entry, request


@dataclass(frozen=True)
class _Names:
    """Facts in the ledgers of tasks, and what their users ask for."""

    facts: frozenset[str]
    intents: frozenset[str]

    @classmethod
    def of(cls, tasks: Iterable[TaskSpec]) -> _Names:
        facts: set[str] = set()
        intents: set[str] = set()
        for task in tasks:
            if task.user is None:
                continue
            facts |= {fact.id for fact in task.user.facts}
            for request in task.user.requests:
                at: RequestSpec | None = request
                while at is not None:
                    facts |= {fact.id for fact in at.facts}
                    intents.add(at.ask)
                    at = at.instead
        return cls(frozenset(facts), frozenset(intents))


def _phrasings(
    phrasings: SplitPhrasings,
    at: tuple[str | int, ...],
    facts: Collection[str],
    intents: Collection[str],
) -> Iterator[Finding]:
    for split, acts in phrasings.items():
        for act, templates in acts.items():
            kind, _, name = act.partition(":")
            if kind in ("tell", "partly") and name not in facts:
                yield Finding((*at, split, act), unknown("fact", name, facts), True)
            if kind == "ask" and name not in intents and did_you_mean(name, intents):
                yield Finding((*at, split, act), unknown("intent", name, intents), True)
            for index, template in enumerate(templates if kind not in OF_DEEDS else ()):
                for slot in sorted(slots(template).difference(facts)):
                    message = f"{unknown('fact', slot, facts)} (so these words are never said)"
                    yield Finding((*at, split, act, index), message)


def _facts(
    goal: UserGoalSpec, request: RequestSpec, at: tuple[str | int, ...]
) -> Iterator[tuple[Loc, FactSpec]]:
    """Facts that she has while she is at a request, and where they are written."""
    of_request = {fact.id for fact in request.facts}
    for index, fact in enumerate(goal.facts):
        if fact.id not in of_request:  # one of the request stands before hers
            yield ("user", "facts", index), fact
    for index, fact in enumerate(request.facts):
        yield (*at, "facts", index), fact


def _midway(script: UserScriptSpec) -> Iterator[str]:
    """Acts after which the dialogue goes on, so that what they tell is of use."""
    yield from (act for act in answers(script) if act not in ("stop", "abandon"))


def _untold(
    fact: FactSpec,
    entry: str,
    request: RequestSpec,
    task: TaskSpec,
    script: UserScriptSpec,
    persona: PersonaSpec,
) -> str:
    """Why no words tell a fact, or ""; one that she keeps to herself is meant to be untold."""
    how = disclosure(fact, persona)
    if how == "never":
        return ""
    assert task.user is not None
    facts = {f.id: f for f in (*task.user.facts, *request.facts)}
    told = {f.id for f in facts.values() if disclosure(f, persona) == "volunteer"}
    acts = {}
    if f"ask:{fact.id}" in script.understands:
        acts[f"tell:{fact.id}"] = told | {fact.id}
    if how == "volunteer":
        acts |= dict.fromkeys((entry, f"ask:{request.ask}", *_midway(script)), told)
    elif not acts:
        return f"she waits to be asked, and user.understands has no `ask:{fact.id}`"
    for act, known in acts.items():
        if any(fact.id in slots(t) for t in fitting(act, known, task.split, script, persona)):
            return ""
    return (
        f"no wording in split {task.split!r} of {', '.join(f'`{act}`' for act in acts)} holds "
        f"`{{{fact.id}}}`"
    )
