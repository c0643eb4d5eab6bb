"""Estimates of KL(policy || reference) from the log-probs of what the policy sampled."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

MAX_LOG_RATIO = 20.0
"""Ratios are held within e**-20 and e**20, where they no longer mean anything, so as to stay finite."""


def divergence(
    logprobs: Tensor,
    reference_logprobs: Tensor,
    *,
    estimator: Literal["k1", "k2", "k3"] = "k3",
    largest: float | None = None,
) -> Tensor:
    """Estimate the divergence on each sampled token (Schulman 2020, "Approximating KL divergence").

    With d = reference - policy:

        k1  -d               unbiased, of high variance, may be negative
        k2  d² / 2           biased, never negative
        k3  exp(d) - d - 1   unbiased, never negative ("low variance")

    As a term of a loss only k2 has, on policy, the slope of the divergence in expectation; that of k1
    averages to nothing.

    Example: policy -1, reference -1.5, d = -0.5: k1 0.5, k2 0.125, k3 0.1065.

    Args:
        logprobs: [N] of the policy.
        reference_logprobs: [N] of the reference.
        estimator: One of the above.
        largest: Estimates are held within plus and minus this.

    Returns:
        [N].
    """
    gap = (reference_logprobs - logprobs).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
    if estimator == "k1":
        value = -gap
    elif estimator == "k2":
        value = gap.square() / 2
    else:
        value = gap.exp() - gap - 1
    return value if largest is None else value.clamp(-largest, largest)
