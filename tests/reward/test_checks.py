"""Each kind of predicate, true and false, with a reason a person can check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest

from muarl.errors import RewardError
from muarl.messages import Message, ToolCall, ToolResult
from muarl.record import PredicateResult, Turn, UserReply
from muarl.reward import Evidence, LenientJudges, evaluate, reward_of, verdict
from muarl.spec import PredicateSpec
from muarl.world import World

BASE = World({"orders": {"W1": {"status": "pending", "n": 3}}, "users": {"a@b.net": {"x": 1}}})


def turn(
    content: str = "",
    *calls: tuple[str, dict[str, Any], bool],
    act: str | None = None,
    cut: bool = False,
) -> Turn:
    made = tuple(ToolCall(f"c{i}", name, arguments) for i, (name, arguments, _) in enumerate(calls))
    return Turn(
        message=Message("assistant", content, tool_calls=made),
        sample=0,
        start=0,
        end=0,
        finish_reason="length" if cut else "stop",
        policy_version=0,
        results=[
            ToolResult(c.id, c.name, "", is_error=bad)
            for c, (*_, bad) in zip(made, calls, strict=True)
        ],
        reply=None if act is None else UserReply("", act=act),
    )


def found(
    spec: dict[str, Any],
    turns: Sequence[Turn] = (),
    world: World = BASE,
    gold: World = BASE,
) -> tuple[float | None, str]:
    result = judged(spec, turns, world, gold)
    return result.score, result.reason


def judged(
    spec: dict[str, Any],
    turns: Sequence[Turn] = (),
    world: World = BASE,
    gold: World = BASE,
    load: Callable[[str], Any] = lambda _: None,
) -> PredicateResult:
    evidence = Evidence(
        world=world,
        initial=BASE,
        gold_world=gold,
        turns=turns,
        opening="Hello.",
        writes=["cancel", "send"],
        judges=LenientJudges(),
        load=load,
    )

    async def main() -> PredicateResult:
        return await evaluate(PredicateSpec.model_validate(spec), evidence)

    return anyio.run(main)


CANCEL = ("cancel", {"order_id": "W1", "n": 3}, False)


def test_the_gold_world() -> None:
    other = BASE.fork({"orders": {"W1": {"status": "cancelled"}}})
    assert found({"gold_world": True}) == (1.0, "the world is as after the gold calls")
    assert found({"gold_world": True}, world=BASE.fork({"orders": {"W1": {"n": 3.0}}}))[0] == 1.0
    assert found({"gold_world": True}, world=other) == (
        0.0,
        "differs from the gold world: orders.W1.status: 'pending' -> 'cancelled'",
    )
    assert found({"gold_world": False}, world=other)[0] == 1.0
    assert found({"gold_world": False})[0] == 0.0


def test_many_differences_are_counted_and_cut_short() -> None:
    other = BASE.fork({"notes": {str(i): "x" * 900 for i in range(9)}, "more": {}, "n": 1})
    other = other.fork({"a": 1, "b": 2, "c": 3, "d": 4})
    score, reason = found({"gold_world": True}, world=other)
    assert score == 0.0
    assert "a: added 1; b: added 2" in reason
    assert reason.endswith("; and 2 more")
    long = found({"world": {"path": "notes", "equals": 1}}, world=other)
    assert len(long[1]) < 1_100


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"path": "orders.W1.n", "equals": 3.0}, (1.0, "orders.W1.n is 3")),
        ({"path": "orders.W1.n", "equals": True}, (0.0, "orders.W1.n is 3")),
        ({"path": "orders.W1", "equals": {"n": 3, "status": "pending"}}, (1.0, None)),
        ({"path": "orders.W9.n", "one_of": [None]}, (0.0, "orders.W9 is not in the world")),
        ({"path": "users.a@b.net.x", "equals": 1}, (1.0, "users.a@b.net.x is 1")),
    ],
)
def test_a_value_of_the_world(spec: dict[str, Any], expected: tuple[float, str | None]) -> None:
    score, reason = found({"world": spec})
    assert score == expected[0]
    assert expected[1] in (None, reason)


@pytest.mark.parametrize(
    ("spec", "calls", "score"),
    [
        ({"tool": "cancel"}, [CANCEL], 1.0),
        ({"tool": "cancel"}, [], 0.0),
        ({"tool": "cancel"}, [("cancel", {}, True)], 0.0),
        ({"tool": "cancel", "arguments": {"n": 3.0}}, [CANCEL], 1.0),
        ({"tool": "cancel", "arguments": {"n": 4}}, [CANCEL], 0.0),
        ({"tool": "cancel", "arguments": {"gone": None}}, [CANCEL], 0.0),
        ({"tool": "look", "before": "cancel"}, [("look", {}, False), CANCEL], 1.0),
        ({"tool": "look", "before": "cancel"}, [CANCEL, ("look", {}, False)], 0.0),
        ({"tool": "look", "before": "cancel"}, [("look", {}, False)], 1.0),
        ({"tool": "look", "before": "cancel"}, [("cancel", {}, True), ("look", {}, False)], 1.0),
    ],
)
def test_a_call(spec: dict[str, Any], calls: list[Any], score: float) -> None:
    assert found({"called": spec}, [turn("", *calls)])[0] == score
    assert found({"called": spec}, [turn("", call) for call in calls])[0] == score


def test_a_call_that_must_not_be() -> None:
    never = {"never_called": {"tool": "cancel"}}
    assert found(never, [turn("hello", act="next")]) == (1.0, "cancel was called 0 times")
    assert found(never, [turn("", CANCEL)]) == (0.0, "cancel was called 1 times")
    assert found(never, [turn("", ("cancel", {}, True))])[0] == 0.0, "even with an error"


def test_what_was_said_is_what_the_user_heard() -> None:
    said, never = {"said": {"text": "five  DAYS"}}, {"never_said": {"text": "five days"}}
    heard = [turn("It takes Five\ndays.", act="next")]
    assert found(said, heard) == (1.0, "'five  DAYS' was said in turn 0")
    assert found(never, heard)[0] == 0.0
    unheard = [
        turn("It takes five days.", CANCEL),
        turn("It takes five days.", cut=True),
        turn("Hello.", act="next"),
    ]
    assert found(said, unheard) == (0.0, "'five  DAYS' was not said")
    assert found(never, unheard)[0] == 1.0


@pytest.mark.parametrize(
    ("turns", "score"),
    [
        ([], None),
        ([turn("", ("look", {}, False))], None),
        ([turn("", ("cancel", {}, True))], None),
        ([turn("ok?", act="confirm"), turn("", CANCEL)], 1.0),
        ([turn("ok?", act="confirm"), turn("", ("look", {}, False)), turn("", CANCEL)], 1.0),
        ([turn("ok?", act="deny"), turn("", CANCEL)], 0.0),
        ([turn("", CANCEL)], 0.0),
        ([turn("ok?", act="confirm"), turn("", CANCEL, CANCEL)], 0.5),
        ([turn("ok?", act="confirm"), turn("?", act="change"), turn("", CANCEL)], 0.0),
        ([turn("ok?", act="confirm"), turn("", ("cancel", {}, True)), turn("", CANCEL)], 1.0),
    ],
)
def test_the_share_of_writes_that_the_user_confirmed(
    turns: list[Turn], score: float | None
) -> None:
    assert found({"confirmed": {}}, turns)[0] == score
    assert found({"confirmed": {"tools": ["other"]}}, turns)[0] is None


def test_a_predicate_that_trips_is_the_authors_error_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object) -> Any:
        raise RuntimeError("no such column")

    monkeypatch.setitem(verdict._CHECKS, "called", broken)
    with pytest.raises(
        RewardError, match=r"predicate 'called cancel' could not .*: no such column"
    ):
        found({"called": {"tool": "cancel"}})


def test_a_predicate_is_never_passed_over_by_a_cancellation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def cancelled(*_: object) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setitem(verdict._CHECKS, "called", cancelled)
    with pytest.raises(KeyboardInterrupt):
        found({"called": {"tool": "cancel"}})


def test_every_kind_of_predicate_has_a_check() -> None:
    kinds = {name.removesuffix("_") for name in PredicateSpec.model_fields}
    assert kinds == {"judge", *verdict._CHECKS, *verdict._MADE_OF_OTHERS}


def test_a_reward_is_its_lowest_predicate() -> None:
    def scores(*values: float | None) -> list[PredicateResult]:
        return [PredicateResult("p", value, "") for value in values]

    assert reward_of(scores(1.0, 1.0)) == 1.0
    assert reward_of(scores(1.0, 0.5, None)) == 0.5
    assert reward_of(scores(1.0, None)) == 1.0
    assert reward_of(scores(None)) == 0.0, "what cannot be judged is not earned"
