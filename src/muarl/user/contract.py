"""What a user of one task may say and do: her side of the bargain.

It is the task's ledger and goal, seen from outside: facts with their rule of disclosure, requests,
what she must never say, and what only the gold calls know. Guards hold an LLM to it; a scripted user
keeps it by construction.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from muarl.json_values import texts_in
from muarl.spec import FactSpec, PersonaSpec, RequestSpec, TaskSpec, UserScriptSpec
from muarl.spec.task import Disclosure
from muarl.spoken import QUESTION_MARKS, says

_WORD = re.compile(r"[^\W\d_]{3,}")
_GENERIC = {"number", "name", "code"}
"""Words of a fact's id that every question may have."""


@dataclass(frozen=True)
class ContractFact:
    """A fact of hers.

    Attributes:
        id: Its name.
        value: What she says when she tells it.
        disclose: Told unasked, only when asked for, or never.
        phrases: How the policy asks for it, where the domain's script knows.
    """

    id: str
    value: str
    disclose: Disclosure
    phrases: tuple[str, ...] = ()

    def is_asked(self, heard: str) -> bool:
        """Whether a message of the policy asks for it: in the script's words, or by its name."""
        text = heard.casefold()
        if any(phrase.casefold() in text for phrase in self.phrases) or says(heard, self.value):
            return True
        names = {word.casefold() for word in _WORD.findall(self.id.replace("_", " "))} - _GENERIC
        asks = any(mark in heard for mark in QUESTION_MARKS)
        return asks and (not names or any(name in text for name in names))


@dataclass(frozen=True)
class Contract:
    """A user's contract in one dialogue.

    Attributes:
        facts: All she has, those of requests she may change to included.
        requests: For each request, the values that come up while it is dealt with; what she may
            change it to is another choice of values.
        known: Texts that she knows: her goal, her manner.
        forbidden: What she must not say.
        secret: Values of gold calls that she cannot know.
        others: Values of what she must not change her mind to.
        may_change: She may change her mind.
    """

    facts: tuple[ContractFact, ...] = ()
    requests: tuple[tuple[frozenset[str], ...], ...] = ()
    known: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    may_change: bool = False

    @classmethod
    def of(cls, task: TaskSpec, persona: PersonaSpec, script: UserScriptSpec | None) -> Contract:
        """The contract of a persona in a task."""
        known = (task.goal, persona.style, persona.knowledge, *persona.goals)
        goal = task.user
        if goal is None:
            return cls(known=known, secret=_secret(task, known), may_change=persona.changes_mind)
        asks = script.understands if script is not None else {}
        specs = [*goal.facts, *(f for request in goal.requests for f in request.all_facts())]
        facts = tuple(dict.fromkeys(_fact(spec, persona, asks) for spec in specs))
        values = (fact.value for fact in facts)
        first = {fact.value for request in goal.requests for fact in request.facts}
        instead = {fact.value for r in goal.requests if r.instead for fact in r.instead.all_facts()}
        told = frozenset(fact.value for fact in facts if fact.disclose != "never")
        return cls(
            facts=facts,
            requests=tuple(tuple(_choices(request, told)) for request in goal.requests),
            known=known,
            forbidden=tuple(goal.never_says),
            secret=_secret(task, (*known, *values)),
            others=() if persona.changes_mind else tuple(sorted(instead - first)),
            may_change=persona.changes_mind,
        )


def _fact(spec: FactSpec, persona: PersonaSpec, asks: Mapping[str, Sequence[str]]) -> ContractFact:
    disclose = persona.disclose.get(spec.id, spec.disclose)
    return ContractFact(spec.id, spec.value, disclose, tuple(asks.get(f"ask:{spec.id}", ())))


def _choices(request: RequestSpec, told: frozenset[str]) -> Iterator[frozenset[str]]:
    at: RequestSpec | None = request
    while at is not None:
        yield told & {fact.value for fact in at.facts}
        at = at.instead


def _secret(task: TaskSpec, known: Iterable[str]) -> tuple[str, ...]:
    """Identifiers among the arguments of gold calls that none of the known texts holds."""
    texts = list(known)
    values = {text for call in task.gold if call.by == "agent" for text in texts_in(call.arguments)}
    return tuple(
        sorted(
            value
            for value in values
            if any(sign.isdigit() for sign in value)
            and len(value) > 1
            and not any(says(text, value) for text in texts)
        )
    )
