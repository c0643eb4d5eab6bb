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
        begin=BASE.fork,
        gold_world=gold,
        turns=turns,
        opening=UserReply("Hello."),
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


LOOK = ("look", {"order_id": "W1"}, False)
CHANGE = ("cancel", {"order_id": "W1"}, False)


@pytest.mark.parametrize(
    ("calls", "score"),
    [
        ([], None),
        ([LOOK], None),
        ([("cancel", {"order_id": "W1"}, True)], None),
        ([LOOK, CHANGE], 1.0),
        ([CHANGE, LOOK], 0.0),
        ([("look", {"order_id": "W1"}, True), CHANGE], 0.0),
        ([("look", {"order_id": "W2"}, False), CHANGE], 0.0),
        ([LOOK, CHANGE, ("cancel", {"order_id": "W2"}, False)], 0.5),
    ],
)
def test_the_share_of_calls_that_another_came_before(
    calls: list[tuple[str, dict[str, Any], bool]], score: float | None
) -> None:
    rule = {"preceded": {"by": "look", "same": ["order_id"]}}
    assert found(rule, [turn("", call) for call in calls])[0] == score
    at_once = found(rule, [turn("", *calls)])[0]
    assert not at_once, "what a message calls, nobody has read when it is written"
    elsewhere = {"preceded": {"by": "look", "tools": ["other"]}}
    assert found(elsewhere, [turn("", *calls)])[0] is None


def test_a_call_without_its_lookup_is_named() -> None:
    rule = {"preceded": {"by": "look", "same": ["order_id"]}}
    more = ("cancel", {"order_id": "W2"}, False)
    said = found(rule, [turn("", LOOK), turn("", CHANGE, more)])[1]
    assert said == "look came before 1 of 2 calls; not before cancel {'order_id': 'W2'}"


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


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyError("W9"), "KeyError: 'W9'"),
        (SystemExit("enough"), "SystemExit: enough"),
        (GeneratorExit("enough"), "GeneratorExit: enough"),
        (
            BaseExceptionGroup("enough", [KeyError(), KeyboardInterrupt()]),
            "BaseExceptionGroup: enough",
        ),
    ],
)
def test_whatever_a_predicate_of_the_domain_raises_is_its_authors_error_with_her_line_L2(
    error: BaseException, said: str
) -> None:
    def judges(evidence: Evidence) -> bool:
        raise error

    says = rf"predicate '.*' could not be evaluated: it raised {said}.* \(\S+:\d+, in judges\)"
    with pytest.raises(RewardError, match=says):
        judged({"python": {"function": "checks.py:judges"}}, load=lambda _name: judges)


def test_every_kind_of_predicate_has_a_check() -> None:
    kinds = {name.removesuffix("_") for name in PredicateSpec.model_fields}
    assert kinds == {"judge", "plugin", *verdict._CHECKS, *verdict._MADE_OF_OTHERS}


def test_a_reward_is_its_lowest_predicate() -> None:
    def scores(*values: float | None) -> list[PredicateResult]:
        return [PredicateResult("p", value, "") for value in values]

    assert reward_of(scores(1.0, 1.0)) == 1.0
    assert reward_of(scores(1.0, 0.5, None)) == 0.5
    assert reward_of(scores(1.0, None)) == 1.0
    assert reward_of(scores(None)) == 0.0, "what cannot be judged is not earned"


SENT = BASE.fork({"orders": {"W1": {"status": "sent", "note": None}, "W2": {"n": 3.0}}})


