"""Checks of single facts: of the world, of what was called, said and counted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from muarl.reward.evidence import Call, Evidence, Finding
from muarl.spec.pattern import found_in
from muarl.spec.predicate_kinds import (
    Called,
    Confirmed,
    Counted,
    NeverCalled,
    Preceded,
    Said,
    Scaled,
    SqlValue,
    ValueTest,
    WorldAt,
)
from muarl.spoken import MAX_CHARS, QUESTION_MARKS, may_say, says, unreadable
from muarl.world import World, canonical_diff, equal, lookup, plain

_SHOWN = 5
_EXCERPT = 300


def gold_world(wanted: bool, evidence: Evidence) -> Finding:
    """The world is as after the gold calls."""
    changes = canonical_diff(evidence.gold_world, evidence.world, evidence.world.unordered)
    if not changes:
        return Finding(float(wanted), "the world is as after the gold calls")
    shown = "; ".join(str(change) for change in changes[:_SHOWN])
    more = f"; and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
    return Finding(float(not wanted), f"differs from the gold world: {shown}{more}")


class _Absent(NamedTuple):
    """Stands for the value of a path that is not in a world; no value equals it."""

    missing: str

    def __repr__(self) -> str:
        return "absent"


def world(at: WorldAt, evidence: Evidence) -> Finding:
    """The value at a path of the world."""
    value = _at(evidence.world, at.path)
    if isinstance(value, _Absent) and at.changed is None:
        return Finding(0.0, f"{value.missing} is not in the world")
    return _tested(at, at.path, value, lambda: _at(evidence.initial, at.path))


def _at(world: World, path: str) -> Any:
    try:
        return lookup(world, path)
    except KeyError as missing:
        return _Absent(missing.args[0])


def scaled(at: Scaled, evidence: Evidence) -> Finding:
    """Where a number of the world lies between two others; worked: worst -1, best 1, value 0: 0.5."""
    value = _at(evidence.world, at.path)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"{at.path} is {_shown(value)}, which is no number")
    share = (value - at.worst) / (at.best - at.worst)
    return Finding(
        min(max(share, 0.0), 1.0), f"{at.path} is {value:g}, from {at.worst:g} to {at.best:g}"
    )


def sql(at: SqlValue, evidence: Evidence) -> Finding:
    """What a query of the world gives."""

    def value_in(world: World) -> Any:
        query = getattr(world, "query", None)
        if query is None:
            raise ValueError("the world is no database; use a `world` predicate")
        rows = query(at.query, at.parameters, 1)
        return next(iter(rows[0].values())) if rows else None

    return _tested(at, "the query", value_in(evidence.world), lambda: value_in(evidence.initial))


def _tested(test: ValueTest, what: str, value: Any, before: Callable[[], Any]) -> Finding:
    is_now = f"{what} is {_shown(value)}"
    if test.changed is not None:
        was = before()
        absent = [isinstance(one, _Absent) for one in (was, value)]
        same = all(absent) if any(absent) else equal(was, value)
        moved = "as before" if same else f"it was {_shown(was)} before"
        return Finding(float(same is not test.changed), f"{is_now}, {moved}")
    if test.one_of is not None:
        return Finding(float(any(equal(value, choice) for choice in test.one_of)), is_now)
    if test.matches is not None:
        if not isinstance(value, str):
            return Finding(0.0, f"{is_now}, which is no text")
        if len(value) > MAX_CHARS:
            return Finding(0.0, f"{what} has more than {MAX_CHARS} characters")
        return Finding(float(found_in(test.matches, value)), is_now)
    return Finding(float(equal(value, test.equals)), is_now)


def _shown(value: Any) -> str:
    return repr(value if isinstance(value, _Absent) else plain(value))


def _has(arguments: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return all(key in arguments and equal(arguments[key], wanted[key]) for key in wanted)


def called(spec: Called, evidence: Evidence) -> Finding:
    """A tool was called without an error."""
    calls = [(i, call) for i, call in enumerate(evidence.all_calls()) if not call.is_error]
    hits = [i for i, call in calls if _is(call, spec)]
    asked = " as asked" if spec.arguments else ""
    if len(hits) < spec.at_least:
        short = f" {len(hits)} times, not {spec.at_least}" if hits else ""
        not_ = "" if hits else "not "
        return Finding(0.0, f"{spec.tool} was {not_}called successfully{_by(spec)}{asked}{short}")
    if spec.at_most is not None and len(hits) > spec.at_most:
        return Finding(0.0, f"{spec.tool} was called{_by(spec)}{asked} {len(hits)} times")
    if spec.before is not None:
        later = [i for i, call in calls if call.name == spec.before and call.by == "agent"]
        if later and later[0] < hits[0]:
            return Finding(0.0, f"{spec.before} came before {spec.tool}")
    return Finding(1.0, f"{spec.tool} was called{_by(spec)}{asked}")


def never_called(spec: NeverCalled, evidence: Evidence) -> Finding:
    """A tool was never called, not even with an error."""
    count = sum(_is(call, spec) for call in evidence.all_calls())
    return Finding(float(count == 0), f"{spec.tool} was called{_by(spec)} {count} times")


def _is(call: Call, spec: Called | NeverCalled) -> bool:
    """Whether this is a call that is meant."""
    whose = (call.by, call.name) == (spec.by, spec.tool)
    return whose and _has(call.arguments, spec.arguments)


def _by(spec: Called | NeverCalled) -> str:
    return " by the user" if spec.by == "user" else ""


def said(spec: Said, evidence: Evidence) -> Finding:
    """The policy said something; in doubt it did not."""
    found = next((at for at in evidence.heard() if says(at[1], spec.text)), None)
    if found is None:
        return Finding(0.0, f"{spec.text!r} was not said")
    return Finding(1.0, f"{spec.text!r} was said in turn {found[0]}", found[1][:_EXCERPT])


def never_said(spec: Said, evidence: Evidence) -> Finding:
    """The policy never said something; in doubt it did."""
    for turn, text in evidence.heard():
        excerpt = text[:_EXCERPT]
        if may_say(text, spec.text):
            return Finding(0.0, f"{spec.text!r} was said in turn {turn}", excerpt)
        if why := unreadable(text):
            return Finding(0.0, f"{spec.text!r} may be said in turn {turn}, which {why}", excerpt)
    return Finding(1.0, f"{spec.text!r} was not said")


def count(spec: Counted, evidence: Evidence) -> Finding:
    """How often something happened."""
    number = _COUNTS[spec.of](evidence)
    least, most = spec.at_least or 0, spec.at_most
    good = least <= number and (most is None or number <= most)
    limits = [f"at least {least}"] if spec.at_least is not None else []
    limits += [f"at most {most}"] if most is not None else []
    name = spec.of.replace("_", " ")
    return Finding(float(good), f"{name}: {number}, allowed {' and '.join(limits)}")


_COUNTS: dict[str, Callable[[Evidence], int]] = {
    "turns": lambda evidence: len(evidence.turns),
    "messages": lambda evidence: sum(1 for _ in evidence.heard()),
    "calls": lambda evidence: sum(1 for _ in evidence.calls()),
    "tool_errors": lambda evidence: sum(call.is_error for call in evidence.calls()),
    "questions": lambda evidence: sum(
        any(mark in text for mark in QUESTION_MARKS) for _, text in evidence.heard()
    ),
}


def confirmed(spec: Confirmed, evidence: Evidence) -> Finding:
    """Share of successful writes that directly follow a confirmation by the user."""
    tools: Sequence[str] = evidence.writes if spec.tools is None else spec.tools
    asked = confirmed = 0
    last_act = ""
    for turn in evidence.turns:
        for result in turn.results:
            if result.name in tools and not result.is_error:
                asked += 1
                confirmed += last_act == "confirm"
                last_act = ""
        if turn.reply is not None:
            last_act = turn.reply.act
    if not asked:
        return Finding(None, "no write was made")
    return Finding(confirmed / asked, f"{confirmed} of {asked} writes were confirmed")


def preceded(spec: Preceded, evidence: Evidence) -> Finding:
    """Share of successful calls that were made after another tool had answered."""
    tools: Sequence[str] = evidence.writes if spec.tools is None else spec.tools
    answered: list[Call] = []
    made = good = 0
    missing = ""
    for calls in evidence.calls_by_message():
        done = [call for call in calls if not call.is_error]
        for call in done:
            if call.name not in tools:
                continue
            made += 1
            wanted = {key: call.arguments[key] for key in spec.same if key in call.arguments}
            if any(_has(earlier.arguments, wanted) for earlier in answered):
                good += 1
            else:
                missing = missing or f"; not before {call.name} {plain(wanted) or ''}".rstrip()
        answered += [call for call in done if call.name == spec.by]
    if not made:
        return Finding(None, "none of the tools was called")
    return Finding(good / made, f"{spec.by} came before {good} of {made} calls{missing}")
