"""What a scripted user does, turn by turn; how she words it is `muarl.user.words`' concern.

She goes through her requests in order, answers what is asked, and confirms only what is right. What
her knobs make of that are behaviours that stand before her plain answer: each may put a move of its
own in its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from muarl.spec import FactSpec, PersonaSpec, RequestSpec, UserGoalSpec, UserScriptSpec
from muarl.spec.task import Disclosure
from muarl.spec.wording import answers, fitting
from muarl.user.knobs.dice import Dice

Wish = tuple[str, Mapping[str, str]]
"""An intent, and the facts that its words may tell."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A message of the policy's, and the act that it shows: one of the script's, or "unclear"."""

    text: str
    act: str


@dataclass(frozen=True, slots=True)
class Move:
    """What she does in one turn.

    Attributes:
        act: Its name, as it is recorded.
        known: Facts that its words may tell, id to value.
        wishes: What `{request}` stands for in them.
        part: What `{part}` stands for.
        stop: She ends the dialogue with it.
    """

    act: str
    known: Mapping[str, str]
    wishes: tuple[Wish, ...]
    part: str = ""
    stop: bool = False


@dataclass
class Standing:
    """One of her requests, from when she makes it until it is over.

    Attributes:
        request: What she asks for.
        instead: What she will change it to.
        changeable: It may change at its first valid confirmation question, which is still to come.
        withheld: Facts she would volunteer, and now keeps until she is asked.
        agreed: She said yes to it.
        insisted: She may not push back again.
        challenged: She may not challenge its being done again.
    """

    request: RequestSpec
    instead: RequestSpec | None = None
    changeable: bool = False
    withheld: set[str] = field(default_factory=set)
    agreed: bool = False
    insisted: bool = False
    challenged: bool = False


Behaviour = Callable[["Flow", Heard], Move | None]
"""A knob at work: the move that stands in the place of her plain answer, if it acts."""


