"""Tasks of the help desk, generated from a seed: somebody's phone does not do what it should.

What makes one harder than another is drawn independently: how many things are wrong at once, how many
the agent and how many the user has to mend, whether her number must be found out, what looks wrong and
is not, a second request, and whether something stands against mending anything.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from muarl.spec import (
    FactSpec,
    GoldCallSpec,
    PredicateSpec,
    RequestSpec,
    TaskSpec,
    UserGoalSpec,
)

from muarl.spec.task import Disclosure

from .causes import CAUSES, DATA, HARMLESS, OBSTACLES, PICTURES, SERVICE, TROUBLES, WORKS
from .people import PHONES, PLANS, Register, later

COUNTS = {1: 0.15, 2: 0.25, 3: 0.25, 4: 0.2, 5: 0.15}
"""How many things are wrong at once, and how often; fewer where there are not so many."""
ABROAD = 0.4
OBSTACLE = 0.16
"""Share of tasks in which the right thing is to change nothing, and to say why or to transfer."""
NUMBER_FORGOTTEN = 0.25
LOST_PHONE = 0.2
"""Share of the other tasks in which she also wants another line suspended."""
TO_CONFIRM = ["request_payment", "add_data", "suspend_line"]
"""Calls that the rules want a yes for."""
COMPLAINTS = {
    SERVICE: "has no service and cannot call",
    DATA: "does not get mobile data, or not fast",
    PICTURES: "does not send picture messages",
}


def generate(split: str, seed: int, count: int) -> list[TaskSpec]:
    """`count` tasks of a split. Customers, lines, bills and numbers are of one split alone."""
    rng = random.Random(seed)
    register = Register(rng, split)
    return [_Draft(rng, register, split).task(f"{split}-{index:04d}") for index in range(count)]


class _Draft:
    """One task in the making."""

    def __init__(self, rng: random.Random, register: Register, split: str) -> None:
        self.rng, self.register, self.split = rng, register, split
        self.trouble = rng.choice(TROUBLES)
        self.place = "abroad" if rng.random() < ABROAD else "home"
        self.obstacle = self._obstacle() if rng.random() < OBSTACLE else ""
        self.causes = self._causes()
        self.forgot_number = rng.random() < NUMBER_FORGOTTEN
        self.gb = 0
        self.facts: list[FactSpec] = []
        self.gold: list[GoldCallSpec] = []
        self.right: list[dict[str, Any]] = []
        """Assertions: what is right at the end, as predicates."""
        self.said: list[str] = []
        self.phone: dict[str, Any] = {"place": self.place}
        self._make_account()

    # --- what is wrong ----------------------------------------------------------------------------

    def _obstacle(self) -> str:
        name = self.rng.choice([n for n, o in OBSTACLES.items() if self.trouble in o.behind])
        self.place = OBSTACLES[name].place or self.place
        return name

    def _causes(self) -> list[str]:
        """Causes of the trouble, each about something else; with an obstacle there may be none."""
        taken = {OBSTACLES[self.obstacle].setting} if self.obstacle else set()
        possible = [
            name
            for name, cause in CAUSES.items()
            if self.trouble in cause.behind and cause.place in ("", self.place)
        ]
        wanted = self.rng.choices(list(COUNTS), list(COUNTS.values()))[0] - bool(self.obstacle)
        chosen: list[str] = []
        for name in self.rng.sample(possible, len(possible)):
            if len(chosen) < wanted and CAUSES[name].setting not in taken:
                chosen.append(name)
                taken.add(CAUSES[name].setting)
        return sorted(chosen, key=list(CAUSES).index)

    # --- the account ------------------------------------------------------------------------------

    def _make_account(self) -> None:
        """The customer, her lines and her bills, with what is wrong there."""
        rng, register = self.rng, self.register
        self.customer_id, self.customer = register.id("C"), register.customer()
        models = rng.sample(PHONES, rng.choice((1, 2, 2, 3)))
        self.lines = {
            register.id("L"): register.line(self.customer_id, model, rng.choice(list(PLANS)))
            for model in models
        }
        self.line_id = rng.choice(list(self.lines))
        self.line = self.lines[self.line_id]
        wrong = [CAUSES[name].line for name in self.causes]
        if self.obstacle:
            wrong.append(OBSTACLES[self.obstacle].line)
        for change in wrong:
            self.line |= change
        self._choose_plan()
        if "used_up" in self.causes:
            self._want_data(rng.randint(1, self.plan["most_gb"]))
        self.bills = {
            register.id("B"): register.bill(self.customer_id) for _ in range(rng.randint(1, 2))
        }
        if rng.random() < 0.5:
            due = later(rng, 5, 25)
            self.bills[register.id("B")] = register.bill(self.customer_id, "unpaid", due)
        if "overdue" in self.causes or (self.line["status"] == "active" and rng.random() < 0.15):
            for _ in range(rng.choice((1, 1, 2))):
                due = later(rng, -38, -3)
                self.bills[register.id("B")] = register.bill(self.customer_id, "unpaid", due)
        if self.obstacle == "contract_ended":
            self.line["contract_until"] = later(rng, -90, -2)

    def _choose_plan(self) -> None:
        """Abroad her line roams, unless that is what is wrong; at home it need not."""
        rng = self.rng
        if self.obstacle == "plan_without_roaming":
            self.line["plan"] = rng.choice([k for k, p in PLANS.items() if p["roaming"] == "no"])
        elif self.place == "abroad":
            self.line["plan"] = rng.choice([k for k, p in PLANS.items() if p["roaming"] == "yes"])
            if "line_roaming" not in self.causes:
                self.line["roaming"] = "on"
        if self.trouble == SERVICE and rng.random() < 0.2:
            self.line["gb_left"] = 0
        self.plan = PLANS[self.line["plan"]]

    # --- mending it -------------------------------------------------------------------------------

    def task(self, task_id: str) -> TaskSpec:
        """The task."""
        self._break_phone()
        requests = [RequestSpec(ask=self.trouble)]
        if self.obstacle:
            self._stand_in_the_way()
        else:
            for name in self.causes:
                self._mend(name)
            key, value = WORKS[self.trouble]
            self.right.insert(0, _at(f"device.works.{key}", value))
            others = [key for key, line in self.lines.items() if line is not self.line]
            if others and self.rng.random() < LOST_PHONE:
                requests.append(self._lose(self.rng.choice(others)))
        said = [{"said": {"text": text}} for text in self.said]
        reward = [*self.right, {"gold_world": True}, *said]
        metrics = [{"share": reward}, {"confirmed": {"tools": TO_CONFIRM}}]
        return TaskSpec(
            id=task_id,
            split=self.split,
            goal=self._in_words(requests),
            user=UserGoalSpec(requests=requests, facts=[*self._who_she_is(), *self.facts]),
            world={
                "customers": {self.customer_id: self.customer},
                "lines": self.lines,
                "bills": self.bills,
                "device": self.phone,
            },
            gold=self.gold,
            reward=[PredicateSpec.model_validate(predicate) for predicate in reward],
            metrics=[PredicateSpec.model_validate(predicate) for predicate in metrics],
        )

    def _break_phone(self) -> None:
        """Her phone, with what is wrong there, and what only looks wrong."""
        self.phone |= {"line": self.line_id, "number": self.line["number"]}
        settled = {CAUSES[name].setting for name in self.causes}
        looks_wrong = list(HARMLESS[self.trouble])
        if self.place == "home" and self.trouble != SERVICE:
            looks_wrong.append(("data_roaming", "off"))
        for key, value in self.rng.sample(looks_wrong, self.rng.choice((1, 2, 2, 3))):
            if key not in settled:
                self.phone[key] = value
        for name in self.causes:
            self.phone |= CAUSES[name].phone
        if self.obstacle:
            self.phone |= OBSTACLES[self.obstacle].phone
        self.phone["pin"] = f"{self.rng.randrange(1000, 10_000)}"
        if "sim_locked" in self.causes:
            self.facts.append(FactSpec(id="pin", value=self.phone["pin"], disclose="never"))

    def _mend(self, name: str) -> None:
        cause = CAUSES[name]
        if name == "overdue":
            for bill_id, bill in self.bills.items():
                if bill["status"] == "unpaid" and bill["due"] < later(self.rng, 0, 0):
                    self._call("request_payment", bill_id=bill_id)
                    self.gold.append(GoldCallSpec(tool="pay", by="user"))
                    self.said.append(f"${bill['amount']:.2f}")
                    self.right.append(_at(f"bills.{bill_id}.status", "paid"))
        if name in ("overdue", "suspended"):
            self._call("resume_line", line_id=self.line_id)
            self.right.append(_at(f"lines.{self.line_id}.status", "active"))
        if name == "line_roaming":
            self._call("set_roaming", line_id=self.line_id, to="on")
        if name == "used_up":
            self._add_data()
        for tool, arguments in cause.mends:
            filled = {k: self.phone["pin"] if v == "{pin}" else v for k, v in arguments.items()}
            self.gold.append(GoldCallSpec(tool=tool, arguments=filled, by="user"))
        path, value = cause.mended
        if path:
            self.right.append(_at(path, value))

    def _want_data(self, gb: int) -> None:
        self.gb = gb
        self._tell("gb", str(gb))

    def _add_data(self) -> None:
        self._call("add_data", line_id=self.line_id, gb=self.gb)
        self.said.append(f"${self.gb * self.plan['gb_price']:.2f}")
        self.right.append(_at("device.carrier.gb_left", self.gb))

    def _lose(self, line_id: str) -> RequestSpec:
        """She wants another line suspended."""
        self._call("suspend_line", line_id=line_id)
        self.right.append(_at(f"lines.{line_id}.status", "suspended"))
        number = self.lines[line_id]["number"]
        return RequestSpec(ask="lost_phone", facts=[FactSpec(id="lost_number", value=number)])

    def _stand_in_the_way(self) -> None:
        """Nothing may be changed: what she is told instead, or what is looked at before a transfer."""
        if self.obstacle == "contract_ended":
            self.said.append(self.line["contract_until"])
        elif self.obstacle == "plan_without_roaming":
            self.said.append(self.plan["name"])
        elif self.obstacle == "too_much_data":
            self._want_data(self.plan["most_gb"] + self.rng.randint(1, 6))
            self.said.append(f"{self.plan['most_gb']} GB")
        elif self.obstacle == "stolen":
            look = {"tool": "get_line", "arguments": {"line_id": self.line_id}}
            self._transfer({**look, "by": "agent"})
        else:
            self._transfer({"tool": "sim_card", "by": "user"})

    def _transfer(self, look: dict[str, Any]) -> None:
        """Look at something, then hand her over."""
        self.gold.append(GoldCallSpec.model_validate(look))
        self._call("transfer_to_human")
        self.right.append({"called": {**look, "before": "transfer_to_human"}})
        self.right.append({"called": {"tool": "transfer_to_human"}})

    def _call(self, tool: str, **arguments: Any) -> None:
        self.gold.append(GoldCallSpec(tool=tool, arguments=arguments))

    # --- what she knows ---------------------------------------------------------------------------

    def _tell(self, fact: str, value: str) -> None:
        self.facts.append(FactSpec(id=fact, value=value, disclose="on_request"))

    def _who_she_is(self) -> Iterator[FactSpec]:
        told: Disclosure = "never" if self.forgot_number else "volunteer"
        yield FactSpec(id="number", value=self.line["number"], disclose=told)
        yield FactSpec(id="place", value=self.place, disclose="on_request")
        for fact, value in (
            ("name", self.customer["name"]),
            ("birth_date", self.customer["birth_date"]),
            ("phone", self.line["phone"]),
        ):
            yield FactSpec(id=fact, value=value, disclose="on_request")

    def _in_words(self, requests: Sequence[RequestSpec]) -> str:
        """The goal for LLM users and readers."""
        said = [
            f"Your phone {COMPLAINTS[self.trouble]}, and you want that mended.",
            "Look at it, or change something on it, when the help desk asks you to, and say what you "
            "see; leave it alone otherwise.",
            f"You are {self.customer['name']}, born on {self.customer['birth_date']}; the phone is a "
            f"{self.line['phone']}. You are {'at home' if self.place == 'home' else 'abroad'}.",
            "You do not know its number."
            if self.forgot_number
            else f"Its number is {self.line['number']}.",
        ]
        if self.gb:
            said.append(f"If you need more data, you want {self.gb} GB, and you pay for it.")
        if "sim_locked" in self.causes:
            said.append(f"The PIN of your SIM card is {self.phone['pin']}.")
        if "overdue" in self.causes:
            said.append("You pay bills that you are asked for.")
        for request in requests[1:]:
            said.append(
                f"You also lost the phone with the number {request.facts[0].value} and want its line "
                "suspended."
            )
        return " ".join(said)


def _at(path: str, value: Any) -> dict[str, Any]:
    return {"world": {"path": path, "equals": value}}
