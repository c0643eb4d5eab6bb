"""Tasks of the shop, generated from a seed: each is one customer with one to three wishes."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Any, TypeVar

from muarl.spec import FactSpec, GoldCallSpec, PredicateSpec, RequestSpec, TaskSpec, UserGoalSpec

from .goals import ask_for
from .shopper import Goal, Shopper
from .world import build, split_of

KINDS = {
    "cancel": 3,
    "give_back": 5,
    "swap": 7,
    "redirect": 3,
    "move": 2,
    "repay": 3,
    "how_much_back": 1,
    "cheapest": 1,
    "how_many": 1,
}
"""What is asked for, and how often."""
ORDERLESS = ("move", "cheapest", "how_many")
REFUSABLE = ("cancel", "give_back", "swap", "redirect", "move", "repay")
CHANGEABLE = ("cancel", "give_back", "swap", "redirect", "repay")
PERSONAS = {"plain": 0.3, "terse": 0.25, "fickle": 0.2, "forgetful": 0.25}
WISHES = {1: 0.3, 2: 0.4, 3: 0.3}
"""How many things a customer wants."""
REFUSED = 0.25
"""Share of wishes that the rules forbid, where it can be."""
NOTHING = 0.3
"""Share of tasks kept of those in which nothing would be changed."""
STRANGERS = ("cancel", "redirect")
STRANGER = 0.4
"""Share of refusals, of these kinds, that are about an order of another customer's."""
REPAIR = 0.08
"""Share of tasks whose last wish is for a person."""
MOVED = 0.08
"""Share of tasks in which she has moved, and wants an order sent to the new home."""
NO_EMAIL = 0.25
"""Share of customers who do not remember their email address."""
TRIES = 25
"""Customers that a plan is tried on."""


T = TypeVar("T")


def customers_of(split: str) -> list[str]:
    """Customers that tasks of a split may be about."""
    return [key for at, key in enumerate(base()["customers"]) if split_of(at) == split]


@cache
def base() -> dict[str, Any]:
    """The world, for all tasks."""
    return build()


def generate(split: str, seed: int, count: int) -> list[TaskSpec]:
    """`count` tasks of a split, each about a customer of its own."""
    rng = random.Random(f"{split} {seed}")
    customers = customers_of(split)
    rng.shuffle(customers)
    tasks: list[TaskSpec] = []
    while len(tasks) < count:
        plan = _plan(rng)
        fitting = (
            key for key in customers if len(base()["customers"][key]["orders"]) >= plan.orders
        )
        for customer_id in islice(fitting, TRIES):
            stranger = rng.choice(customers)
            draft = _Draft(rng, plan.persona, customer_id, stranger)
            if all(draft.add(wish) for wish in plan.wishes) and draft.is_clear():
                tasks.append(draft.task(f"{split}-{len(tasks):03d}", split))
                customers.remove(customer_id)
                break
    return tasks


@dataclass(frozen=True)
class _Wish:
    """Something to be asked for: its kind, whether it is refused, whether she changes her mind."""

    kind: str
    refused: bool = False
    changed: bool = False


@dataclass(frozen=True)
class _Plan:
    """What a task is to be like, before there is a customer for it."""

    persona: str
    wishes: tuple[_Wish, ...]

    @property
    def orders(self) -> int:
        """How many orders it takes."""
        return sum(wish.kind not in ORDERLESS for wish in self.wishes)


def _plan(rng: random.Random) -> _Plan:
    persona = _draw(rng, PERSONAS)
    wishes = []
    if persona == "fickle":
        wishes = [_Wish(rng.choice(CHANGEABLE), changed=True)]
    elif rng.random() < MOVED:
        wishes = [_Wish("move"), _Wish("redirect_home")]
    for _ in range(_draw(rng, WISHES) - len(wishes)):
        kind = _draw(rng, KINDS)
        wishes.append(_Wish(kind, refused=kind in REFUSABLE and rng.random() < REFUSED))
    if (
        all(wish.refused or wish.kind not in REFUSABLE for wish in wishes)
        and rng.random() > NOTHING
    ):
        return _plan(rng)
    if rng.random() < REPAIR:
        wishes.append(_Wish("repair"))
    return _Plan(persona, tuple(wishes))


