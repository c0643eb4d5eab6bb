"""A case in the making: a customer in trouble, with what is wrong, and what only looks wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from muarl.goals import Scene, call, user_call
from muarl.spec import GoldCallSpec, PredicateSpec
from muarl.world import World

from . import people
from .causes import CAUSES, HARMLESS, SERVICE, WORKS, Obstacle

COUNTS = {1: 0.15, 2: 0.25, 3: 0.25, 4: 0.2, 5: 0.15}
"""How many things are wrong at once, and how often; fewer where there are not so many."""
ABROAD = 0.4
NUMBER_FORGOTTEN = 0.25


@dataclass
class Customer:
    """Who calls.

    Attributes:
        key: Hers.
        name: Hers.
        birth_date: Hers.
        lines: Her lines, by their keys; the first is the one in question.
        stuck: Nothing may be changed for her.
    """

    key: str
    name: str
    birth_date: str
    lines: dict[str, dict[str, Any]] = field(default_factory=dict)
    stuck: bool = False

    @classmethod
    def drawn(cls, scene: Scene) -> Customer:
        """Somebody with one to three lines, each of a phone of another model."""
        rng = scene.rng
        customer = cls(scene.name(lambda rng: people.key(rng, "C")), **people.person(rng))
        for model in rng.sample(people.PHONES, rng.choice((1, 2, 2, 3))):
            key = scene.name(lambda rng: people.key(rng, "L"))
            number = scene.name(people.number)
            customer.lines[key] = people.line(rng, customer.key, number, model)
        who = {"name": customer.name, "birth_date": customer.birth_date}
        scene.bring({"customers": {customer.key: who}, "lines": customer.lines})
        scene.tell("name", customer.name, "you are {name}", "on_request")
        scene.tell("birth_date", customer.birth_date, "you were born on {birth_date}", "on_request")
        return customer


class Case:
    """One customer's trouble.

    Args:
        scene: Where it is drawn; what is wrong is brought there.
        trouble: What she complains of.
        obstacle: What stands against mending anything, or None.
    """

    def __init__(self, scene: Scene, trouble: str, obstacle: Obstacle | None = None) -> None:
        self.scene, self.rng = scene, scene.rng
        self.trouble, self.obstacle = trouble, obstacle
        self.customer: Customer = scene.who
        self.line_id, self.line = next(iter(self.customer.lines.items()))
        self.place = (obstacle and obstacle.place) or (
            "abroad" if self.rng.random() < ABROAD else "home"
        )
        self.causes = self._draw_causes()
        self._break_line()
        self.overdue = self._draw_bills()
        self.phone = self._broken_phone()
        scene.bring({"lines": {self.line_id: self.line}, "device": self.phone})
        self._tell()
        self.looks = self._look()

    def _draw_causes(self) -> list[str]:
        """Causes of the trouble, each about something else; where she is stuck there may be none."""
        taken = {self.obstacle.setting} if self.obstacle else set()
        possible = [
            name
            for name, cause in CAUSES.items()
            if self.trouble in cause.behind and cause.place in ("", self.place)
        ]
        wanted = self.rng.choices(list(COUNTS), list(COUNTS.values()))[0] - len(taken)
        chosen: list[str] = []
        for name in self.rng.sample(possible, len(possible)):
            if len(chosen) < wanted and CAUSES[name].setting not in taken:
                chosen.append(name)
                taken.add(CAUSES[name].setting)
        return sorted(chosen, key=list(CAUSES).index)

    def _break_line(self) -> None:
        """Abroad her line roams, unless that is what is wrong; at home it need not."""
        rng, line = self.rng, self.line
        if self.place == "abroad":
            roams = "yes" if self.obstacle is None else self.obstacle.plan_roams
            plans = [key for key, plan in people.PLANS.items() if plan["roaming"] == roams]
            line |= {"plan": rng.choice(plans), "roaming": "on"}
        if self.trouble == SERVICE and rng.random() < 0.2:
            line["gb_left"] = 0
        for name in self.causes:
            line |= CAUSES[name].line
        if self.obstacle is not None:
            line |= self.obstacle.line
            if self.obstacle.contract_over:
                line["contract_until"] = people.day(rng, -90, -2)

    def _draw_bills(self) -> dict[str, dict[str, Any]]:
        """Her bills; those that are overdue. An active line may have some too, to be left alone."""
        rng, customer = self.rng, self.customer.key
        bills = [people.bill(rng, customer) for _ in range(rng.randint(1, 2))]
        if rng.random() < 0.5:
            bills.append(people.bill(rng, customer, "unpaid", people.day(rng, 5, 25)))
        owes = "overdue" in self.causes or (self.line["status"] == "active" and rng.random() < 0.15)
        late = [
            people.bill(rng, customer, "unpaid", people.day(rng, -38, -3))
            for _ in range(rng.choice((1, 1, 2)) if owes else 0)
        ]
        named = {self.scene.name(lambda rng: people.key(rng, "B")): b for b in (*bills, *late)}
        self.scene.bring({"bills": named})
        self.paid = {key for key, bill in named.items() if bill["status"] == "paid"}
        return {key: bill for key, bill in named.items() if bill in late}

    def _broken_phone(self) -> dict[str, Any]:
        """How her phone differs from one that is as it should be."""
        phone = {"line": self.line_id, "number": self.line["number"], "place": self.place}
        settled = {CAUSES[name].setting for name in self.causes}
        looks_wrong = list(HARMLESS[self.trouble])
        if self.place == "home" and self.trouble != SERVICE:
            looks_wrong.append(("data_roaming", "off"))
        drawn = self.rng.sample(looks_wrong, self.rng.choice((1, 2, 2, 3)))
        phone |= {key: value for key, value in drawn if key not in settled}
        for name in self.causes:
            phone |= CAUSES[name].phone
        if self.obstacle is not None:
            phone |= self.obstacle.phone
        return phone

    def _tell(self) -> None:
        """What she knows of it."""
        scene, rng = self.scene, self.rng
        scene.tell("place", self.place, "you are {place}", "on_request")
        scene.tell("phone", self.line["phone"], "the phone is a {phone}", "on_request")
        self.forgot_number = rng.random() < NUMBER_FORGOTTEN
        if self.forgot_number:
            scene.remark("you do not know the number of the phone")
        else:
            scene.tell("number", self.line["number"], "its number is {number}")
        self.gb = 0
        if self.obstacle is not None and self.obstacle.too_much:
            self.gb = people.most_gb(self.line["plan"]) + rng.randint(1, 6)
        elif "used_up" in self.causes:
            self.gb = rng.randint(1, people.most_gb(self.line["plan"]))
        if self.gb:
            words = "if you need more data, you want {gb} GB, and you pay for it"
            scene.tell("gb", str(self.gb), words, "on_request")
        if "sim_locked" in self.causes:
            self.phone["pin"] = f"{rng.randrange(1000, 10_000)}"
            scene.bring({"device": {"pin": self.phone["pin"]}})
            words = "the PIN of your SIM card is {pin}, which you type yourself"
            scene.tell("pin", self.phone["pin"], words, "never")
        if "overdue" in self.causes:
            scene.remark("you pay the bills that you are asked to pay")

    def _look(self) -> list[GoldCallSpec]:
        """Let the agent find her line and what is overdue; what it then reads."""
        line, customer = self.line, self.customer

        def hers(world: World) -> Iterator[str]:
            for key, each in world["lines"].items():
                if each["customer"] == customer.key and each["phone"] == line["phone"]:
                    yield key

        if self.forgot_number:
            who = call("find_customer", name=customer.name, birth_date=customer.birth_date)
            self.scene.find("line_id", hers, by=[who])
        else:
            find_line(self.scene, "line_id", line["number"])
        looks = [call("get_line", line_id=self.line_id), call("get_plan", line_id=self.line_id)]
        return [*looks, *self._find_overdue()]

    def _find_overdue(self) -> list[GoldCallSpec]:
        """Let the agent find which bills are overdue, where that matters."""
        if "overdue" not in self.causes:
            return []
        for nth in range(len(self.overdue)):

            def overdue(world: World, nth: int = nth) -> Iterator[str]:
                late = [
                    key
                    for key, bill in world["bills"].items()
                    if bill["customer"] == self.customer.key
                    and bill["due"] < people.TODAY.isoformat()
                    and key not in self.paid
                ]
                yield from sorted(late)[nth : nth + 1]

            self.scene.find(f"bill_{nth + 1}", overdue)
        return [call("get_bill", bill_id=key) for key in self.overdue]

    # --- mending it -------------------------------------------------------------------------------

    def mending(self) -> list[list[GoldCallSpec]]:
        """What is looked up, and what mends each cause, in whatever order."""
        return [self.looks, *(list(self._mend(name)) for name in self.causes)]

    def _mend(self, name: str) -> Iterator[GoldCallSpec]:
        line = {"line_id": self.line_id}
        if name == "overdue":
            for key in self.overdue:
                yield call("request_payment", bill_id=key)
                yield user_call("pay")
        if name in ("overdue", "suspended"):
            yield call("resume_line", **line)
        if name == "line_roaming":
            yield call("set_roaming", **line, to="on")
        if name == "used_up":
            yield call("price_of_data", **line, gb=self.gb)
            yield call("add_data", **line, gb=self.gb)
        for tool, arguments in CAUSES[name].mends:
            yield user_call(tool, **self._filled(arguments))

    def _filled(self, arguments: Mapping[str, str]) -> dict[str, str]:
        return {k: self.phone["pin"] if v == "{pin}" else v for k, v in arguments.items()}

    def said(self) -> list[str]:
        """What she has to be told on the way: what things cost."""
        said = []
        if "overdue" in self.causes:
            said += [bill["amount"] for bill in self.overdue.values()]
        if "used_up" in self.causes:
            said.append(people.price(self.line["plan"], self.gb))
        return said

    def right(self) -> list[PredicateSpec]:
        """What is right in the end: that all works, and that each cause is mended."""
        key, value = WORKS[self.trouble]
        found = [at(f"device.works.{key}", value)]
        for name in self.causes:
            if name == "overdue":
                found += [at(f"bills.{key}.status", "paid") for key in self.overdue]
            if name in ("overdue", "suspended"):
                found.append(at(f"lines.{self.line_id}.status", "active"))
            if name == "used_up":
                found.append(at("device.carrier.gb_left", self.gb))
            path, right = CAUSES[name].mended
            found += [at(path, right)] if path else []
        return found


def find_line(scene: Scene, fact: str, number: str) -> str:
    """Let the agent find the line with a number."""

    def has_it(world: World) -> Iterator[str]:
        return (key for key, line in world["lines"].items() if line["number"] == number)

    return str(scene.find(fact, has_it, by=[call("find_number", number=number)]))


def at(path: str, value: Any) -> PredicateSpec:
    """An assertion: what is at a path of the world in the end."""
    return PredicateSpec.model_validate({"world": {"path": path, "equals": value}})
