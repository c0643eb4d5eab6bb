"""The desk's expert: a rule-based agent that reads what a user writes, with bad habits on request.

It is not told the task. Habits, each with a rate, make the demonstrations of a cold start imperfect
in the ways that reinforcement learning is to mend:

- `skip_lookup`   changes an order without looking it up;
- `skip_confirm`  does not ask for a yes;
- `quit`          says it is done without having done it;
- `stale`         goes on with what the user wanted before she changed her mind;
- `comply`        tries what the rules forbid;
- `refuse`        refuses what the rules allow.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from muarl.messages import Message, ToolCall
from muarl.spec import TaskSpec

from .tasks import ALLOWED, TOOLS
from .words import CITIES

HABITS = ("skip_lookup", "skip_confirm", "quit", "stale", "comply", "refuse")

_ORDER = re.compile(r"\b[A-Z]\d{2}\b")
_CITY = re.compile(rf"\b({'|'.join(CITIES)})\b")
_INTENT = {"cancel": r"\bcancel\b", "return": r"\breturn\b|\btake back\b", "redirect": r"\bto\b"}
_CHANGE = re.compile(r"no\b|wait|hold|actually|sorry|that is wrong|wrong")
_SAYS = {"cancel": "Cancel", "return": "Return", "redirect": "Send"}


@dataclass
class _Wish:
    """What the user wants, as far as it is known."""

    intent: str
    order_id: str | None = None
    city: str | None = None
    status: str | None = None
    asked_account: bool = False
    confirmed: bool = False

    @property
    def to_city(self) -> str:
        """Said wherever it fits: what is said seldom is learned late, in some seeds too late."""
        return f" to {self.city}" if self.city else ""


class Expert:
    """Plays the desk for one dialogue."""

    def __init__(
        self, task: TaskSpec, imperfections: Mapping[str, float], rng: random.Random
    ) -> None:
        unknown = sorted(set(imperfections) - set(HABITS))
        if unknown:
            raise ValueError(f"unknown imperfections {unknown}; choose from {', '.join(HABITS)}")
        del task
        self._rates = imperfections
        self._rng = rng
        self._wish: _Wish | None = None
        self._calls = 0

    def act(self, history: Sequence[Message]) -> Message:
        """The next message."""
        last = history[-1]
        if last.role == "user":
            return self._hear(last.content)
        return self._read(last)

    def _lapses(self, habit: str) -> bool:
        return self._rng.random() < self._rates.get(habit, 0.0)

    def _hear(self, text: str) -> Message:
        """Answer the user."""
        intents = [name for name, pattern in _INTENT.items() if re.search(pattern, text)]
        order, city = _ORDER.search(text), _CITY.search(text)
        asked = next((i for i in ("cancel", "return") if i in intents), None)
        if asked is None and city is not None:
            asked = "redirect"
        if asked is not None:
            stale = self._wish is not None and self._wish.status is not None
            if not (stale and _CHANGE.match(text) and self._lapses("stale")):
                self._wish = _Wish(asked)
            elif self._wish is not None:
                self._wish.confirmed = True
                return self._do(self._wish)
        if self._wish is None:
            return _say("Which order is it?")
        if order is not None and self._wish.asked_account:  # accounts are named like orders
            return self._call("find_orders", account=order[0])
        if order is not None and self._wish.order_id is None:
            self._wish.order_id = order[0]
        if city is not None and self._wish.city is None:
            self._wish.city = city[0]
        if self._wish.order_id is None:
            forgotten = any(word in text for word in ("know", "idea", "remember", "forgot"))
            self._wish.asked_account = forgotten
            return _say("What is your account?" if forgotten else _which(self._wish))
        if self._wish.status is None:
            return self._look_up(self._wish)
        self._wish.confirmed = True
        return self._do(self._wish)

    def _read(self, result: Message) -> Message:
        """Go on after a tool's answer."""
        wish = self._wish
        assert wish is not None  # no call is made before a wish is known
        if result.name == "find_orders":
            found = _ORDER.search(result.content)
            if found is None:
                return _say("Sorry, I cannot find it.")
            wish.order_id, wish.asked_account = found[0], False
            return self._look_up(wish)
        if result.name == "get_order":
            wish.status = result.content.split(", ")[-1]
            return self._decide(wish)
        return self._end(wish) if result.content == "ok" else self._give_up("do that")

    def _look_up(self, wish: _Wish) -> Message:
        assert wish.order_id is not None
        if self._lapses("skip_lookup"):
            wish.status = ALLOWED[wish.intent]
            return self._confirm(wish)
        return self._call("get_order", order_id=wish.order_id)

    def _decide(self, wish: _Wish) -> Message:
        """Refuse or ask for a yes, by the rules."""
        allowed = wish.status == ALLOWED[wish.intent]
        if self._lapses("refuse" if allowed else "comply"):
            allowed = not allowed
        if not allowed:
            return self._give_up(f"{wish.intent} it{wish.to_city}")
        return self._confirm(wish)

    def _confirm(self, wish: _Wish) -> Message:
        if self._lapses("skip_confirm"):
            return self._do(wish)
        return _say(f"{_SAYS[wish.intent]} {wish.order_id}{wish.to_city}. Shall I go ahead?")

    def _do(self, wish: _Wish) -> Message:
        if self._lapses("quit"):
            return self._end(wish)
        assert wish.order_id is not None
        if wish.intent == "redirect":
            return self._call("redirect_order", order_id=wish.order_id, city=wish.city or "")
        return self._call(TOOLS[wish.intent], order_id=wish.order_id)

    def _end(self, wish: _Wish) -> Message:
        self._wish = None
        done = f"Done, it goes{wish.to_city}" if wish.city else "Done"
        return _say(f"{done}. Anything else?")

    def _give_up(self, what: str) -> Message:
        self._wish = None
        return _say(f"Sorry, I cannot {what}.")

    def _call(self, tool: str, **arguments: str) -> Message:
        self._calls += 1
        call = ToolCall(id=f"expert_{self._calls}", name=tool, arguments=arguments)
        return Message(role="assistant", content="", tool_calls=(call,))


def _which(wish: _Wish) -> str:
    return f"Which order goes{wish.to_city}?" if wish.city else "Which order is it?"


def _say(text: str) -> Message:
    return Message(role="assistant", content=text)
