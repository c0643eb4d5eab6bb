"""Whatever a dialogue was, a predicate gives a score in [0, 1] and a reason, or a typed error.

Evidence is what a model wrote and made of the world; predicates are an author's, sound or spoiled.
"""

from __future__ import annotations

import copy
import math
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import anyio
from fuzz_tally import TALLIES
from hostile import TEXTS, spoiled_tree, values
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from muarl.errors import RewardError
from muarl.json_values import json_problem
from muarl.messages import Message, ToolCall, ToolResult
from muarl.record import PredicateResult, Turn, UserReply
from muarl.reward import Evidence, LenientJudges, evaluate, judge
from muarl.spec import PredicateSpec, load_domain_spec
from muarl.spec.sql_seed import load_database
from muarl.world import World, plain
from muarl.world.sql import SqlWorld

TALLY = TALLIES["predicates"]
LIBRARY = Path(__file__).parents[2] / "domains" / "library"

SAID = (
    "$1,234.50",
    "March 3rd, 2026",
    "2026-03-03",
    "B-7",
    "no",
    "5 dollars",
    "?",
    "３",
    "１２",
    "ﬀ",
)
DOCUMENT: dict[str, Any] = {
    "orders": {"W1": {"status": "pending", "n": 3, "items": [1, 2.0, True, None]}},
    "a.b": {"c": {}},
    "0": [],
}
LEAVES: list[dict[str, Any]] = [
    {"gold_world": True},
    {"gold_world": False},
    {"world": {"path": "orders.W1.status", "equals": "pending"}},
    {"world": {"path": "orders.W1.items.1", "one_of": [None, 2, "2"]}},
    {"world": {"path": "a.b.c", "changed": True}},
    {"world": {"path": "orders.W1.status", "matches": "^p(e|n)+.*g$"}},
    {"sql": {"query": "SELECT count(*) FROM loans", "equals": 3}},
    {"sql": {"query": "SELECT :a", "parameters": {"a": 1}, "changed": False}},
    {"sql": {"query": "SELECT title FROM books", "matches": "x"}},
    {"called": {"tool": "cancel", "arguments": {"order_id": "W1"}, "before": "look"}},
    {"called": {"tool": "look", "at_least": 1, "at_most": 2}},
    {"never_called": {"tool": "cancel", "arguments": {"n": 3}}},
    {"called": {"tool": "look", "by": "user", "arguments": {"order_id": "W1"}}},
    {"never_called": {"tool": "look", "by": "user"}},
    {"said": {"text": "$1,234.50 on March 3rd, 2026"}},
    {"never_said": {"text": "B-7"}},
    {"count": {"of": "questions", "at_most": 1}},
    {"count": {"of": "tool_errors", "at_least": 1, "at_most": 2}},
    {"confirmed": {}},
    {"preceded": {"by": "look", "same": ["order_id"]}},
    {"confirmed": {"tools": ["look"]}},
    {"judge": {"criterion": "It was kind.", "model": "m", "base_url_env": "JUDGE"}},
    {"python": {"function": "own.py:check", "arguments": {"a": 1}}},
]


@cache
def library() -> SqlWorld:
    return SqlWorld(load_database(load_domain_spec(LIBRARY)))


def fuzz(data: st.DataObject) -> None:
    """Judge one dialogue by one predicate, or one text by what is known to stand in it."""
    if data.draw(st.integers(0, 3)) == 0:
        fuzz_said(data)
    else:
        fuzz_verdicts(data)


def fuzz_said(data: st.DataObject) -> None:
    """A text that says one thing is asked for another: it says it exactly if it is the same."""
    one, other = data.draw(things), data.draw(things)
    hidden = data.draw(st.sampled_from(["", "", "\u200b", "\u00ad", "\ufe0f"]))
    written = hidden.join(data.draw(st.sampled_from(one.spellings)))
    bound = data.draw(st.sampled_from(["", "", *BOUND])) if written[-1].isdigit() else ""
    before, after = data.draw(surroundings), data.draw(surroundings)
    text = f"{before} {written}{bound}, {after}"
    wanted = data.draw(st.sampled_from(other.spellings))
    with TALLY.one((text, wanted)):
        said = judged_by({"said": {"text": wanted}}, text)
        never = judged_by({"never_said": {"text": wanted}}, text)
        assert not (said and never), "said, and never said"
        if one == other and not bound:
            assert said, "what stands there was not found"
        elif one != other or bound != " million":  # "W1 million" says W1
            assert not said, "a wrong acceptance"
        if one == other and not bound:
            assert not never, "what stands there was missed"
        TALLY.note("said" if said else "not said")


