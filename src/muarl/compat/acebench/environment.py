"""Runs the calls of an agent's message, with the two ways upstream has to answer errors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from muarl.compat.acebench.api import Api, Language, tools_of
from muarl.compat.acebench.base_api import BaseApi
from muarl.compat.acebench.calls import Call, parsed
from muarl.compat.acebench.entries import Kind
from muarl.compat.acebench.food_platform import FoodPlatform
from muarl.compat.acebench.message_api import MessageApi
from muarl.compat.acebench.reminder_api import ReminderApi
from muarl.compat.acebench.travel import Travel
from muarl.compat.python_calls import NotCalls
from muarl.world import plain
from muarl.world.compare import is_list, is_map

CLASSES: dict[str, type[Api]] = {
    "BaseApi": BaseApi,
    "MessageApi": MessageApi,
    "ReminderApi": ReminderApi,
    "FoodPlatform": FoodPlatform,
    "Travel": Travel,
}
NO_QUESTIONS = "Please do not ask me any questions, use the known conditions to solve the problem"
ANY_ERROR = list("Error during execution: {str(e)}")
"""Upstream forgot to fill the text in, and takes it for a list of results."""


class Answer(msgspec.Struct, frozen=True):
    """What the agent reads of a message's calls.

    Attributes:
        message: Results in order, or a text.
        ran: Whether upstream takes it for a run; only runs count when the final state is saved.
    """

    message: list[Any] | str
    ran: bool = True


class Environment:
    """The instances of a task, over one world."""

    def __init__(self, world: Any, involved: Sequence[str], language: Language, kind: Kind) -> None:
        """Work on `world`, whose keys are the classes in `involved`."""
        self.world = world
        self._kind = kind
        self._instances = [CLASSES[name](world[name], language) for name in involved]
        self._tools: dict[str, list[Api]] = {}
        for instance in self._instances:
            for name in tools_of(type(instance), language):
                self._tools.setdefault(name, []).append(instance)

    def respond(self, text: str) -> Answer:
        """Run the calls that a message holds.

        Raises:
            NotCalls: In multi_turn, where such a message goes to the user.
        """
        try:
            calls = parsed(text)
        except NotCalls:
            if self._kind == "multi_turn":
                raise
            return Answer(NO_QUESTIONS, ran=False)
        return self.run(calls)

    def run(self, calls: Sequence[Call]) -> Answer:
        """Run the calls of one message, each on every instance that has the method.

        What a call wrote before it failed stays written. In multi_step an error is the result of
        its call. In multi_turn it ends the message and is all that is read, one character an item.
        """
        results: list[Any] = []
        last: list[Any] = []
        for call in calls:
            try:
                last = self._run(call) or last
                results.append(_only(last))
            except Exception as error:  # noqa: BLE001 - upstream's own boundary: the agent reads it
                if self._kind == "multi_turn":
                    return Answer(list(ANY_ERROR), ran=False)
                results.append(f"Error during execution: {error}")
        # Read at the end: a result may be a part of the state that a later call changed.
        return Answer([_read(result) for result in results])

    def _run(self, call: Call) -> list[Any]:
        """The result of the last instance that has the method, or nothing where none has."""
        last = call.name.rpartition(".")[2]
        if last not in self._tools:
            return []
        if undefined := call.name.partition(".")[0] if "." in call.name else call.undefined:
            raise NameError(f"name {undefined!r} is not defined")
        return [getattr(instance, last)(**call.arguments) for instance in self._tools[last]][-1:]


def _only(last: list[Any]) -> Any:
    """The result; of a name that nobody has, that of the call before it once more."""
    if not last:
        raise UnboundLocalError(
            "cannot access local variable 'func_call_result' "
            "where it is not associated with a value"
        )
    return last[0]


def _read(value: Any) -> Any:
    """A result as the agent reads it: what is JSON as such, anything else as Python's text of it."""
    if is_map(value):
        text = json.dumps(plain(value))
    elif is_list(value):
        text = str(plain(value))
    else:
        text = str(value)
    try:
        return json.loads(text)
    except ValueError:
        return text
