"""The desk's oracle: an agent that serves every user of the desk, however hard she makes it.

Like the expert it is not told the task. Where the expert takes a user at her first word, the oracle
asks again: after a silence, a digression, half an answer or none. It reads words whose letters
changed places, keeps several requests in mind, and does nothing without a yes. What it fails at,
nobody could have done; proofs and benchmarks of users rest on that.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from muarl.messages import Message, ToolCall
from muarl.spec import TaskSpec

from .tasks import ALLOWED, TOOLS
from .words import CITIES

_ORDER = re.compile(r"\b[A-Z]\d{2}\b")
_CITY = re.compile(rf"\b({'|'.join(CITIES)})\b")
_INTENTS = {
    "cancel": "cancel",
    "return": "return",
    "take back": "return",
    "send": "redirect",
    "ship": "redirect",
}
_INTENT = re.compile(rf"\b({'|'.join(_INTENTS)})\b")
_YES = re.compile(r"\b(yes|yep|sure|fine|ok)\b")
_UNKNOWN = re.compile(r"\b(know|idea|remember|forgot)\b")
_ASIDE = re.compile(r"\b(can|could) you also\b")
_SAYS = {"cancel": "Cancel", "return": "Return", "redirect": "Send"}
_READ = [
    "cancel",
    "return",
    "take",
    "back",
    "send",
    "ship",
    "sure",
    "fine",
    "know",
    "idea",
    "remember",
    "forgot",
    "could",
    "also",
    "right",
]


def _slips() -> Iterator[tuple[str, str]]:
    for word in _READ:
        for i in range(1, len(word) - 2):
            yield f"{word[:i]}{word[i + 1]}{word[i]}{word[i + 2 :]}", word


_MEANT = dict(_slips())


@dataclass
class Wish:
    """A request, as far as it is known."""

    intent: str
    order_id: str | None = None
    city: str | None = None
    account: str | None = None
    unknown: int = 0
    looked_up: bool = False

    @property
    def question(self) -> str:
        """Asks for a yes, and names all that it is asked to."""
        to_city = f" to {self.city}" if self.city else ""
        return f"{_SAYS[self.intent]} {self.order_id}{to_city}. Shall I go ahead?"


class Oracle:
    """Plays the desk for one dialogue."""

    def __init__(
        self, task: TaskSpec, imperfections: Mapping[str, float], rng: random.Random
    ) -> None:
        del task, imperfections, rng
        self._wishes: list[Wish] = []
        self._said = ""
        self._calls = 0

    def act(self, history: Sequence[Message]) -> Message:
        """The next message."""
        last = history[-1]
        if last.role != "user":
            return self._read(last)
        text = re.sub(r"[a-z]+", lambda word: _MEANT.get(word[0], word[0]), last.content)
        wishes = list(_wishes(text))
        if wishes:  # a first word, a change of mind, or a request made anew
            self._wishes = wishes + self._wishes[1:]
            return self._go_on(self._wishes[0])
        if not self._said:
            return self.say("Which order is it?")
        if self._said.startswith(("Done", "Sorry")):
            return self._hear_after(text)
        return self._hear_within(self._wishes[0], text)

    def say(self, text: str) -> Message:
        """Say it to the user."""
        self._said = text
        return Message(role="assistant", content=text)

    def confirm(self, wish: Wish) -> Message:
        """Ask for a yes."""
        return self.say(wish.question)

    def _hear_after(self, text: str) -> Message:
        """A request is over, and she makes no further one."""
        if _ASIDE.search(text):
            return self.say("Sorry, I cannot do that.")
        if self._wishes and re.search(r"\b(ok|i see|all right)\b", text):
            return self._go_on(self._wishes[0])
        return self.say(self._said)

    def _hear_within(self, wish: Wish, text: str) -> Message:
        """She was asked for a fact, or for a yes."""
        if self._said.endswith("Shall I go ahead?"):
            return self.do(wish) if _YES.search(text) else self.confirm(wish)
        found = _ORDER.search(text)
        if found is not None and "account" in self._said:
            wish.account = found[0]
        elif found is not None:
            wish.order_id = found[0]
        elif _UNKNOWN.search(text):
            wish.unknown += 1
        return self._go_on(wish)

    def _go_on(self, wish: Wish) -> Message:
        """The next thing that is needed for a wish."""
        if wish.order_id is not None:
            if not wish.looked_up:
                return self._call("get_order", order_id=wish.order_id)
            return self.confirm(wish)
        if wish.account is not None:
            return self._call("find_orders", account=wish.account)
        # Who does not know it when she is asked again does not know it.
        return self.say("Which order is it?" if wish.unknown < 2 else "What is your account?")

    def _read(self, result: Message) -> Message:
        """Go on after a tool's answer."""
        wish = self._wishes[0]
        if result.name == "find_orders":
            found = _ORDER.search(result.content)
            if found is None:
                return self._over("Sorry, I cannot find it.")
            wish.order_id = found[0]
            return self._go_on(wish)
        if result.name == "get_order":
            wish.looked_up = True
            if result.content.split(", ")[-1] != ALLOWED[wish.intent]:
                return self._over(f"Sorry, I cannot {wish.intent} it.")
            return self.confirm(wish)
        done = result.content == "ok"
        return self._over("Done. Anything else?" if done else "Sorry, I cannot do that.")

    def _over(self, text: str) -> Message:
        self._wishes.pop(0)
        return self.say(text)

    def do(self, wish: Wish) -> Message:
        """Carry it out."""
        where = {"city": wish.city or ""} if wish.intent == "redirect" else {}
        return self._call(TOOLS[wish.intent], order_id=wish.order_id or "", **where)

    def _call(self, tool: str, **arguments: str) -> Message:
        self._calls += 1
        call = ToolCall(id=f"oracle_{self._calls}", name=tool, arguments=arguments)
        return Message(role="assistant", content="", tool_calls=(call,))


def _wishes(text: str) -> Iterator[Wish]:
    """The requests in a message, each from its verb to the next one's."""
    verbs = list(_INTENT.finditer(text))
    ends = [verb.start() for verb in verbs[1:]] + [len(text)]
    for verb, end in zip(verbs, ends, strict=False):
        said = text[verb.start() : end]
        order, city = _ORDER.search(said), _CITY.search(said)
        yield Wish(_INTENTS[verb[0]], order and order[0], city and city[0])
