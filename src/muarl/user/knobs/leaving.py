"""`abandon`: she leaves after so many replies, whatever is still to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muarl.user.flow import Flow, Heard, Move


def leave(flow: Flow, heard: Heard) -> Move | None:
    """Leave, if this is when she does."""
    del heard
    if flow.replies != flow.dice.abandon_after + 1:
        return None
    flow.dice.mark("abandon", flow.leaves)
    return flow.move("abandon", stop=True) if flow.leaves else None
