"""Does an engine hold the trainer's weights? Fixed tokens, and what each says about them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

_TOLERANCE = {"float32": 1e-4}
"""Largest log-prob gap between engine and trainer, by engine dtype, that rounding explains."""
HALF_TOLERANCE = 0.03
"""The same for half precision, and where the dtype is not known."""


class LogprobProbe(msgspec.Struct, frozen=True):
    """Fixed tokens and what the trainer's weights say about them (temperature 1).

    Attributes:
        token_ids: [T] any ids, T at least 2.
        logprobs: [T-1] log-probability of `token_ids[t + 1]` after `token_ids[: t + 1]`.
    """

    token_ids: list[int]
    logprobs: list[float]

    def gap(self, scored: Sequence[float]) -> float:
        """Largest absolute difference between these log-probs and an engine's."""
        return max(abs(a - b) for a, b in zip(scored, self.logprobs, strict=True))


def tolerance_of(dtype: str) -> float:
    """Largest gap that rounding explains in an engine that computes in `dtype`."""
    return _TOLERANCE.get(dtype, HALF_TOLERANCE)
