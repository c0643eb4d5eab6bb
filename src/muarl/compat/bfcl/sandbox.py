"""The classes of one entry, side by side, over one state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

from muarl.compat.bfcl.calculator import MathAPI
from muarl.compat.bfcl.files import GorillaFileSystem
from muarl.compat.bfcl.message import MessageAPI
from muarl.compat.bfcl.posting import TwitterAPI
from muarl.compat.bfcl.ticket import TicketAPI
from muarl.compat.bfcl.toolkit import Answer, Api, Version, answered
from muarl.compat.bfcl.trading import TradingBot
from muarl.compat.bfcl.travel import TravelAPI
from muarl.compat.bfcl.upstream import Upstream
from muarl.compat.bfcl.vehicle import VehicleControlAPI

CLASSES: Mapping[str, type[Api]] = {
    api.__name__: api
    for api in (
        GorillaFileSystem,
        MathAPI,
        MessageAPI,
        TwitterAPI,
        TicketAPI,
        TradingBot,
        TravelAPI,
        VehicleControlAPI,
    )
}


def initial_state(
    classes: Iterable[str], config: Mapping[str, Any], upstream: Upstream, *, long: bool
) -> dict[str, Any]:
    """The state of an entry: of each of its classes, what its `initial_config` makes of the defaults."""
    return {
        name: CLASSES[name].begin(config.get(name) or {}, upstream, long=long) for name in classes
    }


class Sandbox:
    """Instances of an entry's classes, and their functions."""

    def __init__(
        self, state: MutableMapping[str, Any], upstream: Upstream, version: Version
    ) -> None:
        """Work on `state`, which has a key a class: a world, or plain JSON."""
        self.instances = {name: CLASSES[name](state[name], upstream, version) for name in state}
        self.functions = {
            name: function
            for instance in self.instances.values()
            for name, function in instance.functions().items()
        }

    def call(self, text: str) -> Answer:
        """Make a call that is written as Python."""
        return answered(text, self.functions)

    def public(self) -> dict[str, dict[str, Any]]:
        """What the checker compares, by class."""
        return {name: instance.public() for name, instance in self.instances.items()}
