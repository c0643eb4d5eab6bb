"""Tasks of the handset, generated from a seed: one or two things are wrong, on either side."""

from __future__ import annotations

import random
from typing import Any

from muarl.spec import FactSpec, GoldCallSpec, RequestSpec, TaskSpec, UserGoalSpec

AIRPLANE, DATA_OFF, SUSPENDED, USED_UP = "airplane", "data off", "suspended", "used up"
FAULTS = {
    "no_internet": (AIRPLANE, DATA_OFF, SUSPENDED, USED_UP),
    "no_calls": (AIRPLANE, SUSPENDED),
}
"""What may be wrong behind a complaint."""
COMPLAINTS = {"no_internet": "has no internet", "no_calls": "cannot call anybody"}
ONE_FAULT = 0.3
UNPAID = 0.06
"""Share of tasks in which the right thing is to refuse, which doing nothing solves."""


def generate(split: str, seed: int, count: int) -> list[TaskSpec]:
    """`count` tasks of a split. Numbers, like wordings, are of one split alone."""
    rng = random.Random(seed)
    area = {"train": 555, "held_out": 777}[split]
    numbers = [f"{area}{number:04d}" for number in rng.sample(range(10_000), count)]
    return [_task(rng, split, index, number) for index, number in enumerate(numbers)]


def _task(rng: random.Random, split: str, index: int, number: str) -> TaskSpec:
    complaint = rng.choices(("no_internet", "no_calls"), (0.8, 0.2))[0]
    unpaid = rng.random() < UNPAID
    faults = [SUSPENDED]
    if not unpaid:
        faults = rng.sample(FAULTS[complaint], 1 if rng.random() < ONE_FAULT else 2)
    return TaskSpec(
        id=f"{split}-{index:03d}",
        split=split,
        goal=(
            f"Your phone {COMPLAINTS[complaint]}; its number is {number}. Look at it or change "
            "something on it when the support desk asks you to. More data may cost something."
        ),
        personas=["plain", "terse"],
        user=UserGoalSpec(
            requests=[RequestSpec(ask=complaint, facts=[FactSpec(id="number", value=number)])]
        ),
        world=_world(rng, number, faults, paid=not unpaid),
        gold=[] if unpaid else [call for fault in faults for call in _mend(fault, number)],
    )


def _world(rng: random.Random, number: str, faults: list[str], *, paid: bool) -> dict[str, Any]:
    """The line as the carrier has it, and the phone as it is in her hand."""
    line = {
        "status": "suspended" if SUSPENDED in faults else "active",
        "bill": "paid" if paid else "open",
        "gb_left": 0 if USED_UP in faults else rng.randint(1, 20),
    }
    phone = {
        "number": number,
        "airplane_mode": "on" if AIRPLANE in faults else "off",
        "mobile_data": "off" if DATA_OFF in faults else "on",
        "registered": SUSPENDED not in faults,
    }
    return {"lines": {number: line}, "device": phone}


def _mend(fault: str, number: str) -> list[GoldCallSpec]:
    """The calls that mend one fault, and who makes them."""
    line = {"number": number}
    return {
        AIRPLANE: [GoldCallSpec(tool="set_airplane_mode", arguments={"to": "off"}, by="user")],
        DATA_OFF: [GoldCallSpec(tool="set_mobile_data", arguments={"to": "on"}, by="user")],
        SUSPENDED: [
            GoldCallSpec(tool="resume_line", arguments=line),
            GoldCallSpec(tool="restart", by="user"),
        ],
        USED_UP: [GoldCallSpec(tool="add_data", arguments=line)],
    }[fault]
