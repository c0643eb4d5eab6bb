"""Who asks, the order that she speaks of, and how she names it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta

from muarl.goals import Scene, Unfit, Wish, call
from muarl.spec import GoldCallSpec, PredicateSpec
from muarl.spec.predicate_kinds import Called
from muarl.world import World, plain

from .world import TODAY, Record, split_of

Calls = list[GoldCallSpec]
RETURN_DAYS = timedelta(days=30)
NO_EMAIL = 0.25
"""Share of customers who do not remember their email address."""
FORGOTTEN = 0.35
"""Share of orders that a customer knows only by what is in them."""


def customer(scene: Scene) -> tuple[str, bool]:
    """Who asks, and whether she knows her email address; she tells who she is when she is asked."""
    everybody = enumerate(scene.world["customers"])
    customer_id = scene.pick(
        [c for at, c in everybody if split_of(at) == scene.split], any_split=True
    )
    made = scene.world["customers"][customer_id]
    scene.tell("full_name", made["full_name"], "your name is {full_name}", "on_request")
    scene.tell("postcode", made["address"]["postcode"], "your postcode is {postcode}", "on_request")
    by_email = scene.rng.random() >= NO_EMAIL
    if by_email:
        scene.tell("email", made["email"], "your email address is {email}", "on_request")
    else:
        scene.remark("you do not remember your email address")
    return customer_id, by_email


def me(scene: Scene) -> Record:
    """The customer, as she is by then."""
    made: Record = plain(scene.world["customers"][scene.who[0]])
    return made


def identified(scene: Scene) -> Calls:
    """The first thing that is to be done, once in a dialogue."""
    if scene.wish:
        return []
    customer_id, by_email = scene.who
    made = scene.start["customers"][customer_id]
    if by_email:
        find = call("find_customer_by_email", email=made["email"])
    else:
        postcode = made["address"]["postcode"]
        find = call("find_customer_by_name", full_name=made["full_name"], postcode=postcode)
    return [find, call("get_customer", customer_id=customer_id)]


def method(
    scene: Scene, fits: Callable[[str, Record], bool], original: str = ""
) -> tuple[str, str]:
    """A payment method of hers, and how she calls it."""
    fitting = {key: made for key, made in me(scene)["payments"].items() if fits(key, made)}
    if not fitting:
        raise Unfit("she has no such payment method")
    key = scene.rng.choice(list(fitting))
    if key == original and scene.rng.random() < 0.5:
        return key, "original payment"
    card = fitting[key]["kind"] == "card"
    return key, f"card ending {fitting[key]['last_four']}" if card else str(fitting[key]["kind"])


def covers(amount: float) -> Callable[[str, Record], bool]:
    """Tells which methods can pay an amount."""
    return lambda _key, made: round(amount, 2) <= made.get("balance", amount)


class Order:
    """An order that a wish is about, and how she names it: by its number, or by what is in it.

    Attributes:
        lines: What of it she names, of those that `of` allows.
    """

    def __init__(
        self,
        scene: Scene,
        fits: Callable[[Record], bool],
        of: Callable[[Record], bool] = lambda line: True,
        *,
        count: int = 0,
        owner: str = "",
        known: str = "",
    ) -> None:
        """Find one.

        Args:
            scene: Where.
            fits: Which may be meant.
            of: Which of its lines may be meant.
            count: Of how many lines she speaks.
            owner: Whose it is, if it is not hers.
            known: The one that she has spoken of, and speaks of once more.
        """
        orders = list(scene.world["customers"][owner or scene.who[0]]["orders"])
        made = {key: plain(scene.world["orders"][key]) for key in orders}
        fitting = [key for key in orders if fits(made[key])]
        if known and known not in fitting:
            raise Unfit("it cannot be had with this order")
        self.key = known or scene.pick(fitting, any_split=True)
        self.record = made[self.key]
        self.original = str(self.record["payments"][0]["payment_id"])
        named = [line for line in self.record["lines"] if of(line)]
        if len(named) < count:
            raise Unfit("there is too little in the order")
        forgotten = not (owner or known) and scene.rng.random() < FORGOTTEN
        self.lines: list[Record] = scene.rng.sample(named, max(count, int(forgotten)))
        self.facts = {"order_id": self.key}
        self.named = "order {order_id}"
        self.calls = [*identified(scene), call("get_order", order_id=self.key)]
        if self.lines:
            self.facts["item"] = " and ".join(line["name"] for line in self.lines)
        if forgotten:
            self._forget(scene, orders)

    def _forget(self, scene: Scene, orders: Sequence[str]) -> None:
        """She knows only what is in it."""
        names = {line["name"] for line in self.lines}

        def holding(world: World) -> Iterator[str]:
            for key in orders:
                if {line["name"] for line in world["orders"][key]["lines"]} >= names:
                    yield key

        looks = [call("get_order", order_id=key) for key in orders]
        scene.find("order_id", holding, by=[*identified(scene), *looks])
        del self.facts["order_id"]
        self.named = "the order with the {item}, whose number you do not know,"
        self.calls = []

    @property
    def item_ids(self) -> list[str]:
        """Numbers of what she names."""
        return [line["item_id"] for line in self.lines]

    def part(self) -> str:
        """What she names of it, in words."""
        return f"the {{item}} of {self.named.replace(' with the {item}', '')}"


def is_open(order: Record) -> bool:
    """Whether it can still be changed."""
    return bool(order["status"] == "pending")


def is_fresh(order: Record) -> bool:
    """Whether it was delivered, and not too long ago."""
    if order["status"] != "delivered":
        return False
    return TODAY - date.fromisoformat(order["delivered_on"]) <= RETURN_DAYS


def in_words(place: Mapping[str, str]) -> str:
    """An address as customers write it."""
    return f"{place['street']}, {place['city']} {place['postcode']}"


def wish(
    ask: str, words: str, order: Order, gold: Calls, facts: Mapping[str, str] | None = None
) -> Wish:
    """Something about an order that she gets."""
    return Wish(ask=ask, words=words, facts={**order.facts, **(facts or {})}, gold=gold)


def forbidden(
    ask: str, words: str, order: Order, deed: GoldCallSpec, facts: Mapping[str, str] | None = None
) -> Wish:
    """Something about an order that she is refused; it counts only if the agent has looked."""
    looked = Called(tool="get_order", arguments={"order_id": order.key})
    return Wish(
        ask=ask,
        words=words,
        facts={**order.facts, **(facts or {})},
        gold=order.calls,
        forbidden=[deed],
        reward=[PredicateSpec(called=looked)],
    )
