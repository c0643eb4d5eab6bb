"""What a user who is trained has to learn from a round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from muarl.evaluate.summary import succeeded
from muarl.kernel.advantage import curriculum_reward, group_advantages
from muarl.model_user import CONTEXT
from muarl.record import Episode, EpisodeKey, Outcome, Sample
from muarl.scheduler import Group
from muarl.spec.user_model import UserGrpoSpec
from muarl.train.grpo import TrainingSet


class Earned(NamedTuple):
    """What the user earned for a dialogue, or for a message that she did not get to say."""

    key: EpisodeKey
    samples: list[Sample]
    reward: float


def user_training_set(groups: Sequence[Group], spec: UserGrpoSpec, *, version: int) -> TrainingSet:
    """Her samples with their advantages, over the whole round.

        what                                             her reward
        a dialogue that was scored                       1 - |2p - 1| of its group
        what she said in one that ended in her breach    0
        a message that her guards threw away             0, a sample of its own
        an infrastructure fault, a context used up,      none: it leaves the baseline too
        a group with one score

    To the policy a breach is a fault (law L2); to her it is her own act. The baseline is that of the
    round, since within a group all earn the same:

        groups with p = 1/2 and p = 1, two dialogues each, one message thrown away
        rewards 1 1 0 0 0,  mean 0.4,  s 0.548  ->  1.095 1.095 -0.730 -0.730 -0.730

    Args:
        groups: Of one round.
        spec: Which baseline.
        version: Of the weights that are trained: what past users said is not hers.
    """
    earned = [found for group in groups for found in _earned(group, version)]
    advantages = group_advantages([found.reward for found in earned], baseline=spec.baseline)
    found = TrainingSet([], [], [], Counter(), {})
    in_loss = spec.kl_coef > 0
    for (key, samples, _), advantage in zip(earned, advantages, strict=True):
        if advantage is not None and (advantage != 0.0 or in_loss):
            found.samples.extend(samples)
            found.advantages.extend([advantage] * len(samples))
            found.owners.extend([key] * len(samples))
    return found


def group_reward(group: Group) -> float | None:
    """What the user earns for each dialogue of a group; see `curriculum_reward`."""
    scored = [episode for episode in group.episodes if episode.reward is not None]
    return curriculum_reward(sum(map(succeeded, scored)), len(scored))


def _earned(group: Group, version: int) -> Iterator[Earned]:
    reward = group_reward(group)
    for episode in group.episodes:
        if episode.outcome == Outcome.INFRA_FAULT or not is_hers(episode, version):
            continue
        if episode.outcome == Outcome.USER_FAULT:
            if episode.user_samples and episode.breach != CONTEXT:
                yield Earned(episode.key, episode.user_samples, 0.0)
        elif reward is not None:
            yield Earned(episode.key, episode.user_samples, reward)
        for sample in episode.user_rejected:
            yield Earned(episode.key, [sample], 0.0)


def is_hers(episode: Episode, version: int) -> bool:
    """Whether all that the user of a dialogue sampled is by weights of one version."""
    spans = [s for sample in _all(episode) for s in sample.spans]
    return bool(spans) and all(span.policy_version == version for span in spans)


def user_metrics(groups: Sequence[Group], *, version: int) -> dict[str, Any]:
    """What a round looked like to the user."""
    hers = [e for group in groups for e in group.episodes if is_hers(e, version)]
    rewards = [reward for group in groups if (reward := group_reward(group)) is not None]
    return {
        "episodes": len(hers),
        "reward_mean": fmean(rewards) if rewards else None,
        "groups_even": sum(reward == 1.0 for reward in rewards),
        "rejected": sum(len(e.user_rejected) for e in hers),
        "faults": sum(e.outcome == Outcome.USER_FAULT for e in hers),
        "sampled_tokens": sum(s.num_sampled for e in hers for s in _all(e)),
        "forks": sum(e.user_forks for e in hers),
        "token_drift": user_token_drift(hers),
    }


def user_token_drift(episodes: Sequence[Episode]) -> int:
    """Positions at which the record contradicts itself about what users sampled (law L1).

    The spans must hold as many tokens as there are log-probs, must not overlap, must lie in their
    sample, and a sample must end with one.
    """
    drift = 0
    for sample in (sample for episode in episodes for sample in _all(episode)):
        drift += abs(sample.num_sampled - len(sample.logprobs))
        ends = [1, *(span.end for span in sample.spans)]
        drift += sum(span.start < end for span, end in zip(sample.spans, ends, strict=False))
        drift += abs(ends[-1] - len(sample.token_ids))
    return drift


def _all(episode: Episode) -> list[Sample]:
    return [*episode.user_samples, *episode.user_rejected]
