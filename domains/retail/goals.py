"""What customers may want, as goals: tasks are composed of them and proved one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta

from muarl.goals import Goals, Scene, Unfit, Wish, call
from muarl.spec import GoldCallSpec, PredicateSpec
from muarl.spec.predicate import Called, Said
from muarl.world import World, plain

from .world import TODAY, Record, address, split_of

Calls = list[GoldCallSpec]
RETURN_DAYS = timedelta(days=30)
GOOD_REASONS = ("no longer needed", "ordered by mistake")
BAD_REASONS = ("cheaper elsewhere", "takes too long")
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


goals = Goals(wishes={1: 0.35, 2: 0.4, 3: 0.25}, begin=customer)


# --- what there is to choose from -----------------------------------------------------------------


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


# --- orders that are pending ----------------------------------------------------------------------


def cancelled(scene: Scene, known: str = "") -> Wish:
    """An order that she does not want any more."""
    order = Order(scene, is_open, known=known)
    reason = scene.rng.choice(GOOD_REASONS)
    deed = call("cancel_order", order_id=order.key, reason=reason)
    words = f"you want {order.named} to be cancelled; your reason: {{reason}}"
    return wish("cancel", words, order, [*order.calls, deed], {"reason": reason})


def redirected(scene: Scene, known: str = "") -> Wish:
    """Another address."""
    order = Order(scene, is_open, known=known)
    place = address(scene.rng)
    deed = call("change_delivery_address", order_id=order.key, **place)
    words = f"you want {order.named} to be delivered to {{address}} instead"
    return wish("redirect", words, order, [*order.calls, deed], {"address": in_words(place)})


def paid_otherwise(scene: Scene, known: str = "") -> Wish:
    """Another payment method."""
    order = Order(scene, is_open, known=known)
    owed = covers(sum(line["price"] for line in order.record["lines"]))
    key, called = method(scene, lambda k, made: k != order.original and owed(k, made))
    deed = call("change_payment", order_id=order.key, payment_id=key)
    words = f"you want to pay for {order.named} with your {{pay_with}} instead"
    return wish("repay", words, order, [*order.calls, deed], {"pay_with": called})


# --- items ----------------------------------------------------------------------------------------


def given_back(scene: Scene, known: str = "") -> Wish:
    """A return within the thirty days."""
    count = scene.rng.choice((1, 1, 2))
    order = Order(scene, is_fresh, lambda line: not line["clearance"], count=count, known=known)
    key, called = method(
        scene, lambda k, made: k == order.original or made["kind"] == "gift card", order.original
    )
    deed = call("return_items", order_id=order.key, item_ids=order.item_ids, refund_to=key)
    words = f"you want to return {order.part()}, refunded to your {{refund_to}}"
    return wish("give_back", words, order, [*order.calls, deed], {"refund_to": called})


def swapped(scene: Scene, known: str = "") -> Wish:
    """Another variant: of what is pending, or of what was delivered."""

    def fits(order: Record) -> bool:
        return is_fresh(order) or (is_open(order) and not order["items_changed"])

    count = scene.rng.choice((1, 1, 1, 2))
    order = Order(scene, fits, lambda line: not line["clearance"], count=count, known=known)
    want = "cheapest" if count == 2 else wanted(scene, order.lines[0])
    looks = [call("get_product", product_id=line["product_id"]) for line in order.lines]
    new = []
    for line, look in zip(order.lines, looks, strict=True):
        new.append(scene.find("new_item", meant(line, want), by=[*order.calls, look]))
        order.calls = []
    difference = sum(
        variants(scene.world, line)[item_id]["price"] - line["price"]
        for line, item_id in zip(order.lines, new, strict=True)
    )
    key, called = method(scene, covers(difference), order.original)
    deed = call(
        "swap_items" if is_open(order.record) else "exchange_items",
        order_id=order.key,
        item_ids=order.item_ids,
        new_item_ids=new,
        payment_id=key,
    )
    words = (
        f"you want to swap {order.part()} for the {{want}} one, the difference on your {{pay_with}}"
    )
    return wish("swap", words, order, [deed], {"want": want, "pay_with": called})


def variants(world: World, line: Record) -> Record:
    """Variants of a product, by item."""
    found: Record = plain(world["products"][line["product_id"]]["variants"])
    return found


def wanted(scene: Scene, line: Record) -> str:
    """What she would rather have: "cheapest", "cheapest teal", or "teal"."""
    options = [variant["options"] for variant in variants(scene.world, line).values()]
    kind = scene.rng.choice(("cheapest", "cheapest of", "one", "one"))
    if kind == "cheapest":
        return kind
    value = scene.rng.choice(sorted({value for option in options for value in option.values()}))
    return str(value) if kind == "one" else f"cheapest {value}"


def meant(line: Record, want: str) -> Callable[[World], Iterator[str]]:
    """Finds the variants that she may mean, among those in stock."""
    value = want.removeprefix("cheapest").strip()

    def fitting(world: World) -> Iterator[str]:
        others = {
            key: variant
            for key, variant in variants(world, line).items()
            if key != line["item_id"] and variant["stock"]
        }
        if not want.startswith("cheapest"):
            return (key for key, variant in others.items() if differs_in(line, variant) == {value})
        fits = [
            key for key, made in others.items() if not value or value in made["options"].values()
        ]
        least = min((others[key]["price"] for key in fits), default=None)
        return (key for key in fits if others[key]["price"] == least)

    return fitting


def differs_in(line: Record, variant: Record) -> set[str]:
    """Values of a variant that are not those of a line."""
    return {v for option, v in variant["options"].items() if line["options"][option] != v}


@goals.goal(weight=0.8)
def ask_refund(scene: Scene) -> Wish:
    """How much a return would bring."""
    order = Order(scene, is_fresh, lambda line: not line["clearance"], count=2)
    amount = f"{sum(line['price'] for line in order.lines):.2f}"
    words = f"you want to know how much you would get back for {order.part()}"
    said = [PredicateSpec(said=Said(text=amount))]
    return Wish(ask="how_much_back", words=words, facts=order.facts, gold=order.calls, reward=said)


@goals.goal(weight=1.2, last=True)
def repaired(scene: Scene) -> Wish:
    """Something for a person: a repair."""
    order = Order(scene, lambda made: made["status"] == "delivered", count=1)
    hand_over = call(
        "transfer_to_human", summary=f"{order.facts['item']} is to be repaired for her"
    )
    return Wish(
        ask="repair",
        words=f"{order.part().replace('the {item}', 'you want the {item}', 1)} to be repaired, for it broke",
        facts=order.facts,
        gold=[*order.calls, hand_over],
        reward=[PredicateSpec(called=Called(tool="transfer_to_human"))],
    )


# --- the shop and the customer --------------------------------------------------------------------


@goals.goal(weight=0.5)
def ask_cheapest(scene: Scene) -> Wish:
    """What the cheapest variant costs."""
    product, looks = asked_product(scene, "cheapest")
    price = min(variant["price"] for variant in product["variants"].values() if variant["stock"])
    return Wish(
        ask="cheapest",
        words="you want to know what the cheapest {item} in stock costs",
        facts={"item": product["name"]},
        gold=looks,
        say=[f"{price:.2f}"],
    )


@goals.goal(weight=0.5)
def ask_number(scene: Scene) -> Wish:
    """How many variants there are."""
    product, looks = asked_product(scene, "number")
    count = sum(variant["stock"] > 0 for variant in product["variants"].values())
    return Wish(
        ask="how_many",
        words="you want to know how many variants of the {item} are in stock",
        facts={"item": product["name"]},
        gold=looks,
        reward=[PredicateSpec(said=Said(text=str(count)))],
    )


def asked_product(scene: Scene, what: str) -> tuple[Record, Calls]:
    """A product to ask about, what once in a dialogue, and the calls that show it."""
    scene.pick([what], any_split=True)
    products = enumerate(scene.world["products"])
    product_id = scene.rng.choice([key for at, key in products if split_of(at) == scene.split])
    looks = [call("list_products"), call("get_product", product_id=product_id)]
    return plain(scene.world["products"][product_id]), [*identified(scene), *looks]


@goals.goal(weight=0.8)
def moved(scene: Scene) -> Wish:
    """A new home."""
    return _moved(scene, address(scene.rng), allowed=True)


def _moved(scene: Scene, place: Mapping[str, str], *, allowed: bool) -> Wish:
    scene.pick(["home"], any_split=True)
    deed = call("change_home_address", customer_id=scene.who[0], **place)
    looked = Called(tool="get_customer")
    return Wish(
        ask="move",
        words="you want your home address to be changed to {address}; orders stay as they are",
        facts={"address": in_words(place)},
        gold=[*identified(scene), *([deed] if allowed else [])],
        forbidden=[] if allowed else [deed],
        reward=[] if allowed else [PredicateSpec(called=looked)],
    )


@goals.goal(weight=3)
def redirected_home(scene: Scene) -> Wish:
    """An order to the home that she has just told."""
    home = me(scene)["address"]
    if home == plain(scene.start["customers"][scene.who[0]]["address"]):
        raise Unfit("she has not moved")
    order = Order(scene, is_open)
    deed = call("change_delivery_address", order_id=order.key, **home)
    return Wish(
        ask="redirect_home",
        words=f"you want {order.named} to be delivered to your new home address",
        facts=order.facts,
        gold=[*order.calls, deed],
        follows=True,
    )


# --- changes of mind ------------------------------------------------------------------------------

for allowed, weight in {
    cancelled: 2.5,
    redirected: 2,
    paid_otherwise: 2.5,
    given_back: 4,
    swapped: 6,
}.items():
    goals.goal(weight=weight)(allowed)


@goals.goal(weight=14, first=True)
def changed(scene: Scene) -> Wish:
    """She changes her mind when she is asked to confirm."""
    one, other = scene.rng.sample((cancelled, redirected, paid_otherwise, given_back), 2)
    first = one(scene)
    if "order_id" not in first.facts or scene.finds:
        raise Unfit("what she wants first need not be found")
    known = first.facts["order_id"] if scene.rng.random() < 0.6 else ""
    instead = scene.rng.choice((other, swapped))(scene, known)
    return Wish(
        ask=first.ask,
        words=first.words,
        facts=first.facts,
        instead=instead,
        personas=("fickle",),
    )


# --- what the rules forbid ------------------------------------------------------------------------


@goals.goal(weight=1.6)
def not_cancelled(scene: Scene) -> Wish:
    """A bad reason, an order that is on its way, or somebody else's."""
    kind, owner = scene.rng.choice(("reason", "shipped", "stranger")), ""
    if kind == "stranger":
        everybody = enumerate(scene.world["customers"])
        others = [c for at, c in everybody if split_of(at) == scene.split and c != scene.who[0]]
        owner = scene.rng.choice(others)
    on_its_way = kind == "shipped"
    order = Order(scene, lambda made: is_open(made) != on_its_way, owner=owner)
    reason = scene.rng.choice(BAD_REASONS if kind == "reason" else GOOD_REASONS)
    deed = call("cancel_order", order_id=order.key, reason=GOOD_REASONS[0])
    named = f"{order.named}, which a neighbour has placed," if owner else order.named
    words = f"you want {named} to be cancelled; your reason: {{reason}}"
    return forbidden("cancel", words, order, deed, {"reason": reason})


