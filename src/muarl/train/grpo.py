"""Rounds of rollouts and updates."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import torch

from muarl.credit import Credited, Measured, turn_advantages
from muarl.evaluate.statistics import mean_share
from muarl.kernel.divergence import divergence
from muarl.kernel.step import Advantage, GrpoMetrics
from muarl.record import Episode, EpisodeKey, Sample
from muarl.scheduler import Group
from muarl.spec import GrpoSpec
from muarl.spec.grpo import UpdateSpec


class TrainingSet(NamedTuple):
    """What a round gives to learn from.

    Attributes:
        samples: With something sampled in each.
        advantages: One per sample, or one for each of its sampled tokens where turns differ.
        owners: The episode of each sample.
        dropped: Episodes that were left out of the loss, by why.
        credited: What each episode that was scored earned, and each of its turns.
    """

    samples: list[Sample]
    advantages: list[Advantage]
    owners: list[EpisodeKey]
    dropped: Counter[str]
    credited: dict[EpisodeKey, Credited]

    def credit_metrics(self) -> dict[str, float]:
        """For the run's log: share of turns that the credit moved from their episode's advantage.

        Beside it by how much, on average, and the average size of those advantages.
        """
        gaps = [
            abs(turn - found.outcome) for found in self.credited.values() for turn in found.turns
        ]
        sizes = [abs(found.outcome) for found in self.credited.values() for _ in found.turns]
        if not gaps:
            return {}
        return {
            "moved": sum(gap > 0 for gap in gaps) / len(gaps),
            "gap": fmean(gaps),
            "outcome": fmean(sizes),
        }


def training_set(
    groups: Sequence[Group],
    spec: GrpoSpec,
    *,
    penalties: Mapping[EpisodeKey, float] | None = None,
    measured: Measured | None = None,
) -> TrainingSet:
    """Samples with their advantages. Faults are left out of baseline and loss alike (law L2).

    Episodes of which no turn has an advantage teach nothing and are left out too, unless the loss has a
    term of its own for each token, a divergence or an entropy, which concerns them as well.

    Args:
        groups: Of one round.
        spec: Baseline, credit, what is punished and what is dropped.
        penalties: Taken from the rewards before the baseline, such as a divergence's.
        measured: Of the episodes' turns, for credits that need more than the record.
    """
    found = TrainingSet([], [], [], Counter(), {})
    all_count = spec.entropy_coef > 0 or (spec.kl_coef > 0 and spec.kl_in == "loss")
    for group in groups:
        rewards = [
            shaped_reward(e, spec, (penalties or {}).get(e.key, 0.0)) for e in group.episodes
        ]
        shared_out = turn_advantages(group.episodes, rewards, spec, measured=measured)
        for episode, credited in zip(group.episodes, shared_out, strict=True):
            if credited is None:
                continue
            episode.require_tokens()
            found.credited[episode.key] = credited
            if not all_count and not any(credited.turns):
                continue
            if why := _why_dropped(episode, spec):
                found.dropped[why] += 1
                continue
            for number, sample in enumerate(episode.samples):
                if sample.spans:
                    found.samples.append(sample)
                    found.advantages.append(_of_sample(episode, number, credited))
                    found.owners.append(episode.key)
    return found


def _of_sample(episode: Episode, number: int, credited: Credited) -> Advantage:
    """Advantage of a sample's tokens, which are those of the turns that it holds.

    turns of 2 and 1 tokens with 0.5 and -0.5   ->   [0.5, 0.5, -0.5]
    """
    if len(set(credited.turns)) == 1:
        return credited.turns[0]
    return [
        advantage
        for turn, advantage in zip(episode.turns, credited.turns, strict=True)
        if turn.sample == number
        for _ in range(turn.end - turn.start)
    ]


def shaped_reward(episode: Episode, spec: GrpoSpec, penalty: float = 0.0) -> float | None:
    """An episode's reward less what is taken from it for its length and by `penalty`.

    The soft punishment of DAPO (arXiv 2503.14476, equation 13), with n sampled tokens:

        0 up to max - buffer,  penalty · (n - (max - buffer)) / buffer,  penalty from max on
    """
    if episode.reward is None:
        return None
    reward = episode.reward - penalty
    if spec.overlong is not None:
        over = episode.num_sampled - (spec.overlong.max_tokens - spec.overlong.buffer_tokens)
        share = min(1.0, max(0.0, over / spec.overlong.buffer_tokens))
        reward -= spec.overlong.penalty * share
    return reward


def _why_dropped(episode: Episode, spec: GrpoSpec) -> str | None:
    if "truncated" in spec.drop and episode.outcome.is_truncated:
        return "truncated"
    if "void_turns" in spec.drop and any(
        not turn.message.tool_calls and not turn.message.content.strip() for turn in episode.turns
    ):
        return "void_turns"
    return None


def teaches(group: Group, spec: GrpoSpec) -> bool:
    """Whether a group's episodes differ in what they earned."""
    return len({shaped_reward(e, spec) for e in group.episodes} - {None}) > 1


