"""Group-relative advantages: how much better than its siblings an episode was."""

from __future__ import annotations

import math
from collections.abc import Sequence

from muarl.spec.grpo import Baseline


def group_advantages(
    rewards: Sequence[float | None],
    *,
    baseline: Baseline = "std",
    eps: float = 1e-6,
) -> list[float | None]:
    """Measure rewards by those of their group.

        std             (r - mean) / (s + eps), s with n - 1 as `torch.std` (GRPO, arXiv 2402.03300)
        population_std  (r - mean) / (s + eps), s with n
        mean            r - mean                                      (Dr. GRPO, arXiv 2503.20783)
        leave_one_out   r - mean of the others = (r - mean) · n / (n - 1)  (RLOO, arXiv 2402.14740)
        none            r

    Faults (None) leave mean, deviation and result alike (law L2): their siblings get what they would
    get had the fault not been there. A group of one, and one whose rewards are all equal, gets zeros
    from all but `none`.

        [1, 0, None, 0]  ->  mean 1/3, std 0.577  ->  [1.155, -0.577, None, -0.577]

    Args:
        rewards: Of the episodes of one task; None for a fault.
        baseline: One of the above.
        eps: Added to the deviation.
    """
    if baseline == "none":
        return list(rewards)
    scored = [reward for reward in rewards if reward is not None]
    if len(scored) < 2 or min(scored) == max(scored):
        return [None if reward is None else 0.0 for reward in rewards]
    count, mean = len(scored), math.fsum(scored) / len(scored)
    scale = 1.0
    if baseline == "leave_one_out":
        scale = (count - 1) / count
    elif baseline != "mean":
        freedom = count - 1 if baseline == "std" else count
        scale = math.sqrt(math.fsum((r - mean) ** 2 for r in scored) / freedom) + eps
    return [None if reward is None else (reward - mean) / scale for reward in rewards]


def curriculum_reward(successes: int, episodes: int) -> float | None:
    """What a user earns who is trained to be neither too hard nor too easy for the policy.

        r = 1 - |2p - 1|,  p = successes / episodes of a group

    Greatest, 1, where the group splits evenly, which is where it teaches the policy most; 0 where all
    or none succeed. ("Co-training" of arXiv 2608.12253, whose reward peaks there likewise; rewards that
    follow the policy's own, or oppose it, let the user collapse.) All dialogues of the group earn the
    same, so the baseline has to be over more than one group.

        4 of 8 -> 1.0    6 of 8 -> 0.5    8 of 8 -> 0.0

    Args:
        successes: Dialogues of the group in which the policy succeeded.
        episodes: All of them that were scored. One alone cannot split: None.
    """
    return None if episodes < 2 else 1.0 - abs(2 * successes - episodes) / episodes
