"""Problems on a screen: what is said of many tasks alike is said a few times, and counted."""

from __future__ import annotations

import re
from collections.abc import Sequence

from muarl.errors import Problem

_ALIKE = 3
"""Problems shown of those that are alike."""

_KINDS = 20
"""Kinds of problems shown."""

_TASK = re.compile(r"^task '[^']*': ")
_NUMBERED = re.compile(r"(?<![\w.-])[\w.-]*\d[\w.-]*")  # begun at words only: names may be long


def in_lines(problems: Sequence[Problem], rest: str = "") -> list[str]:
    """Lines on problems, in their order; those alike stand together.

    Alike are problems that differ in nothing but their place, their task and names with numbers: a
    generator makes one mistake in a thousand tasks.

    Args:
        problems: What to show.
        rest: Said after the count of what is left out, such as where to find it.

    Example:
        ["d.yaml:9:3: task 'a-1': unknown tool 'x'", ..., "  and 20 more like these"]
    """
    kinds: dict[str, list[Problem]] = {}
    for problem in problems:
        kinds.setdefault(_kind(problem), []).append(problem)
    lines: list[str] = []
    for alike in list(kinds.values())[:_KINDS]:
        # Further lines stand in, so that a name with a line end in it forges no line.
        lines += [str(problem).replace("\n", "\n  ") for problem in alike[:_ALIKE]]
        if len(alike) > _ALIKE:
            lines.append(f"  and {len(alike) - _ALIKE} more like these{rest}")
    if len(kinds) > _KINDS:
        hidden = sum(len(alike) for alike in list(kinds.values())[_KINDS:])
        lines.append(f"and {hidden} more problems of other kinds{rest}")
    return lines


def _kind(problem: Problem) -> str:
    return _NUMBERED.sub("#", _TASK.sub("", problem.message))