class Thing(NamedTuple):
    """Something to be said, and ways to spell it that mean the same."""

    what: str
    spellings: tuple[str, ...]


def _number(number: int) -> Thing:
    return Thing(f"{number}", (f"{number}", f"{number:,}", f"{number}.00"))


def _money(number: int) -> Thing:
    return Thing(f"${number}.25", (f"${number}.25", f"{number:,}.25 USD", f"{number},25 dollars"))


def _euros(number: int) -> Thing:
    return Thing(f"€{number}.75", (f"€{number}.75", f"{number:,}.75 EUR", f"EUR {number}.75"))


def _date(day: date) -> Thing:
    words = f"{day:%B} {day.day}, {day.year}"
    return Thing(f"{day}", (f"{day}", words, f"{day.day} {day:%b} {day.year}"))


things = st.one_of(
    st.integers(1, 10**6).map(_number),
    st.integers(1, 10**6).map(_money),
    st.integers(1, 10**6).map(_euros),
    st.dates(date(1990, 1, 1), date(2050, 1, 1)).map(_date),
    st.sampled_from(["W1", "W2", "K41", "K4", "K411"]).map(lambda name: Thing(name, (name,))),
)
BOUND = ("kg", "½", "²", "%", "th", "-7", "–7", ":30", "/7", "^2", "°", "+", "×3", ".x", " million")
surroundings = st.lists(
    st.sampled_from(
        ["so", "it is", "(ok)", "**yes**", "art", "no;", "\n- and", "Anna's", "ﬁn", "，"]
    ),
    max_size=3,
).map(" ".join)


def judged_by(predicate: dict[str, Any], text: str) -> bool:
    """Whether a predicate holds of one message."""
    message = Message("assistant", text)
    answer = UserReply("so")
    heard = Evidence(
        world=World({}),
        gold_world=World({}),
        turns=[Turn(message, 0, 0, 0, finish_reason="stop", policy_version=0, reply=answer)],
        opening=UserReply("hello"),
        writes=[],
        judges=LenientJudges(),
        begin=lambda: World({}),
        load=lambda _: None,
    )
    return anyio.run(evaluate, PredicateSpec.model_validate(predicate), heard).score == 1


def fuzz_verdicts(data: st.DataObject) -> None:
    """One predicate, of whatever happened."""
    spec = predicate(data)
    if spec is None:
        TALLY.note("no predicates")
        return
    evidence = drawn(data)
    before = plain(evidence.world), plain(evidence.gold_world)
    with TALLY.one((spec.model_dump(exclude_none=True), evidence.turns)):
        anyio.run(check, spec, evidence)
    assert (plain(evidence.world), plain(evidence.gold_world)) == before, "looking changed a world"


def predicate(data: st.DataObject) -> PredicateSpec | None:
    """A predicate made of others, sound or spoiled; None if it is none."""
    tree = composed(data, data.draw(st.integers(0, 3)))
    if data.draw(st.booleans()):
        tree, _ = spoiled_tree(data.draw, tree, LEAVES, plant=False)
    try:
        return PredicateSpec.model_validate(tree, strict=True)
    except ValidationError:
        return None


def composed(data: st.DataObject, depth: int) -> dict[str, Any]:
    kind = data.draw(st.sampled_from(["all", "any", "share", "not", "weighted"])) if depth else ""
    if not kind:
        return copy.deepcopy(data.draw(st.sampled_from(LEAVES)))
    if kind == "not":
        return {kind: composed(data, depth - 1)}
    parts = [composed(data, depth - 1) for _ in range(data.draw(st.integers(1, 2)))]
    if kind != "weighted":
        return {kind: parts}
    side = [{"weight": 0.25, "when": part} for part in parts]
    return {
        kind: {
            "success": composed(data, 0),
            "side": side,
            "failure_cap": data.draw(st.sampled_from([0.0, 0.25, 0.49])),
        }
    }


