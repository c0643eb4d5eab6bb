"""Action: tools that stand twice in the list, under one name or two.

A name stands for one tool: a call by it is a call of that tool, with the arguments as they are,
whichever of its entries the policy had in mind. So a twin misleads only by what it says.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import structs

from muarl.messages import ToolSpec
from muarl.perturb.dice import Dice
from muarl.perturb.entry import NO_PARAMETERS, Entry, free_name
from muarl.perturb.wording import reworded_tool
from muarl.record import Perturbed
from muarl.spec.perturb import ACTION


def with_twins(
    entries: Sequence[Entry], dice: Dice, acted: list[Perturbed], taken: Collection[str]
) -> list[Entry]:
    """The same tools, and beside some of them another entry; `acted` takes up which.

    Args:
        entries: The list so far; decoys get no twins.
        dice: Draws.
        acted: Takes up what acted.
        taken: Names that no new tool may have.
    """
    tools = [entry for entry in entries if not entry.decoy]
    found = list(entries)
    taken = {*taken, *(entry.shown.name for entry in entries)}
    for entry in tools:
        kind = dice.one_of("action", ACTION, entry.tool)
        if not kind:
            continue
        rng = dice.stream("twin", entry.tool)
        others = [other.shown for other in tools if other is not entry]
        other = rng.choice(others) if others else structs.replace(entry.shown, description="")
        if kind == "redundant":
            name = free_name(rng.choice(_REDUNDANT).format(entry.shown.name), taken)
            taken.add(name)
            shown = structs.replace(reworded_tool(entry.shown, rng), name=name)
        else:
            shown = _twin(kind, entry.shown, other)
        twin = Entry(shown, entry.tool, twin=kind != "redundant")
        found.insert(rng.randrange(len(found) + 1), twin)
        acted.append(Perturbed(kind, entry.tool))
    return found


_REDUNDANT = ("{}_v2", "do_{}", "{}_tool", "{}_alt")


def _twin(kind: str, tool: ToolSpec, other: ToolSpec) -> ToolSpec:
    """An entry of the tool's name that is not the tool's own.

    Args:
        kind: Of twin.
        tool: The tool.
        other: Another one, from which text and parameters are taken.
    """
    described = kind in ("twin_described", "twin_described_misfit")
    description = tool.description if described else ""
    if kind == "twin_other":
        description = other.description
    bare = kind in ("twin_bare", "twin_described")
    return ToolSpec(tool.name, description, NO_PARAMETERS if bare else other.parameters)
