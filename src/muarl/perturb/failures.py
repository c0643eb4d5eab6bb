"""Transition: calls that fail on their way.

A failed call is not made: the world is as it was, and the same call made again is a new one with a
draw of its own. So trying again is always right, of writes too, and in the end it goes well.
"""

from __future__ import annotations

import json
from random import Random

from muarl.messages import ToolCall, ToolResult
from muarl.perturb.dice import Dice
from muarl.spec.perturb import TRANSITION

_STATUS = {
    "rate_limited": ("429 Too Many Requests: retry after {n} s",),
    "unauthorised": (
        "401 Unauthorized: the access token has expired and is being renewed",
        "403 Forbidden: access is denied for the moment",
    ),
    "server_error": (
        "500 Internal Server Error",
        "502 Bad Gateway",
        "503 Service Unavailable",
        "504 Gateway Timeout",
    ),
}
_MAX_ECHO = 200


def failure(call: ToolCall, number: int, dice: Dice) -> ToolResult | None:
    """What answers a call that fails on its way; None for one that does not.

    Args:
        call: The call.
        number: Of the dialogue's calls, from 0. Which calls fail does not depend on what they are.
        dice: Draws.
    """
    kind = dice.one_of("transition", TRANSITION, number)
    if not kind:
        return None
    text = _text(kind, call, dice.stream("failure", number))
    return ToolResult(call.id, call.name, text, is_error=True, instead=kind)


def _text(kind: str, call: ToolCall, rng: Random) -> str:
    if kind == "timeout":
        return f"the call timed out after {rng.choice((10, 30, 60))} s"
    if kind in _STATUS:
        return f"HTTP {rng.choice(_STATUS[kind]).format(n=rng.randint(1, 30))}"
    echo = json.dumps(call.arguments)[:_MAX_ECHO]
    if kind == "malformed_json":
        body = f'{{"request": {echo}, "status": "ok", "result": {{"items": ['
        cut = rng.randrange(len(body) // 2, len(body) + 1)
        return f"the answer is not valid JSON: {body[:cut]}"
    body = rng.choice(('{"data": null}', '{"payload": {"version": 2}}', '[{"ref": 0}]'))
    return f"the answer does not match the tool's schema: {body}"
