"""Group-relative advantages: how much better than its siblings an episode was."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal


def group_advantages(
    rewards: Sequence[float | None],
    *,
    mode: Literal["std", "mean"] = "std",
    eps: float = 1e-6,
) -> list[float | None]:
    """Return `(reward - mean) / (std + eps)` within one group (GRPO, arXiv 2402.03300).

    The deviation is Bessel-corrected, as `torch.std` is. Faults (None) leave mean, deviation and
    result alike (law L2): their siblings get what they would get had the fault not been there.
    A group of one, and one whose rewards are all equal, gets zeros.

        [1, 0, None, 0]  ->  mean 1/3, std 0.577  ->  [1.155, -0.577, None, -0.577]

    Args:
        rewards: Of the episodes of one task; None for a fault.
        mode: "mean" leaves the division out.
        eps: Added to the deviation.
    """
    scored = [reward for reward in rewards if reward is not None]
    if len(scored) < 2 or min(scored) == max(scored):
        return [None if reward is None else 0.0 for reward in rewards]
    mean = math.fsum(scored) / len(scored)
    scale = 1.0
    if mode == "std":
        variance = math.fsum((reward - mean) ** 2 for reward in scored) / (len(scored) - 1)
        scale = math.sqrt(variance) + eps
    return [None if reward is None else (reward - mean) / scale for reward in rewards]
