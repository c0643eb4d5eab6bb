"""Each kind of failure by its rule, the first that holds."""

from __future__ import annotations

from typing import Any

import pytest

from muarl.evaluate.failures import failure_of
from muarl.evaluate.summary import summarise
from muarl.messages import Message, ToolCall, ToolResult
from muarl.record import Outcome, PredicateResult, Turn, UserReply
from muarl.testing import build_episode
from muarl.world import Change

ORDERS = '{"order_id": "W7", "items": [{"item_id": "I5"}]}'
CHANGED = [Change("orders.W7.status", "pending", "cancelled", "changed")]


def turn(
    text: str = "", *calls: tuple[str, dict[str, Any], str, bool], reply: str | None = None
) -> Turn:
    """A message, with calls as (tool, arguments, answer, whether it is an error)."""
    made = tuple(ToolCall(f"c{i}", call[0], call[1]) for i, call in enumerate(calls))
    results = [
        ToolResult(f"c{i}", name, answer, is_error=bad)
        for i, (name, _, answer, bad) in enumerate(calls)
    ]
    said = None if reply is None else UserReply(reply, stop=True)
    return Turn(Message("assistant", text, made), 0, 0, 0, "stop", 0, results, said)


LOOKED = turn("", ("look", {}, ORDERS, False))
DONE = turn("Done.", reply="Bye.")


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (None, {"reward": 1.0, "changes": CHANGED}),
        ("infrastructure", {"outcome": Outcome.INFRA_FAULT}),
        ("user_fault", {"outcome": Outcome.USER_FAULT}),
        ("rules_broken", {"metrics": [PredicateResult("confirmed", 0.5, "once not")]}),
        ("rules_broken", {"rewards": [PredicateResult("never_called by agent", 0.0, "called")]}),
        (
            "invented_fact",
            {"turns": [LOOKED, turn("", ("cancel", {"order_id": "W99"}, "ok", False)), DONE]},
        ),
        (
            "misread_result",  # an item's number, where an order's was to be given
            {"turns": [LOOKED, turn("", ("cancel", {"order_id": "I5"}, "ok", False)), DONE]},
        ),
        (
            "misread_result",  # it failed, and the user was told otherwise
            {"turns": [LOOKED, turn("", ("cancel", {"order_id": "W7"}, "no such", True)), DONE]},
        ),
        ("cut_off", {"outcome": Outcome.TRUNCATED_TURNS, "changes": CHANGED}),
        ("stopped_early", {"changes": []}),
        ("stopped_early", {"outcome": Outcome.ABANDONED}),
        (
            "wrong_outcome",
            {
                "turns": [LOOKED, turn("", ("cancel", {"order_id": "W7"}, "ok", False)), DONE],
                "changes": CHANGED,
            },
        ),
    ],
)
def test_a_failure_is_of_the_first_kind_whose_rule_holds(
    kind: str | None, fields: dict[str, Any]
) -> None:
    episode = build_episode(**{"reward": 0.0, **fields})
    assert failure_of(episode) == kind
    assert summarise([episode]).failures == ({} if kind is None else {kind: 1})


def test_what_was_mended_after_an_error_is_no_misreading() -> None:
    turns = [
        LOOKED,
        turn("", ("cancel", {"order_id": "W7"}, "try again", True)),
        turn("", ("cancel", {"order_id": "W7"}, "ok", False)),
        DONE,
    ]
    assert failure_of(build_episode(reward=0.0, turns=turns, changes=CHANGED)) == "wrong_outcome"
