"""Evaluate predicates. Each result explains itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

import msgspec

from muarl.errors import EpisodeError, RewardError
from muarl.record import PredicateResult
from muarl.reward import checks
from muarl.reward.evidence import Evidence, Finding
from muarl.reward.own import python
from muarl.reward.plugin import plugged
from muarl.spec.predicate import PredicateSpec, Weighted

_MAX_REASON = 1000
_WHOLE = 1 - 1e-9
"""A score of 1, to rounding."""


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


async def judge(
    evidence: Evidence, reward: Sequence[PredicateSpec], metrics: Sequence[PredicateSpec]
) -> Verdict:
    """Evaluate everything that counts and everything that is observed.

    Raises:
        RewardError: A predicate could not be evaluated.
        EpisodeError: What a `judge` predicate asks does not answer.
    """
    rewards = [await evaluate(predicate, evidence) for predicate in reward]
    observed = [await evaluate(predicate, evidence) for predicate in metrics]
    return Verdict(reward_of(rewards), rewards, observed)


async def evaluate(predicate: PredicateSpec, evidence: Evidence) -> PredicateResult:
    """Evaluate one predicate, and what it is made of.

    Raises:
        RewardError: It could not be evaluated; the author's bug, not the policy's.
        EpisodeError: What a `judge` predicate asks does not answer.
    """
    try:
        found = await _find(predicate, evidence)
    except EpisodeError:
        raise
    except Exception as error:  # boundary: whatever a check trips over becomes its typed error
        raise RewardError(
            f"predicate {predicate.name!r} could not be evaluated: {error}"
        ) from error
    return PredicateResult(
        predicate.name,
        found.score,
        _short(found.reason),
        _short(found.evidence),
        _short(found.caveat),
    )


def reward_of(results: Sequence[PredicateResult]) -> float:
    """1 only if every predicate holds: the smallest score of those that apply, and 0 where none does."""
    return min((r.score for r in results if r.score is not None), default=0.0)


def _short(text: str) -> str:
    """Reasons are for people; what they quote may be a whole world."""
    return text if len(text) <= _MAX_REASON else f"{text[:_MAX_REASON]} ..."


async def _find(predicate: PredicateSpec, evidence: Evidence) -> Finding:
    if predicate.judge is not None:
        return await evidence.judges.rule(predicate.judge, evidence)
    if predicate.plugin is not None:
        return await plugged(predicate.plugin, evidence)
    if check := _CHECKS.get(predicate.kind):
        return check(predicate.value, evidence)
    parts = [await evaluate(part, evidence) for _, part in predicate.parts()]
    found = _MADE_OF_OTHERS[predicate.kind](predicate.value, parts)
    left_out = dict.fromkeys(part.caveat for part in parts if part.caveat)
    return found._replace(caveat="; ".join(left_out))


def _all(_: object, parts: Sequence[PredicateResult]) -> Finding:
    return _extreme(min, parts)


def _any(_: object, parts: Sequence[PredicateResult]) -> Finding:
    return _extreme(max, parts)


def _extreme(choose: Callable[..., PredicateResult], parts: Sequence[PredicateResult]) -> Finding:
    """The lowest or the highest of the parts that apply, with its reason: it alone decides."""
    scored = [part for part in parts if part.score is not None]
    if not scored:
        return Finding(None, "none of its parts applies")
    decisive = choose(scored, key=lambda part: part.score)
    return Finding(decisive.score, f"{decisive.name}: {decisive.reason}", decisive.evidence)


def _share(_: object, parts: Sequence[PredicateResult]) -> Finding:
    """The mean score of the parts that apply."""
    scored = [(part, part.score) for part in parts if part.score is not None]
    if not scored:
        return Finding(None, "none of its parts applies")
    met = [part for part, score in scored if score >= _WHOLE]
    lacking = [f"{part.name}: {part.reason}" for part, score in scored if score < _WHOLE]
    told = "; ".join([f"{len(met)} of {len(scored)} hold", *lacking])
    return Finding(fmean(score for _, score in scored), told)


def _not(_: object, parts: Sequence[PredicateResult]) -> Finding:
    (part,) = parts
    score = None if part.score is None else 1 - part.score
    return Finding(score, f"{part.name}: {part.reason}", part.evidence)


def _weighted(terms: Weighted, parts: Sequence[PredicateResult]) -> Finding:
    """See `Weighted` for the formula: every failure is below every success."""
    success, *side = parts
    lost = earned = 0.0
    words = []
    for term, part in zip(terms.side, side, strict=True):
        score = 1.0 if part.score is None else part.score
        earned += term.weight * score
        lost += term.weight * (1 - score)
        if score < 1:
            words.append(f"loses {term.weight * (1 - score):.3g} by {part.name}: {part.reason}")
    if success.score is not None and success.score >= _WHOLE:
        told = "; ".join(words) or "nothing is lost by side terms"
        return Finding(1 - lost, f"a success; {told}", success.evidence)
    told = f"a failure by {success.name}: {success.reason}"
    return Finding(min(terms.failure_cap, earned), told, success.evidence)


_CHECKS: dict[str, Callable[[Any, Evidence], Finding]] = {
    "gold_world": checks.gold_world,
    "world": checks.world,
    "scaled": checks.scaled,
    "sql": checks.sql,
    "called": checks.called,
    "never_called": checks.never_called,
    "said": checks.said,
    "never_said": checks.never_said,
    "count": checks.count,
    "confirmed": checks.confirmed,
    "preceded": checks.preceded,
    "python": python,
}
_MADE_OF_OTHERS: dict[str, Callable[[Any, Sequence[PredicateResult]], Finding]] = {
    "all": _all,
    "any": _any,
    "share": _share,
    "not": _not,
    "weighted": _weighted,
}