@goals.goal(weight=1.2)
def not_given_back(scene: Scene) -> Wish:
    """Too late, from the clearance, or refunded to another card."""
    order = Order(scene, lambda made: made["status"] == "delivered", count=1)
    key, called = method(scene, lambda _key, _made: True, order.original)
    fair = key == order.original or me(scene)["payments"][key]["kind"] == "gift card"
    if is_fresh(order.record) and fair and not order.lines[0]["clearance"]:
        raise Unfit("the rules allow it")
    deed = call("return_items", order_id=order.key, item_ids=order.item_ids, refund_to=key)
    words = f"you want to return {order.part()}, refunded to your {{refund_to}}"
    return forbidden("give_back", words, order, deed, {"refund_to": called})


@goals.goal(weight=1.6)
def not_swapped(scene: Scene) -> Wish:
    """Out of stock, changed before, too late, or from the clearance."""
    order = Order(scene, lambda made: made["status"] in ("pending", "delivered"), count=1)
    (line,) = order.lines
    want = wanted(scene, line)
    new = next(iter(meant(line, want)(scene.world)), None)
    possible = is_open(order.record) and not order.record["items_changed"]
    possible |= is_fresh(order.record) and not line["clearance"]
    if possible and new is not None:
        raise Unfit("the rules allow it")
    key, called = method(scene, lambda _key, made: made["kind"] != "gift card", order.original)
    deed = call(
        "swap_items" if is_open(order.record) else "exchange_items",
        order_id=order.key,
        item_ids=order.item_ids,
        new_item_ids=[new or line["item_id"]],
        payment_id=key,
    )
    words = (
        f"you want to swap {order.part()} for the {{want}} one, the difference on your {{pay_with}}"
    )
    return forbidden("swap", words, order, deed, {"want": want, "pay_with": called})


@goals.goal(weight=0.5)
def not_redirected(scene: Scene) -> Wish:
    """To a post box."""
    order = Order(scene, is_open)
    place = address(scene.rng) | {"street": f"PO Box {scene.rng.randint(10, 990)}"}
    deed = call("change_delivery_address", order_id=order.key, **place)
    words = f"you want {order.named} to be delivered to {{address}} instead"
    return forbidden("redirect", words, order, deed, {"address": in_words(place)})


@goals.goal(weight=0.2)
def not_moved(scene: Scene) -> Wish:
    """A home in a post box."""
    place = address(scene.rng) | {"street": f"PO Box {scene.rng.randint(10, 990)}"}
    return _moved(scene, place, allowed=False)


@goals.goal(weight=1)
def not_paid_otherwise(scene: Scene) -> Wish:
    """A gift card that holds too little."""
    order = Order(scene, is_open)
    owed = sum(line["price"] for line in order.record["lines"])
    key, called = method(
        scene, lambda k, made: k != order.original and made.get("balance", owed) < owed
    )
    deed = call("change_payment", order_id=order.key, payment_id=key)
    words = f"you want to pay for {order.named} with your {{pay_with}} instead"
    return forbidden("repay", words, order, deed, {"pay_with": called})
