"""`push_back`: she does not take the first refusal of a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muarl.user.flow import Flow, Heard, Move


def push_back(flow: Flow, heard: Heard) -> Move | None:
    """Insist."""
    if heard.act != "refuse" or flow.now.insisted:
        return None
    flow.now.insisted = True
    return flow.move("push_back") if flow.dice.roll("push_back") else None
