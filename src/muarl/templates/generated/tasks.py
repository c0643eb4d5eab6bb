"""Tasks, made from a seed: enough of them that a model learns what to do, not which order it was.

A few tasks can as well be written down: `tasks: {files: [tasks.yaml]}` in domain.yaml.
"""

import random

from muarl.spec import FactSpec, GoldCallSpec, RequestSpec, TaskSpec, UserGoalSpec

LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZ"
ITEMS = ("kettle", "lamp", "radio", "clock", "mirror", "toaster", "vase", "chair")
REFUSALS = 0.3
"""Share of tasks in which the rules forbid what the user wants."""


def generate(split: str, seed: int, count: int) -> list[TaskSpec]:
    """`count` tasks of a split. No order number of one split is one of the other."""
    rng = random.Random(seed)
    # Every letter and every pair of digits is in training, but not every order number.
    numbers = [
        f"{letter}{number}"
        for index, letter in enumerate(LETTERS)
        for number in range(10, 100)
        if ((index + number) % 4 == 0) == (split == "held_out")
    ]
    return [task(rng, split, order_id) for order_id in rng.sample(numbers, count)]


def task(rng: random.Random, split: str, order_id: str) -> TaskSpec:
    """Somebody wants an order cancelled."""
    refused = rng.random() < REFUSALS
    order = {"item": rng.choice(ITEMS), "status": "shipped" if refused else "pending"}
    arguments = {"order_id": order_id}
    gold = [GoldCallSpec(tool="find_order", arguments=arguments)]
    if not refused:
        gold.append(GoldCallSpec(tool="cancel_order", arguments=arguments))
    return TaskSpec(
        id=f"{split}-{order_id}",
        split=split,
        goal=f"You want order {order_id}, a {order['item']}, cancelled.",
        personas=["plain", "terse"],
        user=UserGoalSpec(
            requests=[RequestSpec(ask="cancel", facts=[FactSpec(id="order_id", value=order_id)])]
        ),
        world={"orders": {order_id: order}},
        gold=gold,
    )
