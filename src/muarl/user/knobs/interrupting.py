"""`silence`, `digress`: a reply that is no answer; what she heard is as if it had not been said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muarl.spec.knobs import INTERRUPTIONS

if TYPE_CHECKING:
    from muarl.user.flow import Flow, Heard, Move


def interrupt(flow: Flow, heard: Heard) -> Move | None:
    """Say nothing, or something that has nothing to do with it."""
    del heard
    if flow.interrupted:  # never twice in a row
        flow.interrupted = False
        return None
    which = flow.dice.roll(*INTERRUPTIONS)
    flow.interrupted = bool(which)
    return flow.move(which) if which else None
