"""`accept_false`, `challenge_done`: what she makes of what the policy says and is not so."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muarl.user.flow import Flow, Heard, Move


def accept_false(flow: Flow, heard: Heard) -> Move | None:
    """Say yes to a confirmation question that does not name her facts."""
    if heard.act != "confirm" or flow.named(heard.text) is not None:
        return None
    return flow.move("confirm") if flow.dice.roll("accept_false") else None


def challenge_done(flow: Flow, heard: Heard) -> Move | None:
    """Object to its being done, since she never said yes."""
    now = flow.now
    if heard.act != "done" or now.agreed or now.challenged:
        return None
    if "confirm" not in flow.script.understands:  # nobody here asks for a yes
        return None
    now.challenged = True
    return flow.move("challenge") if flow.dice.roll("challenge_done") else None