def drawn(data: st.DataObject) -> Evidence:
    """A dialogue, and what became of its world."""
    base = data.draw(st.sampled_from([World(DOCUMENT), World(DOCUMENT), library()]))
    worlds = [base.fork(), base.fork()]
    for world in worlds:
        if data.draw(st.booleans()) and not isinstance(world, SqlWorld):
            value = data.draw(values(3).filter(lambda value: json_problem(value) is None))
            holder = data.draw(st.sampled_from([world, world["orders"], world["orders"]["W1"]]))
            holder[data.draw(st.sampled_from(["orders", "W1", "status", "items", "new"]))] = value
    turns = [turn(data) for _ in range(data.draw(st.integers(0, 4)))]
    answer = data.draw(values(2) | st.tuples(values(1), st.text(max_size=3) | st.none()))
    return Evidence(
        world=worlds[0],
        gold_world=worlds[1],
        turns=turns,
        opening=reply(data),
        writes=["cancel"],
        judges=LenientJudges(),
        begin=base.fork,
        load=lambda _: lambda evidence, **arguments: answer,
    )


texts = st.lists(st.sampled_from([*SAID, *TEXTS]) | st.text(max_size=6), max_size=5).map(" ".join)


def turn(data: st.DataObject) -> Turn:
    """A message with calls and their answers, or one that the user answered."""
    calls, results = made(data)
    return Turn(
        message=Message("assistant", data.draw(texts), tool_calls=tuple(calls)),
        sample=0,
        start=0,
        end=0,
        finish_reason=data.draw(st.sampled_from(["stop", "length"])),
        policy_version=0,
        results=results,
        reply=None if calls and data.draw(st.booleans()) else reply(data),
    )


def reply(data: st.DataObject) -> UserReply:
    """What the user said, and what she called on a device of hers before."""
    calls, results = made(data)
    act = data.draw(st.sampled_from(["", "confirm", "deny", "did:look", "stop"]))
    return UserReply(data.draw(texts), act=act, calls=calls, results=results)


def made(data: st.DataObject) -> tuple[list[ToolCall], list[ToolResult]]:
    """Calls, and their answers."""
    calls = [
        ToolCall(f"c{i}", data.draw(st.sampled_from(["cancel", "look", ""])), arguments)
        for i, arguments in enumerate(data.draw(st.lists(_arguments, max_size=3)))
    ]
    results = [
        ToolResult(call.id, call.name, data.draw(texts), is_error=data.draw(st.booleans()))
        for call in calls
    ]
    return calls, results


_arguments = st.just({"order_id": "W1", "n": 3.0}) | st.dictionaries(
    st.sampled_from(["order_id", "n", "x"]), values(2), max_size=2
)


async def check(spec: PredicateSpec, evidence: Evidence) -> None:
    try:
        found = await evaluate(spec, evidence)
    except RewardError:
        kinds = {part.kind for _, part in spec.walk()}
        TALLY.note("typed errors")
        if not kinds & {"sql", "python"}:
            raise
        return
    TALLY.note("scored" if found.score is not None else "not applicable")
    check_result(found)
    assert await evaluate(spec, evidence) == found, "the same evidence, another finding"
    opposite = PredicateSpec.model_validate({"not": spec})
    other = await evaluate(opposite, evidence)
    assert (other.score is None) == (found.score is None)
    assert other.score is None or math.isclose(other.score, 1 - (found.score or 0))
    verdict = await judge(evidence, [spec, opposite], [spec])
    assert 0 <= verdict.reward <= 0.5
    if spec.weighted is not None:
        success = (await evaluate(spec.weighted.success, evidence)).score
        assert (found.score or 0) > spec.weighted.failure_cap or success is None or success < 1


def check_result(found: PredicateResult) -> None:
    assert found.score is None or 0 <= found.score <= 1 + 1e-9
    assert found.name
    assert found.reason
    assert len(found.reason) < 1100
    assert len(found.evidence) < 1100


@settings(max_examples=80, deadline=None, phases=[Phase.generate], database=None)
@given(data=st.data())
def test_predicates_give_a_score_and_a_reason_whatever_happened(data: st.DataObject) -> None:
    fuzz(data)
