"""Agents that are written as one generator."""

from __future__ import annotations

import random

import pytest

from muarl.agent_script import AgentScript, Talk, ToolRefused
from muarl.messages import Message


class Desk(AgentScript):
    """Cancels an order that is pending."""

    habits = frozenset({"quit"})

    def script(self, heard: str) -> Talk[None]:
        order = yield from self.use("get_order", order_id=heard)
        yes = yield from self.ask(f"Cancel the {order['item']}. Shall I?")
        try:
            done = "quit" if self.lapses("quit") else (yield from self.use("cancel", why=yes))
        except ToolRefused as why:
            done = f"cannot: {why}"
        while True:
            yield from self.ask(str(done))


def talk(desk: Desk, *heard: Message) -> list[Message]:
    return [desk.act([message]) for message in heard]


USER = (Message("user", "W1"), Message("tool", '{"item": "lamp"}'), Message("user", "yes"))


def test_it_goes_on_where_it_waited() -> None:
    look, ask, cancel, said = talk(Desk({}, random.Random(0)), *USER, Message("tool", "ok"))
    assert (look.tool_calls[0].name, look.tool_calls[0].arguments) == (
        "get_order",
        {"order_id": "W1"},
    )
    assert ask.content == "Cancel the lamp. Shall I?"
    assert cancel.tool_calls[0].arguments == {"why": "yes"}
    assert look.tool_calls[0].id != cancel.tool_calls[0].id
    assert said.content == "ok"


def test_an_error_of_a_tool_is_raised_where_it_was_called() -> None:
    *_, said = talk(Desk({}, random.Random(0)), *USER, Message("tool", "Error: it was sent"))
    assert said.content == "cannot: it was sent"


def test_habits_show_at_their_rate_and_unknown_ones_are_refused() -> None:
    *_, said = talk(Desk({"quit": 1.0}, random.Random(0)), *USER)
    assert said.content == "quit"
    with pytest.raises(ValueError, match=r"unknown imperfections \['lazy'\]; choose from quit"):
        Desk({"lazy": 1.0}, random.Random(0))