class Flow:
    """One dialogue's scripted user, without her words.

    Attributes:
        script: What she understands.
        persona: How she is.
        dice: Draws what her knobs do.
        waiting: Requests to come.
        standing: Those made and not over; more than one only if she makes all of them at once.
        now: The one that is being talked of.
        asked: Facts she was asked for, as (id, value).
        replies: What she answered so far, this time included.
        never_asks: She makes all requests at once, and asks nothing back.
        leaves: She does not stay for more than so many replies.
        interrupted: Her last reply was no answer.
        swapped: She has put another request before the one she was at.
        aside: She asked for what nobody does; how she goes on once that is settled.
        wished: She did so once.
    """

    def __init__(
        self,
        script: UserScriptSpec,
        persona: PersonaSpec,
        goal: UserGoalSpec,
        split: str,
        dice: Dice,
        behaviours: Iterable[Behaviour],
    ) -> None:
        self.script = script
        self.persona = persona
        self.dice = dice
        self.waiting = list(goal.requests)
        self.standing: list[Standing] = []
        self.now = Standing(self.waiting[0])
        self.asked: set[tuple[str, str]] = set()
        self.replies = 0
        self.never_asks = dice.draw("no_follow_up")
        self.leaves = dice.draw("abandon")
        self.interrupted = False
        self.swapped = False
        self.aside = ""
        self.wished = False
        self._own_facts = goal.facts
        self._split = split
        self._behaviours = tuple(behaviours)
        self._unhelped = 0

    @property
    def values(self) -> Iterator[str]:
        """Values of all the facts she has by now."""
        return (fact.value for each in self.standing for fact in self._ledger(each).values())

    def open(self) -> Move:
        """Begin with the first request, or with all of them."""
        self._make("open")
        if self.waiting:
            self.dice.mark("no_follow_up", self.never_asks)
        while self.never_asks and self.waiting:
            self._make("open")
        self.now = self.standing[0]
        return self.move("open", wishes=self.standing)

    def hear(self, text: str) -> Move:
        """Answer a message."""
        self.replies += 1
        heard = Heard(text, act_of(text, self.script))
        if heard.act != "unclear":
            self._unhelped = 0
        for behave in self._behaviours:
            move = behave(self, heard)
            if move is not None:
                return move
        return self._answer(heard)

    def move(
        self,
        act: str,
        *,
        asked: str | None = None,
        part: str = "",
        stop: bool = False,
        wishes: Iterable[Standing] | None = None,
    ) -> Move:
        """A move that tells nothing but what may be told, and `asked`."""
        standing = [self.now] if wishes is None else list(wishes)
        return Move(
            act,
            self._known(self.now, asked),
            tuple((each.request.ask, self._known(each)) for each in standing),
            part,
            stop,
        )

    def move_on(self, how: str) -> Move:
        """Leave the request she is at: to the next one, or for good."""
        self.standing.remove(self.now)
        if self.standing:
            self.now = self.standing[0]
            return self.move("pass")
        if not self.waiting:
            return self.move("stop", stop=True)
        return self.take_up(how)

    def take_up(self, how: str) -> Move:
        """Make the request that waits first."""
        self._make("next" if how == "accept_refusal" else how)
        return self.move(how)

    def change_to(self, request: RequestSpec) -> Move:
        """Make another request of the one she is at."""
        self.standing.remove(self.now)
        self._stand(Standing(request), "change")
        return self.move("change")

    def named(self, text: str) -> Standing | None:
        """Which of her requests a message has all the facts of."""
        for each in sorted(self.standing, key=lambda each: each is not self.now):
            if all(names(text, fact.value) for fact in each.request.facts):
                return each
        return None

    def facts(self) -> dict[str, str]:
        """All she has at the request she is at, to be told or not: id to value."""
        return {fact.id: fact.value for fact in self._ledger(self.now).values()}

    def fact(self, fact_id: str) -> FactSpec | None:
        """A fact that she tells when she is asked for it."""
        fact = self._ledger(self.now).get(fact_id)
        return None if fact is None or self._disclosure(fact) == "never" else fact

    def _answer(self, heard: Heard) -> Move:
        """Her plain answer."""
        if heard.act == "unclear":
            return self._unclear()
        if heard.act == "confirm":
            named = self.named(heard.text)
            if named is None:
                return self.move("deny")
            self.now = named
            named.agreed = True
            return self.move("confirm")
        if heard.act.startswith("do:"):
            return self.move(heard.act)
        if heard.act.startswith("ask:"):
            fact_id = heard.act.removeprefix("ask:")
            if self.fact(fact_id) is None:
                return self.move("unknown")
            return self.move(f"tell:{fact_id}", asked=fact_id)
        return self.move_on("accept_refusal" if heard.act == "refuse" else "next")

    def _unclear(self) -> Move:
        self._unhelped += 1
        if self._unhelped > self.persona.patience:
            return self.move("abandon", stop=True)
        return self.move("pass" if self.never_asks else "unclear")

    def _make(self, entry: str) -> None:
        """Make the request that waits first; `entry` is the act she does it by."""
        request = self.waiting.pop(0)
        instead = request.instead if self.persona.changes_mind else None
        if instead is None or "change_request" not in self.dice.rates:
            self._stand(Standing(request, instead, instead is not None), entry)
        elif self.dice.draw("change_request"):
            self._stand(Standing(request, instead, True), entry)
        else:
            self._stand(Standing(instead, None, True), entry)

    def _stand(self, standing: Standing, entry: str) -> None:
        self.standing.append(standing)
        self.now = standing
        if "withhold" in self.dice.rates:
            self._withhold(entry)

    def _withhold(self, entry: str) -> None:
        """Keep some of what she would volunteer, as far as she can do without telling it."""
        for fact in self._ledger(self.now).values():
            if (
                fact.id not in self._known(self.now)
                or f"ask:{fact.id}" not in self.script.understands
            ):
                continue
            without = self._known(self.now).keys() - {fact.id}
            acts = (entry, f"ask:{self.now.request.ask}", *answers(self.script))
            sayable = all(fitting(a, without, self._split, self.script, self.persona) for a in acts)
            if sayable and self.dice.roll("withhold"):
                self.now.withheld.add(fact.id)

    def _ledger(self, standing: Standing) -> dict[str, FactSpec]:
        """Her facts by id; a fact of the request stands before one of her own."""
        return {fact.id: fact for fact in (*self._own_facts, *standing.request.facts)}

    def _disclosure(self, fact: FactSpec) -> Disclosure:
        return self.persona.disclose.get(fact.id, fact.disclose)

    def _known(self, standing: Standing, asked: str | None = None) -> dict[str, str]:
        """What she may tell of a request, unasked but for `asked`."""
        return {
            fact.id: fact.value
            for fact in self._ledger(standing).values()
            if fact.id == asked
            or (self._disclosure(fact) == "volunteer" and fact.id not in standing.withheld)
        }


def act_of(text: str, script: UserScriptSpec) -> str:
    """The first act of the script that a message of the policy's shows, or "unclear"."""
    heard = text.casefold()
    for act, phrases in script.understands.items():
        if any(phrase.casefold() in heard for phrase in phrases):
            return act
    return "unclear"


def names(text: str, value: str) -> bool:
    """Whether a text holds a value as words of its own: `W4173` is not in `W41731`."""
    before = r"(?<!\w)" if value[:1].isalnum() else ""
    after = r"(?!\w)" if value[-1:].isalnum() else ""
    return bool(re.search(before + re.escape(value.casefold()) + after, text.casefold()))
