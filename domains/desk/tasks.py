"""Tasks of the desk, generated from a seed."""

from __future__ import annotations

import random
from typing import Any

from muarl.spec import FactSpec, GoldCallSpec, RequestSpec, TaskSpec, UserGoalSpec

from .words import CITIES, account, order, order_id

INTENTS = ("cancel", "return", "redirect", "redirect")
"""Drawn evenly. Redirecting has the most to get right, so it comes twice."""
ALLOWED = {"cancel": "pending", "return": "delivered", "redirect": "pending"}
FORBIDDEN = {"cancel": "shipped", "return": "pending", "redirect": "shipped"}
TOOLS = {"cancel": "cancel_order", "return": "return_order", "redirect": "redirect_order"}

PERSONAS = ("plain", "terse", "fickle", "forgetful")
PERSONA_SHARES = (0.3, 0.25, 0.25, 0.2)
TWO_REQUESTS = 0.4
REFUSAL = 0.15
"""Share of requests that the rules forbid. Pure-refusal tasks, which doing nothing solves, stay
under the floor."""


class _Draft:
    """One task in the making: its customer's orders, and what is asked of them."""

    def __init__(self, rng: random.Random, split: str) -> None:
        self.rng = rng
        self.split = split
        self.account = account(rng, split)
        self.orders: dict[str, dict[str, str]] = {}
        self.gold: list[GoldCallSpec] = []

    def request(self, intent: str, *, refused: bool, final: bool = True) -> RequestSpec:
        """A request on an order of its own; `final` ones add their gold call."""
        status = FORBIDDEN[intent] if refused else ALLOWED[intent]
        key = order_id(self.rng, self.split)
        while key in self.orders:
            key = order_id(self.rng, self.split)
        self.orders[key] = order(self.rng, self.account, status)
        return self.ask(intent, key, gold=final and not refused)

    def ask(self, intent: str, key: str, *, gold: bool) -> RequestSpec:
        """Word a request on an order the customer has."""
        facts = [FactSpec(id="order_id", value=key)]
        arguments: dict[str, Any] = {"order_id": key}
        if intent == "redirect":
            city = self.rng.choice([c for c in CITIES if c != self.orders[key]["city"]])
            facts.append(FactSpec(id="city", value=city))
            arguments["city"] = city
        if gold:
            self.gold.append(GoldCallSpec(tool=TOOLS[intent], arguments=arguments))
        return RequestSpec(ask=intent, facts=facts)

    def changed(self) -> RequestSpec:
        """A request that turns into another at the confirmation: other order, or other wish."""
        first = self.request(self.rng.choice(("cancel", "redirect")), refused=False, final=False)
        if self.rng.random() < 0.5:
            other = self.request(self.rng.choice(INTENTS), refused=False)
        else:
            wish = "redirect" if first.ask == "cancel" else "cancel"
            other = self.ask(wish, first.facts[0].value, gold=True)
        return first.model_copy(update={"instead": other})


def generate(split: str, seed: int, count: int) -> list[TaskSpec]:
    """`count` tasks of a split; entities and phrasings differ between splits."""
    rng = random.Random(seed)
    return [_task(rng, split, f"{split}-{index:04d}") for index in range(count)]


def _task(rng: random.Random, split: str, task_id: str) -> TaskSpec:
    draft = _Draft(rng, split)
    persona = rng.choices(PERSONAS, PERSONA_SHARES)[0]
    if persona == "fickle":
        requests = [draft.changed()]
    else:
        count = 2 if persona != "forgetful" and rng.random() < TWO_REQUESTS else 1
        requests = [
            draft.request(rng.choice(INTENTS), refused=rng.random() < REFUSAL) for _ in range(count)
        ]
    return TaskSpec(
        id=task_id,
        split=split,
        goal=_in_words(requests, draft.account),
        personas=[persona],
        user=UserGoalSpec(
            requests=requests,
            facts=[
                FactSpec(id="account", value=draft.account, disclose="on_request"),
            ],
        ),
        world={"orders": draft.orders},
        gold=draft.gold,
    )


def _in_words(requests: list[RequestSpec], number: str) -> str:
    """The goal for LLM users and readers."""

    def wish(request: RequestSpec) -> str:
        facts = {fact.id: fact.value for fact in request.facts}
        words = f"{request.ask} order {facts['order_id']}"
        return f"{words} to {facts['city']}" if "city" in facts else words

    parts = [
        wish(r)
        + (
            f" (when asked to confirm, you change your mind: {wish(r.instead)} instead)"
            if r.instead
            else ""
        )
        for r in requests
    ]
    return f"You want to {', then '.join(parts)}. Your account is {number}."
