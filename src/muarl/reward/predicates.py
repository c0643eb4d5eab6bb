"""Evaluate predicates. Each result explains itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from muarl.errors import RewardError
from muarl.record import PredicateResult, Turn
from muarl.spec.predicate import Called, Confirmed, NeverCalled, PredicateSpec, Said, WorldAt
from muarl.world import World, canonical_diff, equal, lookup, plain

_MAX_REASON = 1000


class Evidence(msgspec.Struct, frozen=True):
    """What predicates may look at.

    Attributes:
        world: Final world of the dialogue.
        gold_world: World after the task's gold calls.
        turns: What happened, in order.
        writes: The domain's write tools.
    """

    world: World
    gold_world: World
    turns: Sequence[Turn]
    writes: Sequence[str]


class Verdict(msgspec.Struct, frozen=True):
    """What predicates found about one dialogue.

    Attributes:
        reward: In [0, 1].
        rewards: What each predicate of the reward found.
        metrics: What each predicate found that is only observed.
    """

    reward: float
    rewards: list[PredicateResult]
    metrics: list[PredicateResult]


def judge(
    evidence: Evidence, reward: Sequence[PredicateSpec], metrics: Sequence[PredicateSpec]
) -> Verdict:
    """Evaluate everything that counts and everything that is observed.

    Raises:
        RewardError: A predicate could not be evaluated.
    """
    rewards = [evaluate(predicate, evidence) for predicate in reward]
    observed = [evaluate(predicate, evidence) for predicate in metrics]
    return Verdict(reward_of(rewards), rewards, observed)


def evaluate(predicate: PredicateSpec, evidence: Evidence) -> PredicateResult:
    """Evaluate one predicate.

    Raises:
        RewardError: The predicate could not be evaluated; the author's bug, not the policy's.
    """
    try:
        score, reason = _CHECKS[predicate.kind](getattr(predicate, predicate.kind), evidence)
    except Exception as error:  # boundary: whatever a check trips over becomes its typed error
        raise RewardError(
            f"predicate {predicate.name!r} could not be evaluated: {error}"
        ) from error
    return PredicateResult(predicate.name, score, _short(reason))


def _short(reason: str) -> str:
    """A reason is for people; what it quotes may be a whole world."""
    return reason if len(reason) <= _MAX_REASON else f"{reason[:_MAX_REASON]} ..."


def reward_of(results: Sequence[PredicateResult]) -> float:
    """1 only if every predicate holds: the smallest score."""
    return min((r.score for r in results if r.score is not None), default=0.0)


_Finding = tuple[float | None, str]


def _gold_world(wanted: bool, evidence: Evidence) -> _Finding:
    changes = canonical_diff(evidence.gold_world, evidence.world, evidence.world.unordered)
    if not changes:
        return float(wanted), "the world is as after the gold calls"
    shown = "; ".join(str(change) for change in changes[:5])
    more = f"; and {len(changes) - 5} more" if len(changes) > 5 else ""
    return float(not wanted), f"differs from the gold world: {shown}{more}"


def _world(at: WorldAt, evidence: Evidence) -> _Finding:
    try:
        value = lookup(evidence.world, at.path)
    except KeyError as missing:
        return 0.0, f"{missing.args[0]} is not in the world"
    return float(equal(value, at.equals)), f"{at.path} is {plain(value)!r}"


def _successful(turns: Sequence[Turn]) -> list[tuple[int, str, dict[str, Any]]]:
    """Successful calls in order: position, tool, arguments."""
    calls = [
        (call.name, call.arguments, result.is_error)
        for turn in turns
        for call, result in zip(turn.message.tool_calls, turn.results, strict=False)
    ]
    return [(i, name, arguments) for i, (name, arguments, bad) in enumerate(calls) if not bad]


def _has(arguments: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return all(key in arguments and equal(arguments[key], wanted[key]) for key in wanted)


def _called(spec: Called, evidence: Evidence) -> _Finding:
    calls = _successful(evidence.turns)
    hits = [
        i for i, name, arguments in calls if name == spec.tool and _has(arguments, spec.arguments)
    ]
    if not hits:
        return 0.0, f"{spec.tool} was not called successfully as asked"
    if spec.before is not None:
        later = [i for i, name, _ in calls if name == spec.before]
        if later and later[0] < hits[0]:
            return 0.0, f"{spec.before} came before {spec.tool}"
    return 1.0, f"{spec.tool} was called"


def _never_called(spec: NeverCalled, evidence: Evidence) -> _Finding:
    count = sum(result.name == spec.tool for turn in evidence.turns for result in turn.results)
    return float(count == 0), f"{spec.tool} was called {count} times"


def _normal(text: str) -> str:
    return " ".join(text.casefold().split())


def _heard(evidence: Evidence, text: str) -> bool:
    """Only what the user answered was said to her: no text beside calls, no cut message."""
    return any(
        _normal(text) in _normal(turn.message.content)
        for turn in evidence.turns
        if turn.reply is not None
    )


def _said(spec: Said, evidence: Evidence) -> _Finding:
    heard = _heard(evidence, spec.text)
    return float(heard), f"{spec.text!r} was {'' if heard else 'not '}said"


def _never_said(spec: Said, evidence: Evidence) -> _Finding:
    heard = _heard(evidence, spec.text)
    return float(not heard), f"{spec.text!r} was {'' if heard else 'not '}said"


def _confirmed(spec: Confirmed, evidence: Evidence) -> _Finding:
    tools = set(evidence.writes if spec.tools is None else spec.tools)
    asked = confirmed = 0
    last_act = ""
    for turn in evidence.turns:
        for call, result in zip(turn.message.tool_calls, turn.results, strict=False):
            if call.name in tools and not result.is_error:
                asked += 1
                confirmed += last_act == "confirm"
                last_act = ""
        if turn.reply is not None:
            last_act = turn.reply.act
    if not asked:
        return None, "no write was made"
    return confirmed / asked, f"{confirmed} of {asked} writes were confirmed"


_CHECKS: dict[str, Callable[[Any, Evidence], _Finding]] = {
    "gold_world": _gold_world,
    "world": _world,
    "called": _called,
    "never_called": _never_called,
    "said": _said,
    "never_said": _never_said,
    "confirmed": _confirmed,
}
