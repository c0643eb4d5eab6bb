"""`change_request`: asked for a yes, she wants something else. What she ends with is the same.

A persona who `changes_mind` goes from a request to its `instead`, always where the knob is not given.
Others put the request that they would have made next before the one they are at, and come back to
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muarl.user.flow import Flow, Heard, Move


def change(flow: Flow, heard: Heard) -> Move | None:
    """Change her mind, if this is when she does."""
    named = flow.named(heard.text) if heard.act == "confirm" else None
    if named is None:
        return None
    if named.changeable:
        named.changeable = False
        flow.dice.mark("change_request", named.instead is not None)
        if named.instead is None:
            return None
        flow.now = named
        return flow.change_to(named.instead)
    if not flow.waiting or flow.swapped or flow.persona.changes_mind:
        return None
    flow.swapped = True
    if not flow.dice.roll("change_request"):
        return None
    flow.now = named
    following = flow.waiting.pop(0)
    flow.waiting.insert(0, named.request)
    return flow.change_to(following)
