"""What customers may want, as goals: tasks are composed of them and proved one by one."""

from __future__ import annotations

from collections.abc import Mapping

from muarl.goals import Goals, Scene, Unfit, Wish, call
from muarl.spec import PredicateSpec
from muarl.spec.predicate_kinds import Called, Said
from muarl.world import plain

from .orders import (
    Calls,
    Order,
    covers,
    customer,
    forbidden,
    identified,
    in_words,
    is_fresh,
    is_open,
    me,
    method,
    wish,
)
from .variants import meant, variants, wanted
from .world import Record, address, split_of

GOOD_REASONS = ("no longer needed", "ordered by mistake")
BAD_REASONS = ("cheaper elsewhere", "takes too long")


goals = Goals(wishes={1: 0.35, 2: 0.4, 3: 0.25}, begin=customer)


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
