"""What travellers may want, as goals: tasks are composed of them and proved one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from muarl.goals import Goals, Scene, Unfit, Wish, call
from muarl.spec import PredicateSpec
from muarl.spec.predicate_kinds import Called, Said
from muarl.world import World

from .offers import chosen, connections, direct, fare_of
from .places import AIRPORTS_OF, FIRST_NAMES, LAST_NAMES
from .trips import (
    Trip,
    compensation,
    forbidden,
    in_words,
    is_cancelled,
    is_flown,
    may_be_cancelled,
    me,
    money,
    traveller,
    verified,
    wish,
)
from .world import CABINS, DAYS, NOW, Record, free_bags, split_of

goals = Goals(
    wishes={1: 0.4, 2: 0.4, 3: 0.2},
    begin=traveller,
)


# --- new trips ------------------------------------------------------------------------------------


@goals.goal(weight=3)
def book(scene: Scene) -> Wish:
    """A new trip, one way, on the flight that suits her best."""
    rng, profile, world = scene.rng, me(scene), scene.world
    origin, destination = rng.sample(list(AIRPORTS_OF[scene.split]), 2)
    day = rng.choice([day for day in DAYS if day > NOW.date()])
    cabin, choice = rng.choice(CABINS), rng.choice(("cheapest", "cheapest", "earliest"))
    companions = rng.sample(profile["companions"], rng.choice((0, 0, 1)))
    people = [{key: profile[key] for key in ("name", "birth_date")}, *companions]
    route = (origin, destination, day.isoformat())

    def fitting(world: World) -> Iterator[list[Record]]:
        offers = list(direct(world, *route)) or list(connections(world, *route))
        return chosen(offers, choice, cabin, len(people))

    where = {"origin": origin, "destination": destination, "date": route[2]}
    looks = [*verified(scene), call("list_airports"), call("search_flights", **where)]
    if not list(direct(world, *route)):
        looks.append(call("search_connections", **where))
    legs = scene.find("flights", fitting, by=looks)
    bags = rng.randint(0, 3)
    paid_bags = max(0, bags - free_bags(profile["membership"], cabin) * len(people))
    insured = rng.random() < 0.4
    owed = len(people) * (sum(fare_of(leg, cabin) for leg in legs) + 25 * insured) + 40 * paid_bags
    certificates = [k for k, m in profile["payments"].items() if m["kind"] == "certificate"]
    certificate = rng.choice(certificates) if certificates and rng.random() < 0.5 else ""
    if certificate:
        owed = max(0, owed - profile["payments"][certificate]["balance"])
    key, method = money(scene, owed)
    return Wish(
        ask="book",
        words=(
            "you want the {choice} flight from {from_city} to {to_city} on {day} in {cabin} for "
            "{people}, with {bags} and {insurance}, paid with your {pay_with}"
        ),
        facts={
            "from_city": world["airports"][origin]["city"],
            "to_city": world["airports"][destination]["city"],
            "day": in_words(day),
            "cabin": cabin,
            "choice": choice,
            "people": f"two people with {companions[0]['name']}" if companions else "one person",
            "bags": f"{bags} bag{'s' * (bags != 1)}" if bags else "no bags",
            "insurance": "insurance" if insured else "no insurance",
            "pay_with": f"certificate and {method}" if certificate else method,
        },
        gold=[
            call(
                "book_trip",
                user_id=scene.who,
                segments=[{"flight": leg["flight"], "date": leg["date"]} for leg in legs],
                cabin=cabin,
                passengers=people,
                bags=bags,
                paid_bags=paid_bags,
                insurance=insured,
                payment_id=key,
                **({"certificate_id": certificate} if certificate else {}),
            )
        ],
    )


# --- trips that there are -------------------------------------------------------------------------


def cancelled(scene: Scene) -> Wish:
    """A reservation that the rules let her cancel."""
    trip = Trip(scene, may_be_cancelled)
    gold = [*trip.calls, call("cancel_reservation", reservation_id=trip.key)]
    return wish("cancel", f"you want {trip.named} to be cancelled", trip, gold)


def moved(scene: Scene) -> Wish:
    """Another day for a flight in comfort or business."""
    return _moved(scene, lambda trip: trip["cabin"] != "economy" and not is_flown(trip))


def _moved(scene: Scene, fits: Callable[[Record], bool], *, allowed: bool = True) -> Wish:
    trip = Trip(scene, lambda made: len(made["segments"]) == 1 and fits(made))
    cabin, choice = trip.record["cabin"], scene.rng.choice(("cheapest", "earliest"))
    (segment,) = trip.record["segments"]
    day = scene.rng.choice([d for d in DAYS if d > NOW.date() and d.isoformat() != segment["date"]])
    route = (trip.record["origin"], trip.record["destination"], day.isoformat())

    def fitting(world: World) -> Iterator[list[Record]]:
        return chosen(list(direct(world, *route)), choice, cabin, trip.passengers)

    where = dict(zip(("origin", "destination", "date"), route, strict=True))
    looks = [*trip.calls, call("search_flights", **where)]
    if allowed:
        (leg,) = scene.find("flight", fitting, by=looks)
    else:
        (leg,) = next(fitting(scene.world), [None])
        if leg is None:
            raise Unfit("there is no flight that she could want")
    owed = trip.passengers * (fare_of(leg, cabin) - segment["price"])
    key, method = money(scene, owed)
    change = call(
        "change_flights",
        reservation_id=trip.key,
        segments=[{"flight": leg["flight"], "date": leg["date"]}],
        payment_id=key,
    )
    words = f"you want {trip.named} to be on the {{choice}} flight on {{day}} instead, the difference on your {{pay_with}}"
    facts = {"day": in_words(day), "choice": choice, "pay_with": method}
    if allowed:
        return wish("move", words, trip, [change], facts)
    return forbidden("move", words, trip, change, facts)


def upgraded(scene: Scene) -> Wish:
    """Another cabin for all flights."""
    trip = Trip(scene, lambda made: not is_flown(made))
    cabin, owed = _other_cabin(scene, trip)
    if owed is None:
        raise Unfit("there are no seats")
    key, method = money(scene, owed)
    change = call("change_cabin", reservation_id=trip.key, cabin=cabin, payment_id=key)
    words = f"you want {trip.named} to be in {{cabin}} instead, the difference on your {{pay_with}}"
    return wish("upgrade", words, trip, [*trip.calls, change], {"cabin": cabin, "pay_with": method})


def _other_cabin(scene: Scene, trip: Trip) -> tuple[str, int | None]:
    """Another cabin, and what it costs; None if it cannot be had."""
    cabin = scene.rng.choice([cabin for cabin in CABINS if cabin != trip.record["cabin"]])
    if is_cancelled(trip.record) or any(
        day["seats"][cabin] < trip.passengers for day in trip.record["days"]
    ):
        return cabin, None
    before = sum(segment["price"] for segment in trip.record["segments"])
    after = sum(day["prices"][cabin] for day in trip.record["days"])
    return cabin, trip.passengers * (after - before)


def more_bags(scene: Scene) -> Wish:
    """More bags than she has booked, of which some may be free."""
    trip = Trip(scene, lambda made: not is_flown(made))
    more = scene.rng.randint(1, 3)
    bags = trip.record["bags"] + more
    free = free_bags(me(scene)["membership"], trip.record["cabin"]) * trip.passengers
    paid_bags = max(trip.record["paid_bags"], bags - free)
    key, method = money(scene, 40 * (paid_bags - trip.record["paid_bags"]))
    change = call(
        "add_bags", reservation_id=trip.key, bags=bags, paid_bags=paid_bags, payment_id=key
    )
    words = f"you want to take {{bags}} along on {trip.named} and pay with your {{pay_with}} if they cost anything"
    facts = {"bags": f"{more} more bag{'s' * (more > 1)}", "pay_with": method}
    return wish("bags", words, trip, [*trip.calls, change], facts)


def renamed(scene: Scene) -> Wish:
    """A name that is spelt wrongly."""
    trip = Trip(scene, lambda made: True)
    name = scene.rng.choice(trip.record["passengers"])["name"]
    first, last = name.split()
    new = f"{first}{first[-1]} {last}" if scene.rng.random() < 0.5 else f"{first} {last}{last[-1]}"
    change = call("correct_name", reservation_id=trip.key, name=name, new_name=new)
    words = f"you want the name {{name}} on {trip.named} to be spelt {{new_name}}"
    return wish("rename", words, trip, [*trip.calls, change], {"name": name, "new_name": new})


def compensated(scene: Scene) -> Wish:
    """Something for a flight that is late or does not go."""
    membership = me(scene)["membership"]
    trip = Trip(scene, lambda made: compensation(made, membership) > 0)
    amount = compensation(trip.record, membership)
    give = call("issue_certificate", user_id=scene.who, amount=amount)
    words = f"you complain of how {trip.named} went and want compensation"
    return wish("complain", words, trip, [*trip.calls, give])


for allowed, weight in {cancelled: 3, moved: 3, upgraded: 2, more_bags: 2, renamed: 1.5}.items():
    goals.goal(weight=weight)(allowed)
goals.goal(weight=2)(compensated)


@goals.goal(weight=1.5)
def ask_price(scene: Scene) -> Wish:
    """What another cabin would cost."""
    trip = Trip(scene, lambda made: not is_flown(made))
    cabin, owed = _other_cabin(scene, trip)
    if owed is None or owed <= 0:
        raise Unfit("there is no price to be told")
    return Wish(
        ask="ask_price",
        words=f"you want to know what it would cost in all to have {trip.named} in {{cabin}} instead",
        facts={**trip.facts, "cabin": cabin},
        gold=trip.calls,
        reward=[PredicateSpec(said=Said(text=str(owed)))],
    )


@goals.goal(weight=1.5, last=True)
def lost_bag(scene: Scene) -> Wish:
    """Something for a person: a bag that got lost."""
    trip = Trip(scene, is_flown)
    hand_over = call("transfer_to_human", summary=f"lost a bag on the trip booked as {trip.key}")
    return Wish(
        ask="lost_bag",
        words=f"you want somebody to look for a bag that got lost on {trip.named.removesuffix(',')}",
        facts=trip.facts,
        gold=[*trip.calls, hand_over],
        reward=[PredicateSpec(called=Called(tool="transfer_to_human"))],
    )


@goals.goal(weight=4, first=True)
def changed(scene: Scene) -> Wish:
    """She changes her mind when she is asked to confirm."""
    kinds = scene.rng.sample([cancelled, upgraded, more_bags, renamed], 2)
    first = kinds[0](scene)
    if "city" in first.facts:
        raise Unfit("what she wants first need not be found")
    return Wish(
        ask=first.ask,
        words=first.words,
        facts=first.facts,
        instead=kinds[1](scene),
        personas=("fickle",),
    )


# --- what the rules forbid ------------------------------------------------------------------------


@goals.goal(weight=2.5)
def not_cancelled(scene: Scene) -> Wish:
    """A reservation that must stay, or is another traveller's."""
    owner = ""
    if scene.rng.random() < 0.25:
        everybody = enumerate(scene.world["travellers"])
        others = [t for at, t in everybody if split_of(at) == scene.split and t != scene.who]
        owner = scene.rng.choice(others)
    trip = Trip(scene, lambda made: may_be_cancelled(made) == bool(owner), owner)
    named = f"{trip.named}, which a friend has booked," if owner else trip.named
    deed = call("cancel_reservation", reservation_id=trip.key)
    return forbidden("cancel", f"you want {named} to be cancelled", trip, deed)


