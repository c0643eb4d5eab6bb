"""Observation, of what tools say of themselves: other words for descriptions, of tool and parameters."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from random import Random
from typing import Any

from msgspec import structs

from muarl.messages import ToolSpec
from muarl.perturb.dice import Dice
from muarl.perturb.entry import Entry
from muarl.perturb.words import described, framed, in_words
from muarl.record import Perturbed


def with_other_words(entries: Sequence[Entry], dice: Dice, acted: list[Perturbed]) -> list[Entry]:
    """The same tools, some of them described in other words; `acted` takes up which."""
    found = []
    for entry in entries:
        shown = entry.shown
        if shown.description and dice.roll("rephrase_tool", entry.tool):
            shown = reworded_tool(shown, dice.stream("words of a tool", entry.tool))
            acted.append(Perturbed("rephrase_tool", entry.tool))
        if shown.parameters.get("properties") and dice.roll("rephrase_parameters", entry.tool):
            rng = dice.stream("words of parameters", entry.tool)
            other = structs.replace(shown, parameters=_with_descriptions(shown.parameters, rng))
            if other.parameters != shown.parameters:
                shown = other
                acted.append(Perturbed("rephrase_parameters", entry.tool))
        found.append(structs.replace(entry, shown=shown))
    return found


def reworded_tool(tool: ToolSpec, rng: Random) -> ToolSpec:
    """A tool with its description in other words."""
    other = described(tool.description, rng)
    if other == tool.description or rng.random() < 0.5:
        other = framed(other, rng)
    return structs.replace(tool, description=other)


def _with_descriptions(schema: dict[str, Any], rng: Random) -> dict[str, Any]:
    """A copy of an object's schema whose properties are described otherwise, or at all.

    Names, types and what is required stay; no other part of the schema is looked at.
    """
    other = copy.deepcopy(schema)
    for name, below in other["properties"].items():
        if not isinstance(below, dict):
            continue
        said = below.get("description")
        if isinstance(said, str) and said:
            below["description"] = framed(described(said, rng), rng)
        else:
            below["description"] = rng.choice(_OF_A_NAME).format(in_words(name))
        if isinstance(below.get("properties"), dict):
            other["properties"][name] = _with_descriptions(below, rng)
    return other


_OF_A_NAME = ("The {}.", "Which {}.", "Value for the {}.", "What to take as the {}.")
