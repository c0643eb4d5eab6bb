"""What users of the desk may want, as goals: tasks along axes, beside those of `tasks.py`."""

from __future__ import annotations

import random
from collections.abc import Iterator

from muarl.goals import Goals, Scene, Wish, call
from muarl.world import World

from .tasks import ALLOWED, FORBIDDEN, TOOLS
from .words import CITIES, account, order, order_id

WORDS = {
    "cancel": (
        "you want order {order_id} cancelled",
        "order {order_id} is to be cancelled for you",
    ),
    "return": ("you want to return order {order_id}", "order {order_id} is to be taken back"),
    "redirect": ("you want order {order_id} sent to {city}", "order {order_id} is to go to {city}"),
}
BY_ACCOUNT = {
    "cancel": "you want your order cancelled, but do not remember its number",
    "return": "you want to return your order, but do not remember its number",
    "redirect": "you want your order sent to {city}, but do not remember its number",
}


def customer(scene: Scene) -> str:
    """Who calls: an account, which she tells when she is asked for it."""
    number = account(scene.rng, scene.split)
    scene.tell("account", number, "your account is {account}", "on_request")
    return number


goals = Goals(
    wishes={1: 0.55, 2: 0.35, 3: 0.1},
    balance={
        "writes": {0: 0.1, 1: 0.53, 2: 0.31, 3: 0.06},
        "finds": {0: 0.85, 1: 0.15},
        "refusals": {0: 0.8, 1: 0.2},
    },
    begin=customer,
)


@goals.goal(weight=4)
def allowed(scene: Scene) -> Wish:
    """Something that the rules allow, on an order whose number she knows."""
    intent = scene.rng.choice(list(TOOLS))
    return wish(intent, new_order(scene, ALLOWED[intent]), scene, personas=("plain", "terse"))


@goals.goal(weight=1.5)
def forbidden(scene: Scene) -> Wish:
    """Something that the rules forbid."""
    intent = scene.rng.choice(list(TOOLS))
    key = new_order(scene, FORBIDDEN[intent])
    return wish(intent, key, scene, personas=("plain", "terse"), is_forbidden=True)


@goals.goal(weight=2, first=True)
def fickle(scene: Scene) -> Wish:
    """She changes her mind: another wish, or another order."""
    intent = scene.rng.choice(("cancel", "redirect"))
    key = new_order(scene, "pending")
    if scene.rng.random() < 0.5:
        other = wish("redirect" if intent == "cancel" else "cancel", key, scene)
    else:
        second = scene.rng.choice(list(TOOLS))
        other = wish(second, new_order(scene, ALLOWED[second]), scene)
    return wish(intent, key, scene, personas=("fickle",), instead=other)


@goals.goal(weight=3, first=True)
def forgotten(scene: Scene) -> Wish:
    """Her only order, which she cannot name: the desk has to find it."""
    intent = scene.rng.choice(list(TOOLS))
    new_order(scene, ALLOWED[intent])

    def hers(world: World) -> Iterator[str]:
        return (key for key, one in world["orders"].items() if one["account"] == scene.who)

    key = scene.find("order_id", hers, by=[call("find_orders", account=scene.who)])
    return wish(intent, key, scene, personas=("plain", "forgetful"), is_told=False)


def new_order(scene: Scene, status: str) -> str:
    """One more order of hers."""

    def make(rng: random.Random) -> str:
        return order_id(rng, scene.split)

    key = scene.name(make)
    scene.bring({"orders": {key: order(scene.rng, scene.who, status)}})
    return key


def wish(
    intent: str,
    key: str,
    scene: Scene,
    *,
    personas: tuple[str, ...] = (),
    is_told: bool = True,
    is_forbidden: bool = False,
    instead: Wish | None = None,
) -> Wish:
    """One of the desk's three requests, on an order."""
    facts = {"order_id": key} if is_told else {}
    arguments = {"order_id": key}
    if intent == "redirect":
        city = scene.rng.choice([c for c in CITIES if c != scene.world["orders"][key]["city"]])
        facts["city"] = arguments["city"] = city
    calls = [call("get_order", order_id=key)]
    deed = [call(TOOLS[intent], **arguments)]
    return Wish(
        ask=intent,
        words=WORDS[intent] if is_told else BY_ACCOUNT[intent],
        facts=facts,
        gold=[] if instead else calls if is_forbidden else calls + deed,
        forbidden=deed if is_forbidden else [],
        instead=instead,
        personas=personas,
    )
