"""Turns whose results were used count more, for good or ill (IAPO, arXiv 2608.24588).

An edge i -> j says that a call of turn j used what turn i was answered; it is a failed one if that call
failed. The paper has an annotating model find edges; here they follow from the values themselves
(`muarl.credit.provenance`). Of turn i: d⁺ edges of use and d⁻ of failed use leave it, d_in edges enter
it, and e is 1 if one of its own calls failed or a failed edge leaves it.

    φ⁺ = log(1 + d⁺ + d_in)                φ⁻ = log(1 + e · (1 + d⁻ + d_in))
    m  = exp(clip(z(φ), -c, c))            z over the episode's turns, weighted by their tokens L
    Â ≥ 0:  w ∝ m⁺ · exp(-β · (φ⁻ - mean φ⁻))        Â < 0:  w = m⁻
    Σ L_i w_i = Σ L_i                      A_i = Â · (1 + λ · (w_i - 1))

An episode's advantage keeps its sum over tokens, each turn its sign, and turns among which nothing
tells apart stay as they were.

Example: turns of equal length, the first asked for an order number and the second looked it up with
it: φ⁺ = log 2 for both, z = 0, w = 1. A third that only said thanks has φ⁺ = 0: z = (0.707, 0.707,
-1.414), clipped to ±0.25, w = (1.15, 1.15, 0.70).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from muarl.credit.provenance import uses
from muarl.credit.scored import PerTurn, Scored, lengths, with_mean_one
from muarl.record import Episode
from muarl.spec.credit import InfluenceCredit


def influence(group: Scored, spec: InfluenceCredit) -> PerTurn:
    """Advantages of turns; see the module."""
    return [
        [
            advantage * (1 + spec.weight * (share - 1))
            for share in _shares(episode, advantage >= 0, spec)
        ]
        for episode, advantage in zip(group.episodes, group.advantages, strict=True)
    ]


def _shares(episode: Episode, did_well: bool, spec: InfluenceCredit) -> list[float]:
    tokens = lengths(episode)
    use, failure = _features(episode)
    told = _clipped(use if did_well else failure, tokens, spec.clip)
    if did_well:
        mean = _mean(failure, tokens)
        told = [z - spec.penalty * (f - mean) for z, f in zip(told, failure, strict=True)]
    return with_mean_one([math.exp(z) for z in told], tokens)


def _features(episode: Episode) -> tuple[list[float], list[float]]:
    """φ⁺ and φ⁻ of each turn."""
    count = len(episode.turns)
    used, misused, entering = [0] * count, [0] * count, [0] * count
    for edge in uses(episode):
        entering[edge.user] += 1
        (misused if edge.failed else used)[edge.source] += 1
    failed = [any(result.is_error for result in turn.results) for turn in episode.turns]
    return (
        [math.log(1 + d + i) for d, i in zip(used, entering, strict=True)],
        [
            math.log(1 + (1 + d + i)) if f or d else 0.0
            for d, i, f in zip(misused, entering, failed, strict=True)
        ],
    )


def _mean(values: Sequence[float], tokens: Sequence[int]) -> float:
    return math.fsum(v * n for v, n in zip(values, tokens, strict=True)) / (sum(tokens) or 1)


def _clipped(values: Sequence[float], tokens: Sequence[int], limit: float) -> list[float]:
    """Deviations from the mean over tokens, in standard deviations; 0 where all are equal."""
    if not values or min(values) == max(values):
        return [0.0] * len(values)
    mean = _mean(values, tokens)
    deviation = math.sqrt(_mean([(v - mean) ** 2 for v in values], tokens))
    if not deviation:
        return [0.0] * len(values)
    return [max(-limit, min(limit, (v - mean) / deviation)) for v in values]
