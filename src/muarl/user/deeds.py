"""What a scripted user does on her device when she is asked to, and what of it she can tell."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
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
    call = ToolCall(call_id, action.tool, _filled(action.arguments, facts))
    answer = await device.call(call)
    return not answer.is_error, {**dict(_fields(answer.content)), "result": answer.content}


def _filled(value: Any, facts: Mapping[str, str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _filled(below, facts) for key, below in value.items()}
    if isinstance(value, (list, tuple)):
        return [_filled(below, facts) for below in value]
    if isinstance(value, str) and (slot := SLOT.fullmatch(value)):
        if slot[1] not in facts:
            raise Unknown(slot[1])
        return facts[slot[1]]
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
