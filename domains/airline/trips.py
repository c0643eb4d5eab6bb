"""Who calls, the reservation that she speaks of, how she names it, and what the rules say of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta

from muarl.goals import Scene, Wish, call
from muarl.spec import GoldCallSpec, PredicateSpec
from muarl.spec.predicate_kinds import Called
from muarl.world import World, plain

from .world import NOW, Record, split_of

Calls = list[GoldCallSpec]


def traveller(scene: Scene) -> str:
    """Who calls; she tells her number and her date of birth when she is asked."""
    everybody = enumerate(scene.world["travellers"])
    user_id = scene.pick([t for at, t in everybody if split_of(at) == scene.split], any_split=True)
    born = scene.world["travellers"][user_id]["birth_date"]
    scene.tell("user_id", user_id, "your traveller number is {user_id}", "on_request")
    scene.tell("birth_date", born, "you were born on {birth_date}", "on_request")
    return user_id


def me(scene: Scene) -> Record:
    """The traveller's profile, as it is by then."""
    profile: Record = plain(scene.world["travellers"][scene.who])
    return profile


def verified(scene: Scene) -> Calls:
    """The first thing that is to be done, once in a dialogue."""
    profile = me(scene)
    known = {"user_id": scene.who, "birth_date": profile["birth_date"]}
    return [] if scene.wish else [call("verify_traveller", **known)]


def money(scene: Scene, owed: int) -> tuple[str, str]:
    """A card or gift card that covers an amount, and how she calls it."""
    methods = me(scene)["payments"]
    fitting = [
        key
        for key, method in methods.items()
        if method["kind"] != "certificate" and method.get("balance", owed) >= owed
    ]
    key = scene.rng.choice(fitting)
    method = methods[key]
    card = method["kind"] == "card"
    return key, f"card ending {method['last_four']}" if card else str(method["kind"])


class Trip:
    """A reservation that a wish is about, and how she names it: by its code, or by where it goes."""

    def __init__(self, scene: Scene, fits: Callable[[Record], bool], owner: str = "") -> None:
        # What she books in this conversation she could not name before it.
        mine = list(scene.start["travellers"][owner or scene.who]["reservations"])
        made = {key: with_days(scene.world, key) for key in mine}
        fitting = [key for key in mine if made[key]["status"] == "confirmed" and fits(made[key])]
        forgotten = not owner and scene.rng.random() < 0.4
        if forgotten:
            goes = [made[key]["destination"] for key in mine]
            fitting = [key for key in fitting if goes.count(made[key]["destination"]) == 1]
        self.key = scene.pick(fitting, any_split=True)
        self.record = made[self.key]
        self.look = [call("get_reservation", reservation_id=self.key)]
        self.facts = {"reservation_id": self.key}
        self.named = "reservation {reservation_id}"
        self.calls = [*verified(scene), *self.look]
        if forgotten:
            self._forget(scene, mine)

    def _forget(self, scene: Scene, mine: Sequence[str]) -> None:
        """She knows only where it goes."""
        to = self.record["destination"]

        def going_there(world: World) -> Iterator[str]:
            of_hers = world["travellers"][scene.who]["reservations"]
            return (key for key in of_hers if world["reservations"][key]["destination"] == to)

        looks = [call("get_reservation", reservation_id=key) for key in mine]
        scene.find("reservation_id", going_there, by=[*verified(scene), *looks])
        self.facts = {"city": scene.world["airports"][to]["city"]}
        self.named = "your trip to {city}, whose code you do not know,"
        self.calls = []

    @property
    def passengers(self) -> int:
        """How many fly."""
        return len(self.record["passengers"])


def with_days(world: World, reservation_id: str) -> Record:
    """A reservation with what is known of its flights' days."""
    reservation = plain(world["reservations"][reservation_id])
    flown = [(segment["flight"], segment["date"]) for segment in reservation["segments"]]
    days = [plain(world["flights"][flight]["days"][day]) for flight, day in flown]
    return {**reservation, "days": days}


def is_flown(reservation: Record) -> bool:
    """Whether any of its flights is flown."""
    return any(
        date.fromisoformat(segment["date"]) < NOW.date() or day["status"] == "landed"
        for segment, day in zip(reservation["segments"], reservation["days"], strict=True)
    )


def is_cancelled(reservation: Record) -> bool:
    """Whether the airline has cancelled any of its flights."""
    return any(day["status"] == "cancelled" for day in reservation["days"])


def may_be_cancelled(reservation: Record) -> bool:
    """Whether the rules allow to cancel it."""
    fresh = NOW - datetime.fromisoformat(reservation["booked_at"]) <= timedelta(hours=24)
    dear = reservation["cabin"] == "business" or reservation["insurance"]
    return not is_flown(reservation) and (fresh or dear or is_cancelled(reservation))


def compensation(reservation: Record, membership: str) -> int:
    """What a traveller gets who complains."""
    entitled = (
        membership != "basic" or reservation["insurance"] or reservation["cabin"] == "business"
    )
    late = any(day["status"] == "delayed" for day in reservation["days"])
    each = 100 if is_cancelled(reservation) else 50 if late else 0
    return each * len(reservation["passengers"]) * entitled


def in_words(day: date) -> str:
    """A day as travellers write it."""
    return f"{day.day} {day:%B %Y}"


def refused(trip: Trip) -> list[PredicateSpec]:
    """A refusal counts only if the agent has looked."""
    looked = Called(tool="get_reservation", arguments={"reservation_id": trip.key})
    return [PredicateSpec(called=looked)]


def wish(
    ask: str, words: str, trip: Trip, gold: Calls, facts: Mapping[str, str] | None = None
) -> Wish:
    """Something about a trip that she gets."""
    told = {**trip.facts, **(facts or {})}
    return Wish(ask=ask, words=words, facts=told, gold=gold)


def forbidden(
    ask: str, words: str, trip: Trip, deed: GoldCallSpec, facts: Mapping[str, str] | None = None
) -> Wish:
    """Something about a trip that she is refused."""
    return Wish(
        ask=ask,
        words=words,
        facts={**trip.facts, **(facts or {})},
        gold=trip.calls,
        forbidden=[deed],
        reward=refused(trip),
    )
