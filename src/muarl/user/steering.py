"""Knobs of an LLM user: what she is told to do in one message, drawn as a scripted user's knobs are.

Silence, leaving and typos are done for her. For the rest she gets a direction for one message, and
what she must not tell in it is looked for; she does not remember directions. Where a chance depends on
what the policy does (it asks for a fact, it refuses), the domain's script says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from muarl.spec import UserScriptSpec
from muarl.spec.knobs import INTERRUPTIONS
from muarl.spoken import says
from muarl.user.contract import Contract, ContractFact
from muarl.user.flow import act_of
from muarl.user.knobs.answering import part_of
from muarl.user.knobs.dice import Dice

NEED_SCRIPT = frozenset(
    {"partial", "unsure", "refuse", "change_request", "unavailable", "push_back", "accept_false"}
    | {"challenge_done"}
)
"""Knobs whose chances depend on what the policy does."""


@dataclass(frozen=True)
class Direction:
    """What holds for one message.

    Attributes:
        words: What she is told; "" for nothing.
        act: How the message is recorded; "" where she does as she likes.
        hidden: Values that it must not tell.
        exactly: What she says, without being asked; None to ask her.
        stop: She leaves with it.
        may_change: She may change her mind in it.
    """

    words: str = ""
    act: str = ""
    hidden: tuple[str, ...] = ()
    exactly: str | None = None
    stop: bool = False
    may_change: bool = False


PLAIN = Direction()


class Steering:
    """One dialogue's directions.

    Args:
        dice: Draws.
        contract: Whose facts may be kept back.
        script: Understands the policy; without one, knobs that need it get no chance.
    """

    def __init__(self, dice: Dice, contract: Contract, script: UserScriptSpec | None) -> None:
        self._dice = dice
        self._contract = contract
        self._script = script
        self._leaves = dice.draw("abandon")
        self._never_asks = dice.draw("no_follow_up")
        self._settled = "change_request" in dice.rates and not dice.draw("change_request")
        self._replies = 0
        self._interrupted = self._changed = self._wished = self._insisted = self._agreed = False
        self._asked: set[str] = set()
        self.withheld = frozenset(f.id for f in self._volunteered() if dice.roll("withhold"))
        if len(contract.requests) > 1:
            dice.mark("no_follow_up", self._never_asks)

    def always(self) -> tuple[str, ...]:
        """What holds for the whole dialogue."""
        kept = [fact.value for fact in self._contract.facts if fact.id in self.withheld]
        said = []
        if kept:
            said.append(f"Keep these to yourself until you are asked for them: {', '.join(kept)}.")
        if self._never_asks:
            said.append("Ask for all you want in your first message; after it, ask nothing at all.")
        if self._settled and self._contract.may_change:
            said.append(
                "You never change your mind: from the start, want what you would change to."
            )
        return tuple(said)

    def hear(self, text: str) -> Direction:
        """The direction for the answer to a message."""
        self._replies += 1
        if self._replies == self._dice.abandon_after + 1:
            self._dice.mark("abandon", self._leaves)
            if self._leaves:
                return Direction(act="abandon", exactly="never mind, i have to go", stop=True)
        if not self._interrupted and (which := self._dice.roll(*INTERRUPTIONS)):
            self._interrupted = True
            if which == "silence":
                return Direction(act="silence", exactly="...")
            words = "Do not answer. Say one short thing that has nothing to do with why you write."
            return Direction(words, "digress", self._values())
        self._interrupted = False
        return PLAIN if self._script is None else self._react(act_of(text, self._script), text)

    def _react(self, act: str, text: str) -> Direction:
        """What depends on what the policy does."""
        if act.startswith("ask:"):
            return self._evade(act.removeprefix("ask:"))
        if act == "confirm":
            return self._answer_confirmation(text)
        if act == "refuse" and not self._insisted:
            self._insisted = True
            if self._dice.roll("push_back"):
                return Direction("Do not take this refusal. Insist on what you want.", "push_back")
        if act == "done" and not self._agreed:
            self._agreed = True
            if self._dice.roll("challenge_done"):
                return Direction("Object: you were never asked for a yes.", "challenge")
        if act in ("refuse", "done") and not self._wished and self._dice.roll("unavailable"):
            self._wished = True
            words = "Before you go on, ask for something that this service surely does not do."
            return Direction(words, "unavailable", self._values())
        return PLAIN

    def _evade(self, fact_id: str) -> Direction:
        facts = [f for f in self._contract.facts if f.id == fact_id and f.disclose != "never"]
        if not facts or fact_id in self._asked:
            return PLAIN
        self._asked.add(fact_id)
        hidden = tuple(fact.value for fact in facts)
        parts = [part for fact in facts if (part := part_of(fact.value))]
        match self._dice.roll(*(["partial"] if parts else []), "unsure", "refuse"):
            case "partial":
                words = f"Tell only a part of what you are asked for: {' or '.join(parts)}."
                return Direction(words, f"partly:{fact_id}", hidden)
            case "unsure":
                words = "Say that you don't know what you are asked for. (Asked again, you do.)"
                return Direction(words, "unknown", hidden)
            case "refuse":
                words = "Decline to say what you are asked for. (Asked again, you tell it.)"
                return Direction(words, "refuse", hidden)
        return PLAIN

    def _answer_confirmation(self, text: str) -> Direction:
        wanted = [values for choices in self._contract.requests for values in choices]
        if not any(all(says(text, value) for value in values) for values in wanted):
            if self._dice.roll("accept_false"):
                return Direction("Say yes, although it is not quite what you want.", "confirm")
            return PLAIN
        self._agreed = True
        if self._changed:
            return PLAIN
        self._changed = True
        if self._contract.may_change:
            self._dice.mark("change_request", not self._settled)
            return Direction(may_change=True)
        if len(self._contract.requests) > 1 and self._dice.roll("change_request"):
            words = "Say that you want the other thing first, and that you come back to this one."
            return Direction(words, "change", may_change=True)
        return PLAIN

    def _volunteered(self) -> list[ContractFact]:
        return [fact for fact in self._contract.facts if fact.disclose == "volunteer"]

    def _values(self) -> tuple[str, ...]:
        return tuple(fact.value for fact in self._contract.facts)
