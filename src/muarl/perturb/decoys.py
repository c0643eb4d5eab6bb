"""Metadata: tools that are said to be cheaper or faster than another, and do nothing.

A decoy takes no parameters, by which a policy that reads can tell that it cannot do the work; called
all the same, it answers with an error, and nothing happens. Tools without parameters get none: there
would be no way to tell.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from random import Random

from msgspec import structs

from muarl.perturb.dice import Dice
from muarl.perturb.entry import NO_PARAMETERS, Entry, abbreviated, free_name, takes_arguments
from muarl.record import Perturbed
from muarl.spec.perturb import METADATA

_SUFFIX = {"cost": "budget", "time": "fast"}


def with_decoys(
    entries: Sequence[Entry], dice: Dice, acted: list[Perturbed], taken: Collection[str]
) -> list[Entry]:
    """The same tools, some of them tagged, and each of these with a decoy; `acted` takes up which.

    Args:
        entries: The list so far.
        dice: Draws.
        acted: Takes up what acted.
        taken: Names that no new tool may have.
    """
    found: list[Entry] = []
    taken = {*taken, *(entry.shown.name for entry in entries)}
    for entry in entries:
        kind = dice.one_of("metadata", METADATA, entry.tool) if takes_arguments(entry.shown) else ""
        if not kind:
            found.append(entry)
            continue
        rng = dice.stream("decoy", entry.tool)
        what, way = kind.split("_")
        worse, better = _tags(what, rng)
        name = entry.shown.name
        decoys_name = free_name(f"{name}_{_SUFFIX[what] if way == 'suffix' else '1'}", taken)
        taken.add(decoys_name)
        if way == "abbreviated":
            name = free_name(abbreviated(name), taken)
            taken.add(name)
        told = entry.shown.description
        shown = structs.replace(entry.shown, name=name, description=f"{told} {worse}".strip())
        decoy = structs.replace(
            entry.shown,
            name=decoys_name,
            description=f"{told} {better}".strip(),
            parameters=NO_PARAMETERS,
        )
        pair = [Entry(shown, entry.tool), Entry(decoy, entry.tool, decoy=kind)]
        rng.shuffle(pair)
        found += pair
        acted.append(Perturbed(kind, entry.tool))
    return found


def _tags(what: str, rng: Random) -> tuple[str, str]:
    """What is said of the tool, and of its decoy."""
    if what == "cost":
        low = rng.randint(1, 3)
        return f"[cost: {low * rng.randint(5, 20)} credits]", f"[cost: {low} credits]"
    low = rng.randint(2, 9) * 10
    return f"[response time: {low * rng.randint(10, 50)} ms]", f"[response time: {low} ms]"