@goals.goal(weight=1)
def not_moved(scene: Scene) -> Wish:
    """Another flight in economy."""
    return _moved(scene, lambda made: made["cabin"] == "economy", allowed=False)


@goals.goal(weight=0.8)
def not_upgraded(scene: Scene) -> Wish:
    """Another cabin for a flight that is flown, or has no seats."""
    trip = Trip(scene, lambda made: True)
    cabin, owed = _other_cabin(scene, trip)
    if not (owed is None or is_flown(trip.record)):
        raise Unfit("the rules allow it")
    key, method = money(scene, owed or 0)
    deed = call("change_cabin", reservation_id=trip.key, cabin=cabin, payment_id=key)
    words = f"you want {trip.named} to be in {{cabin}} instead, the difference on your {{pay_with}}"
    return forbidden("upgrade", words, trip, deed, {"cabin": cabin, "pay_with": method})


@goals.goal(weight=0.8)
def not_renamed(scene: Scene) -> Wish:
    """Somebody else to fly in her place."""
    trip = Trip(scene, lambda made: True)
    name = scene.rng.choice(trip.record["passengers"])["name"]
    new = f"{scene.rng.choice(FIRST_NAMES)} {scene.rng.choice(LAST_NAMES)}"
    if set(new.split()) & set(name.split()):
        raise Unfit("it could be a correction")
    deed = call("correct_name", reservation_id=trip.key, name=name, new_name=new)
    words = f"you want the name {{name}} on {trip.named} to be changed to {{new_name}}"
    return forbidden("rename", words, trip, deed, {"name": name, "new_name": new})


@goals.goal(weight=1)
def not_compensated(scene: Scene) -> Wish:
    """Compensation that she is not entitled to."""
    membership = me(scene)["membership"]
    trip = Trip(scene, lambda made: not compensation(made, membership))
    amount = 50 * trip.passengers
    deed = call("issue_certificate", user_id=scene.who, amount=amount)
    words = f"you complain of how {trip.named} went and want compensation"
    return forbidden("complain", words, trip, deed)
