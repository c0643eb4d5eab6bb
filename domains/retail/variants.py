"""Which other variant of an item a customer wants, and which she may mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from muarl.goals import Scene
from muarl.world import World, plain

from .world import Record


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