@pytest.mark.parametrize(
    ("spec", "score", "reason"),
    [
        ({"path": "orders.W1.status", "one_of": ["x", "sent"]}, 1, "orders.W1.status is 'sent'"),
        ({"path": "orders.W1.status", "one_of": ["x", "y"]}, 0, "orders.W1.status is 'sent'"),
        ({"path": "orders.W1.n", "one_of": [3.0]}, 1, "orders.W1.n is 3"),
        ({"path": "orders.W1.note", "one_of": [None]}, 1, "orders.W1.note is None"),
        ({"path": "orders.W1.status", "matches": "^se"}, 1, "orders.W1.status is 'sent'"),
        ({"path": "orders.W1.status", "matches": "^en"}, 0, "orders.W1.status is 'sent'"),
        ({"path": "orders.W1.n", "matches": "3"}, 0, "orders.W1.n is 3, which is no text"),
        (
            {"path": "orders.W1.status", "changed": True},
            1,
            "orders.W1.status is 'sent', it was 'pending' before",
        ),
        ({"path": "orders.W1.n", "changed": True}, 0, "orders.W1.n is 3, as before"),
        ({"path": "orders.W1.n", "changed": False}, 1, "orders.W1.n is 3, as before"),
        (
            {"path": "orders.W2", "changed": True},
            1,
            "orders.W2 is {'n': 3.0}, it was absent before",
        ),
        ({"path": "orders.W9", "changed": False}, 1, "orders.W9 is absent, as before"),
    ],
)
def test_what_a_value_may_have_to_be(spec: dict[str, Any], score: float, reason: str) -> None:
    assert found({"world": spec}, world=SENT) == (score, reason)


@pytest.mark.parametrize(
    ("value", "worst", "best", "score"),
    [(0.25, 0, 1, 0.25), (0, -1, 1, 0.5), (3, 10, 2, 0.875), (7, 0, 1, 1.0), (-7, 0, 1, 0.0)],
)
def test_a_number_is_as_good_as_its_way_from_the_worst_to_the_best(
    value: float, worst: float, best: float, score: float
) -> None:
    spec = {"scaled": {"path": "sum", "worst": worst, "best": best}}
    told = f"sum is {value:g}, from {worst:g} to {best:g}"
    assert found(spec, world=BASE.fork({"sum": value})) == (score, told)


@pytest.mark.parametrize("value", [True, "1", None, {}])
def test_what_is_no_number_is_no_score_but_the_authors_error(value: Any) -> None:
    with pytest.raises(RewardError, match=r"sum is .*, which is no number"):
        found({"scaled": {"path": "sum"}}, world=BASE.fork({"sum": value}))
    with pytest.raises(RewardError, match="sum is absent, which is no number"):
        found({"scaled": {"path": "sum"}})


def test_a_path_that_is_gone_has_changed() -> None:
    gone = BASE.fork()
    del gone["orders"]["W1"]
    assert found({"world": {"path": "orders.W1", "changed": True}}, world=gone)[0] == 1


def test_a_pattern_is_not_tried_on_a_text_of_any_length() -> None:
    long = BASE.fork({"note": "a" * 20_001})
    assert found({"world": {"path": "note", "matches": "a"}}, world=long) == (
        0,
        "note has more than 20000 characters",
    )


class Tables(World):
    """A world that answers queries, as one of tables does."""

    def query(
        self, sql: str, parameters: dict[str, Any], limit: int | None = None
    ) -> list[dict[str, Any]]:
        assert limit == 1
        rows = [{"status": order["status"], "n": 1} for order in self["orders"].values()]
        return rows if sql == "SELECT status" and parameters == {"id": "W1"} else []

    def fork(self, patch: Any = None) -> Tables:
        return Tables(super().fork(patch))


def test_what_a_query_gives_is_the_first_value_of_the_first_row() -> None:
    tables = Tables({"orders": {"W1": {"status": "sent"}}})
    query = {"query": "SELECT status", "parameters": {"id": "W1"}}
    assert found({"sql": {**query, "equals": "sent"}}, world=tables) == (1, "the query is 'sent'")
    assert found({"sql": {**query, "equals": "pending"}}, world=tables)[0] == 0
    assert found({"sql": {"query": "SELECT 1", "one_of": [None]}}, world=tables)[0] == 1
    with pytest.raises(RewardError, match="the world is no database; use a `world` predicate"):
        found({"sql": {**query, "equals": "sent"}})


def test_how_often_a_tool_was_called() -> None:
    twice = [turn("", CANCEL, CANCEL)]
    assert found({"called": {"tool": "cancel", "at_least": 2}}, twice)[0] == 1
    assert found({"called": {"tool": "cancel", "at_least": 3}}, twice) == (
        0,
        "cancel was called successfully 2 times, not 3",
    )
    assert found({"called": {"tool": "cancel", "at_most": 1}}, twice) == (
        0,
        "cancel was called 2 times",
    )
    assert found({"never_called": {"tool": "cancel", "arguments": {"n": 4}}}, twice)[0] == 1
    assert found({"never_called": {"tool": "cancel", "arguments": {"n": 3}}}, twice)[0] == 0