def split_updates(count: int, updates: int, rng: random.Random) -> list[list[int]]:
    """Deal a round's samples, by number, at random into its updates, evenly."""
    order = rng.sample(range(count), count)
    return [part for i in range(updates) if (part := order[i::updates])]


def round_metrics(groups: Sequence[Group]) -> dict[str, Any]:
    """What a round of rollouts looked like. Faulty episodes are only counted."""
    episodes = [e for group in groups for e in group.episodes]
    scored = [e for e in episodes if e.reward is not None]
    by_task = {
        f"{group.key[1]}/{group.key[2]}": [e.reward for e in group.episodes if e.reward is not None]
        for group in groups
    }
    reward = mean_share({task: r for task, r in by_task.items() if r})
    spreads = [{e.reward for e in group.episodes if e.reward is not None} for group in groups]
    calls = Counter(name for e in scored for name, _, _ in e.calls())
    errors = Counter(name for e in scored for name, _, is_error in e.calls() if is_error)
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
        "tool_errors": {name: errors[name] / count for name, count in sorted(calls.items())},
        "distinct": distinct_ngrams(scored),
        "outcomes": dict(Counter(e.outcome.value for e in episodes)),
        "fork_rate": fmean(e.forks for e in scored) if scored else None,
    }


_NGRAMS = (1, 2, 3)
_COUNTED = 20_000
"""Sampled tokens of an iteration in which n-grams are counted: the share of new ones falls with the
length of a text, so that only stretches of equal length can be compared."""


def distinct_ngrams(episodes: Sequence[Episode]) -> dict[str, float]:
    """Share of the n-grams of sampled ids that are the first of their kind (Li et al., 1510.03055).

    N-grams lie within one message; messages are counted until there are enough tokens.

    Example:
        Messages [5, 6, 5] and [5, 6] have the 1-grams 5 6 5 5 6, of which two are new: 0.4; and the
        2-grams 56 65 56: 0.67.
    """
    messages: list[tuple[int, ...]] = []
    left = _COUNTED
    for sample in (sample for episode in episodes for sample in episode.samples):
        for start, end in sample.messages():
            if left > 0:
                messages.append(tuple(sample.token_ids[start : min(end, start + left)]))
                left -= end - start
    found: dict[str, float] = {}
    for n in _NGRAMS:
        grams = [ids[at : at + n] for ids in messages for at in range(len(ids) - n + 1)]
        if grams:
            found[str(n)] = len(set(grams)) / len(grams)
    return found


def update_metrics(updates: Sequence[GrpoMetrics]) -> dict[str, float]:
    """A round's updates in one row; the first that moved the policy is the one on policy.

    All but the mismatch is of the tokens that were learned from. An update of which every token was
    rejected has none, so it is in no mean.
    """
    if not updates:
        return {}
    tokens = sum(u.num_tokens for u in updates)
    counted = {"trained_tokens": tokens, **_mismatch(updates)}
    learned = [u for u in updates if u.num_tokens]
    if not learned:
        return counted

    def mean(field: str) -> float:
        total: float = sum(getattr(u, field) * u.num_tokens for u in learned)
        return total / tokens

    return {
        "loss": mean("loss"),
        "entropy": mean("entropy"),
        "first_ratio_mean": learned[0].ratio_mean,
        "first_ratio_max": learned[0].ratio_max,
        "max_logprob_gap": learned[0].max_logprob_gap,
        "ratio_max": max(u.ratio_max for u in learned),
        "clip_fraction": mean("clip_low_fraction") + mean("clip_high_fraction"),
        "grad_norm": fmean(u.grad_norm for u in learned),
        **counted,
    }


def _mismatch(updates: Sequence[GrpoMetrics]) -> dict[str, float]:
    """Of sampler and trainer, where it is corrected for: means over the updates."""
    found = [u.mismatch for u in updates if u.mismatch is not None]
    if not found:
        return {}
    return {
        "mismatch_kl": fmean(m.kl for m in found),
        "mismatch_chi2": fmean(m.chi2 for m in found),
        "importance_truncated": fmean(m.truncated for m in found),
        "importance_rejected": fmean(m.rejected for m in found),
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


def divergence_from(
    samples: Sequence[Sample],
    reference: Sequence[Sequence[float]],
    spec: UpdateSpec,
) -> list[float]:
    """Each sample's estimate of KL(policy || reference), summed over its sampled tokens."""
    return [
        divergence(
            torch.tensor(sample.logprobs, dtype=torch.float64),
            torch.tensor(row, dtype=torch.float64),
            estimator=spec.kl_estimator,
            largest=spec.kl_max,
        )
        .sum()
        .item()
        for sample, row in zip(samples, reference, strict=True)
    ]
