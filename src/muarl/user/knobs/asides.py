"""`unavailable`: before she goes on, she asks for what nobody here does, once in a dialogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muarl.user.flow import Flow, Heard, Move

_OVER = {"done": "next", "refuse": "accept_refusal"}
"""What says that a request is over, and how she goes on."""


def ask_aside(flow: Flow, heard: Heard) -> Move | None:
    """Ask, once a request is over."""
    if heard.act not in _OVER or flow.wished or not flow.dice.roll("unavailable"):
        return None
    flow.wished = True
    flow.aside = _OVER[heard.act]
    return flow.move("unavailable")


def settle_aside(flow: Flow, heard: Heard) -> Move | None:
    """Take what is said of it, a refusal or not, and go on as she would have."""
    if heard.act not in _OVER or not flow.aside:
        return None
    how, flow.aside = flow.aside, ""
    return flow.move_on(how)