@pytest.mark.parametrize(
    ("of", "number"),
    [("turns", 4), ("messages", 2), ("calls", 3), ("tool_errors", 1), ("questions", 1)],
)
def test_what_can_be_counted(of: str, number: int) -> None:
    dialogue = [
        turn("Which one?", act="tell:order_id"),
        turn("Shall I?", CANCEL),
        turn("", ("look", {}, True), ("look", {}, False)),
        turn("Done.", act="stop"),
    ]
    assert found({"count": {"of": of, "at_most": number}}, dialogue)[0] == 1
    assert found({"count": {"of": of, "at_least": number}}, dialogue)[0] == 1
    score, reason = found({"count": {"of": of, "at_least": number + 1}}, dialogue)
    assert (score, reason) == (
        0,
        f"{of.replace('_', ' ')}: {number}, allowed at least {number + 1}",
    )
    assert found({"count": {"of": of, "at_most": number - 1}}, dialogue)[0] == 0


def test_what_was_said_is_quoted() -> None:
    heard = [turn("Hello.", act="next"), turn("You get $1,234.50 back.", act="stop")]
    result = judged({"said": {"text": "1234.5"}}, heard)
    assert (result.score, result.reason) == (1, "'1234.5' was said in turn 1")
    assert result.evidence == "You get $1,234.50 back."
    assert judged({"never_said": {"text": "$1234.50"}}, heard).evidence == heard[1].message.content


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a " * 10_000 + "secret", "is longer than 20,000 characters"),
        ("\u202eterces\u202c", "is shown in another order than it is written in"),
    ],
)
def test_what_cannot_be_read_whole_counts_as_said_where_it_must_not_be(
    text: str, reason: str
) -> None:
    heard = [turn("Hello.", act="next"), turn(text, act="stop")]
    result = judged({"never_said": {"text": "secret"}}, heard)
    assert (result.score, result.reason) == (0, f"'secret' may be said in turn 1, which {reason}")
    assert judged({"said": {"text": "secret"}}, heard).score == 0


@pytest.mark.parametrize("text", ["the s\u200becret", "the se\u00adcret", "the ѕеcrеt", "_secret_"])
def test_what_must_not_be_said_is_not_hidden_by_signs(text: str) -> None:
    assert judged({"never_said": {"text": "secret"}}, [turn(text, act="stop")]).score == 0


@pytest.mark.parametrize(
    ("answer", "score", "reason"),
    [
        (True, 1, "checks.py:f returned True"),
        (False, 0, "checks.py:f returned False"),
        (0.25, 0.25, "checks.py:f returned 0.25"),
        (None, None, "checks.py:f returned None"),
        ((0, "no refund"), 0, "no refund"),
        ((None, "nothing to refund"), None, "nothing to refund"),
    ],
)
def test_a_function_of_the_domain_decides(answer: Any, score: float | None, reason: str) -> None:
    spec = {"python": {"function": "checks.py:f", "arguments": {"order": "W1"}}}
    seen: list[Any] = []

    def check(evidence: Evidence, order: str) -> Any:
        seen.append((order, evidence.world["orders"]["W1"]["status"], evidence.opening.text))
        evidence.world["orders"]["W1"]["status"] = "spoilt by looking"
        return answer

    world = BASE.fork()
    result = judged(spec, world=world, load={"checks.py:f": check}.__getitem__)
    assert (result.score, result.reason) == (score, reason)
    assert seen == [("W1", "pending", "Hello.")]
    assert world["orders"]["W1"]["status"] == "pending", "looking changes nothing"


@pytest.mark.parametrize("answer", [2, -0.5, float("nan"), "yes", (1, 2), object()])
def test_a_function_that_answers_nonsense_is_the_authors_error(answer: Any) -> None:
    with pytest.raises(RewardError, match="expected true or false"):
        judged({"python": {"function": "c.py:f"}}, load=lambda _: lambda _: answer)
