"""The desk's world: a few hundred orders. Each task adds its own customer's."""

from __future__ import annotations

import random

from .words import SPLITS, order, order_id, stranger


def build() -> dict[str, dict[str, dict[str, str]]]:
    """300 orders of strangers, so that a policy that writes at random finds something to break."""
    rng = random.Random(300)
    orders: dict[str, dict[str, str]] = {}
    while len(orders) < 300:
        orders[order_id(rng, rng.choice(SPLITS))] = order(rng, stranger(rng))
    return {"orders": orders}
