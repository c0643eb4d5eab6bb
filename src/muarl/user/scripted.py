"""A scripted user: a flow over a fact ledger, with seeded wording.

What it knows is the task's ledger; what it tells unasked, on request or never is the ledger's word
unless the persona has its own. How it speaks is data: templates per act, split and persona. Same
seed and same messages, same user.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from muarl.errors import UserError
from muarl.record import UserReply
from muarl.spec import FactSpec, PersonaSpec, RequestSpec, UserGoalSpec, UserScriptSpec
from muarl.spec.task import Disclosure
from muarl.spec.wording import SLOT


class ScriptedUser:
    """One dialogue's scripted user.

    Acts it tells apart in the policy's messages are the script's `understands`, tried in order:

    | the policy ...            | the user ...                                                   |
    |---------------------------|----------------------------------------------------------------|
    | `confirm`: asks for a yes | denies if the facts of her request are not named; changes her  |
    |                           | mind once, if persona and task say so; else confirms           |
    | `ask:<fact>`              | tells it, or says she does not know                            |
    | `refuse`                  | takes it (`accept_refusal`, else `next`), goes on to the next  |
    | `done`                    | goes on to her next request, or thanks and leaves              |
    | anything else             | says so; out of patience, she leaves (`abandon`)               |
    """

    def __init__(
        self,
        script: UserScriptSpec,
        persona: PersonaSpec,
        goal: UserGoalSpec,
        split: str,
        rng: random.Random,
    ) -> None:
        self._script = script
        self._persona = persona
        self._split = split
        self._rng = rng
        self._waiting = list(goal.requests)
        self._own_facts = goal.facts
        self._request = self._waiting.pop(0)
        self._changed = False
        self._unhelped = 0

    async def open(self) -> UserReply:
        return UserReply(self._say("open"), act="open")

    async def reply(self, agent_text: str) -> UserReply:
        act = self._understand(agent_text)
        if act == "unclear":
            return self._unclear()
        self._unhelped = 0
        if act == "confirm":
            return self._answer_confirmation(agent_text)
        if act.startswith("ask:"):
            return self._answer_question(act.removeprefix("ask:"))
        return self._move_on("accept_refusal" if act == "refuse" else "next")

    def _understand(self, text: str) -> str:
        heard = text.casefold()
        for act, phrases in self._script.understands.items():
            if any(phrase.casefold() in heard for phrase in phrases):
                return act
        return "unclear"

    def _unclear(self) -> UserReply:
        self._unhelped += 1
        if self._unhelped > self._persona.patience:
            return UserReply(self._say("abandon"), stop=True, act="abandon")
        return UserReply(self._say("unclear"), act="unclear")

    def _answer_confirmation(self, text: str) -> UserReply:
        if not all(_names(text, fact.value) for fact in self._request.facts):
            return UserReply(self._say("deny"), act="deny")
        changed = self._request.instead
        if self._persona.changes_mind and changed is not None and not self._changed:
            self._request, self._changed = changed, True
            return UserReply(self._say("change"), act="change")
        return UserReply(self._say("confirm"), act="confirm")

    def _answer_question(self, fact_id: str) -> UserReply:
        fact = self._ledger().get(fact_id)
        if fact is None or self._disclosure(fact) == "never":
            return UserReply(self._say("unknown"), act="unknown")
        return UserReply(self._say(f"tell:{fact_id}", asked=fact_id), act=f"tell:{fact_id}")

    def _move_on(self, how: str) -> UserReply:
        if not self._waiting:
            return UserReply(self._say("stop"), stop=True, act="stop")
        self._request = self._waiting.pop(0)
        self._changed = False
        return UserReply(self._say(how if self._templates(how) else "next"), act=how)

    def _ledger(self) -> dict[str, FactSpec]:
        """Her facts by id; a fact of the request stands before one of her own."""
        return {fact.id: fact for fact in (*self._own_facts, *self._request.facts)}

    def _disclosure(self, fact: FactSpec) -> Disclosure:
        return self._persona.disclose.get(fact.id, fact.disclose)

    def _say(self, act: str, asked: str | None = None) -> str:
        """Word an act, telling nothing but what may be told (and `asked`)."""
        known = {
            fact.id: fact.value
            for fact in self._ledger().values()
            if self._disclosure(fact) == "volunteer" or fact.id == asked
        }
        template = self._rng.choice(self._fitting(act, {*known, "request"}))
        if "{request}" in template:
            wording = self._rng.choice(self._fitting(f"ask:{self._request.ask}", set(known)))
            template = template.replace("{request}", wording)
        return SLOT.sub(lambda slot: known[slot[1]], template)

    def _fitting(self, act: str, known: set[str]) -> list[str]:
        """Templates of an act that need only known slots, and of those the most telling ones."""
        slots = {template: set(SLOT.findall(template)) for template in self._templates(act)}
        usable = {t: len(needs - {"request"}) for t, needs in slots.items() if needs <= known}
        if not usable:
            raise UserError(
                f"no phrasing for act {act!r} in split {self._split!r} that needs no more than "
                f"{sorted(known - {'request'})}; add one under user.phrasings"
            )
        most = max(usable.values())
        return [template for template, count in usable.items() if count == most]

    def _templates(self, act: str) -> list[str]:
        for phrasings in (self._persona.phrasings, self._script.phrasings):
            found = [
                *phrasings.get(self._split, {}).get(act, []),
                *phrasings.get("any", {}).get(act, []),
            ]
            if found:
                return found
        return []


def _names(text: str, value: str) -> bool:
    """Whether a text holds a value as words of its own: `W4173` is not in `W41731`."""
    before = r"(?<!\w)" if value[:1].isalnum() else ""
    after = r"(?!\w)" if value[-1:].isalnum() else ""
    return bool(re.search(before + re.escape(value.casefold()) + after, text.casefold()))


def request_facts(request: RequestSpec) -> Iterator[FactSpec]:
    """Facts of a request and of what may replace it."""
    yield from request.facts
    if request.instead is not None:
        yield from request_facts(request.instead)