class _Draft:
    """A task in the making."""

    def __init__(self, rng: random.Random, persona: str, customer_id: str, stranger: str) -> None:
        self.rng = rng
        self.persona = persona
        self.shopper = Shopper(rng, base(), customer_id)
        self.stranger = Shopper(rng, base(), stranger)
        self.wishes: list[tuple[Goal, Goal | None]] = []

    def add(self, wish: _Wish) -> bool:
        """Find what she can ask for so; whether there is anything."""
        kind, refused = wish.kind, wish.refused
        if kind in ORDERLESS and any(kind == g.ask for g, _ in self.wishes):
            return False
        if refused and kind in STRANGERS and self.rng.random() < STRANGER:
            goal = self._of_stranger(kind)
        else:
            goal = ask_for(self.shopper, kind, refused=refused)
        if goal is None:
            return False
        instead = None
        if wish.changed:
            self.shopper.used.discard(goal.order_id)  # she may want something else with it
            instead = ask_for(self.shopper, self.rng.choice(CHANGEABLE), refused=False)
            if (
                instead is None
                or instead.facts == goal.facts
                or {goal.ask, instead.ask} == {"cancel"}
            ):
                return False
        self.shopper.grant(instead or goal)
        self.wishes.append((goal, instead))
        return True

    def _of_stranger(self, kind: str) -> Goal | None:
        """What another customer could have, and she cannot."""
        if self.persona == "forgetful" or self.stranger.customer_id == self.shopper.customer_id:
            return None
        goal = ask_for(self.stranger, kind, refused=False)
        return goal and replace(goal, call=None, words=f"{goal.words}; it is a neighbour's order")

    def is_clear(self) -> bool:
        """Whether what she says tells which order she means, if she has forgotten its number."""
        if self.persona != "forgetful":
            return True
        for goal, _ in self.wishes:
            if not goal.order_id:
                continue
            orders = self.shopper.world["orders"]
            if not goal.items:
                goal.items = (self.rng.choice(list(orders[goal.order_id]["lines"]))["name"],)
                goal.facts["item"] = goal.items[0]
            holding = [
                order_id
                for order_id in self.shopper.customer["orders"]
                if {line["name"] for line in orders[order_id]["lines"]}.issuperset(goal.items)
            ]
            if holding != [goal.order_id]:
                return False
        return any(goal.order_id for goal, _ in self.wishes)

    def task(self, task_id: str, split: str) -> TaskSpec:
        """The finished task."""
        base_customer = base()["customers"][self.shopper.customer_id]
        facts = {
            "full_name": base_customer["full_name"],
            "postcode": base_customer["address"]["postcode"],
        }
        find = GoldCallSpec(tool="find_customer_by_name", arguments=dict(facts))
        if self.rng.random() >= NO_EMAIL:
            facts["email"] = base_customer["email"]
            find = GoldCallSpec(tool="find_customer_by_email", arguments={"email": facts["email"]})
        done = [instead or goal for goal, instead in self.wishes]
        said = [goal.said for goal in done if goal.said]
        calls = [goal.call for goal in done if goal.call is not None]
        wanted = [{"said": {"text": text}} for text in said]
        wanted += [{"called": {"tool": call.tool}} for call in calls if "transfer" in call.tool]
        return TaskSpec(
            id=task_id,
            split=split,
            goal=self._in_words(facts),
            personas=[self.persona],
            user=UserGoalSpec(
                requests=[_request(goal, instead) for goal, instead in self.wishes],
                facts=[
                    FactSpec(id=fact, value=value, disclose="on_request")
                    for fact, value in facts.items()
                ],
            ),
            gold=[find, *calls],
            reward=[PredicateSpec.model_validate(each) for each in (*ALWAYS, *wanted)]
            if wanted
            else None,
        )

    def _in_words(self, facts: dict[str, str]) -> str:
        """The goal for LLM users and readers."""
        email = "you do not remember your email address"
        if "email" in facts:
            email = f"your email address is {facts['email']}"
        who = f"You are {facts['full_name']}, postcode {facts['postcode']}; {email}."
        parts = []
        for goal, instead in self.wishes:
            words = self._wish_in_words(goal)
            if instead is not None:
                rather = self._wish_in_words(instead)
                words += f" (asked to confirm it, you change your mind: you rather {rather})"
            parts.append(words)
        unknown = " You do not know any order number." if self.persona == "forgetful" else ""
        return f"{who} You want to {'; then to '.join(parts)}.{unknown}"

    def _wish_in_words(self, goal: Goal) -> str:
        order = f"order {goal.order_id}"
        if self.persona == "forgetful":
            named = " and ".join(goal.items)
            order = "your order" if named in goal.words else f"the order with the {named}"
        return goal.words.format(order=order)


ALWAYS = ({"gold_world": True}, {"python": {"function": "rules.py:identified"}})
"""The domain's reward, to which a task may add."""


def _request(goal: Goal, instead: Goal | None = None) -> RequestSpec:
    return RequestSpec(
        ask=goal.ask,
        facts=[FactSpec(id=fact, value=value) for fact, value in goal.facts.items()],
        instead=_request(instead) if instead else None,
    )


def _draw(rng: random.Random, shares: Mapping[T, float]) -> T:
    return rng.choices(list(shares), list(shares.values()))[0]
