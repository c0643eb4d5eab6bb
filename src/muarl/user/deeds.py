"""What a scripted user does on her device when she is asked to, and what of it she can tell."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from muarl.messages import ToolCall
from muarl.spec.domain import ActionSpec
from muarl.spec.wording import SLOT
from muarl.user.protocol import Device

_MAX_FIELDS = 200
"""Of a result; nobody tells more."""


class Unknown(Exception):
    """An action needs a fact that she does not have."""


async def do(
    device: Device, action: ActionSpec, facts: Mapping[str, str], call_id: str
) -> tuple[bool, dict[str, str]]:
    """Do it.

    Args:
        device: Hers.
        action: What.
        facts: What she knows, id to value.
        call_id: Of the call.

    Returns:
        Whether it went well, and what can be told of it: `result`, and the fields of a JSON object.

    Raises:
        Unknown: She lacks a fact for it.
    """

    def fact(name: str) -> str:
        if name not in facts:
            raise Unknown(name)
        return facts[name]

    call = ToolCall(call_id, action.tool, filled(action.arguments, fact))
    answer = await device.call(call)
    return not answer.is_error, {**dict(_fields(answer.content)), "result": answer.content}


def filled(value: Any, fact: Callable[[str], str | None]) -> Any:
    """Arguments of an action with the facts that their slots stand for.

    Example:
        >>> filled({"order": "{order_id}", "n": 1}, {"order_id": "B17"}.get)
        {'order': 'B17', 'n': 1}

    Args:
        value: The arguments, or what lies within.
        fact: The fact of a name; None leaves its slot as it is.
    """
    if isinstance(value, Mapping):
        return {key: filled(below, fact) for key, below in value.items()}
    if isinstance(value, (list, tuple)):
        return [filled(below, fact) for below in value]
    if isinstance(value, str) and (slot := SLOT.fullmatch(value)):
        told = fact(slot[1])
        return value if told is None else told
    return value


def _fields(text: str) -> Iterator[tuple[str, str]]:
    """What a JSON object holds, by dotted name, in words."""
    try:
        held = json.loads(text)
    except (ValueError, RecursionError):
        return
    waiting = [("", held)]
    for _ in range(_MAX_FIELDS):
        if not waiting:
            return
        name, value = waiting.pop(0)
        if isinstance(value, dict):
            waiting += [(f"{name}.{key}" if name else key, below) for key, below in value.items()]
        elif name:
            yield name, _worded(value)


def _worded(value: Any) -> str:
    """A value as a person says it.

    Example:
        `True` is "yes", `None` is "none", `["4g", "5g"]` is "4g, 5g".
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_worded, value)) or "none"
    return "none" if value is None else str(value)
