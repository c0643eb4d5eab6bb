"""Rounds of rollouts and updates."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from muarl.evaluate.statistics import mean_share
from muarl.kernel.advantage import group_advantages
from muarl.kernel.step import GrpoMetrics
from muarl.record import Episode, Sample
from muarl.scheduler import Group
from muarl.spec import GrpoSpec


def training_set(groups: Sequence[Group], spec: GrpoSpec) -> tuple[list[Sample], list[float]]:
    """Samples with their advantages. Faults are left out of baseline and loss alike (law L2).

    Groups in which all earned the same teach nothing and are left out too, unless a divergence is
    to be held down (`kl_coef`), which concerns them as well.
    """
    samples: list[Sample] = []
    advantages: list[float] = []
    for group in groups:
        rewards = [episode.reward for episode in group.episodes]
        for episode, advantage in zip(
            group.episodes, group_advantages(rewards, mode=spec.advantage), strict=True
        ):
            if advantage is None or (advantage == 0.0 and not spec.kl_coef):
                continue
            for sample in episode.samples:
                if sample.spans:
                    samples.append(sample)
                    advantages.append(advantage)
    return samples, advantages


def split_updates(
    samples: Sequence[Sample], advantages: Sequence[float], updates: int, rng: random.Random
) -> list[tuple[list[Sample], list[float]]]:
    """Deal a round's samples at random into its updates, evenly."""
    order = rng.sample(range(len(samples)), len(samples))
    parts = [order[i::updates] for i in range(updates)]
    return [([samples[i] for i in p], [advantages[i] for i in p]) for p in parts if p]


def round_metrics(groups: Sequence[Group], *, seed: int) -> dict[str, Any]:
    """What a round of rollouts looked like. Faulty episodes are only counted.

    The reward's interval is bootstrapped over tasks; `seed` draws it.
    """
    episodes = [e for group in groups for e in group.episodes]
    scored = [e for e in episodes if e.reward is not None]
    by_task = {
        group.key[2]: [e.reward for e in group.episodes if e.reward is not None] for group in groups
    }
    reward = mean_share({task: r for task, r in by_task.items() if r}, seed=seed)
    spreads = [{e.reward for e in group.episodes if e.reward is not None} for group in groups]
    calls = Counter(name for e in scored for name, _, _ in e.calls())
    return {
        "episodes": len(episodes),
        "faults": len(episodes) - len(scored),
        "reward_mean": reward.value,
        "reward_low": reward.low,
        "reward_high": reward.high,
        "groups_all_pass": sum(s == {1.0} for s in spreads),
        "groups_all_fail": sum(s == {0.0} for s in spreads),
        "groups_mixed": sum(len(s) > 1 for s in spreads),
        "turns_mean": fmean(len(e.turns) for e in scored) if scored else None,
        "response_tokens_mean": fmean(e.num_sampled for e in scored) if scored else None,
        "sampled_tokens": sum(e.num_sampled for e in scored),
        "tool_calls": {name: count / len(scored) for name, count in sorted(calls.items())},
        "outcomes": dict(Counter(e.outcome.value for e in episodes)),
        "fork_rate": fmean(e.forks for e in scored) if scored else None,
    }


def update_metrics(updates: Sequence[GrpoMetrics]) -> dict[str, float]:
    """A round's updates in one row; the first update is the one on policy."""
    if not updates:
        return {}
    tokens = sum(u.num_tokens for u in updates)

    def mean(field: str) -> float:
        total: float = sum(getattr(u, field) * u.num_tokens for u in updates)
        return total / tokens

    return {
        "loss": mean("loss"),
        "entropy": mean("entropy"),
        "first_ratio_mean": updates[0].ratio_mean,
        "first_ratio_max": updates[0].ratio_max,
        "max_logprob_gap": updates[0].max_logprob_gap,
        "ratio_max": max(u.ratio_max for u in updates),
        "clip_fraction": mean("clip_low_fraction") + mean("clip_high_fraction"),
        "grad_norm": fmean(u.grad_norm for u in updates),
        "trained_tokens": tokens,
    }


def token_drift(episodes: Sequence[Episode]) -> int:
    """Positions at which an episode's record contradicts itself about what was sampled (law L1).

    The sampled spans must hold as many tokens as there are log-probs, must not overlap, and must
    make up the turns' own messages.
    """
    drift = 0
    for episode in episodes:
        for index, sample in enumerate(episode.samples):
            drift += abs(sample.num_sampled - len(sample.logprobs))
            ends = [0, *(span.end for span in sample.spans)]
            drift += sum(span.start < end for span, end in zip(sample.spans, ends, strict=False))
            turns = [(t.start, t.end) for t in episode.turns if t.sample == index]
            messages = sample.messages()
            drift += sum(a != b for a, b in zip(turns, messages, strict=False))
            drift += abs(len(turns) - len(messages))
    return drift


def k3(samples: Sequence[Sample], reference: Sequence[Sequence[float]]) -> float | None:
    """Mean k3 estimate of KL(policy || reference) over sampled tokens (Schulman, 2020).

    With d = reference - policy log-prob of a sampled token: exp(d) - d - 1, never negative.
    """
    terms = [
        math.exp(min(theirs - ours, 20.0)) - (theirs - ours) - 1.0
        for sample, row in zip(samples, reference, strict=True)
        for ours, theirs in zip(sample.logprobs, row, strict=True)
    ]
    return sum(terms) / len(terms) if terms else None
