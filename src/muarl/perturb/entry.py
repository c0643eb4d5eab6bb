"""An entry of the list of tools that the policy is shown."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

import msgspec

from muarl.messages import ToolSpec

_MAX_NAME = 64
"""What endpoints take for the name of a function."""


class Entry(msgspec.Struct, frozen=True):
    """A tool, as it is shown.

    Attributes:
        shown: Name, description and parameters that the policy reads.
        tool: The server's name of the tool that it is about.
        decoy: Kind of perturbation that put it there and answers its calls with an error; "" for an
            entry whose calls are calls of the tool.
        twin: It has the name of another entry, and only its text is its own.
    """

    shown: ToolSpec
    tool: str
    decoy: str = ""
    twin: bool = False


def free_name(wanted: str, taken: Collection[str]) -> str:
    """A name that no tool has; the one that is wanted, if it can be."""
    wanted = wanted[:_MAX_NAME]
    number = 2
    name = wanted
    while name in taken:
        ending = f"_{number}"
        name = wanted[: _MAX_NAME - len(ending)] + ending
        number += 1
    return name


def abbreviated(name: str) -> str:
    """A name whose words lost their vowels, but for the first letters: `get_order` is `gt_ordr`.

    Where there are none to lose, its last letter goes.
    """
    short = re.sub(r"(?<=[A-Za-z])[aeiou]", "", name)
    return short if short != name else name[:-1] or name + "x"


NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}
"""Of a tool that takes none."""


def takes_arguments(tool: ToolSpec) -> bool:
    """Whether it has parameters."""
    return bool(tool.parameters.get("properties"))
