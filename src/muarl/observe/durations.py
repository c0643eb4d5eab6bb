"""How long something took, over and over: counts in buckets, which can be added and subtracted."""

from __future__ import annotations

import math

_FIRST_S = 1e-4
_PER_DOUBLING = 4
_BUCKETS = 81  # the last one begins at 105 s


class Durations:
    """A histogram of seconds. A quantile is never understated, and overstated by a fifth at most.

    Bucket 0 holds what is at most 0.1 ms; the upper bound of each next one is 2 ** (1 / 4) times
    that of the one before. What lies behind the last bound, 105 s, is counted as if it were that.
    """

    def __init__(self, counts: tuple[int, ...] = (0,) * _BUCKETS) -> None:
        self._counts = list(counts)

    def add(self, seconds: float) -> None:
        """Count one."""
        bucket = 0
        if seconds > _FIRST_S:
            # A bound belongs to its bucket, whichever way its logarithm was rounded.
            bucket = math.ceil(math.log2(seconds / _FIRST_S) * _PER_DOUBLING - 1e-9)
        self._counts[min(bucket, _BUCKETS - 1)] += 1

    def copy(self) -> Durations:
        """The same counts, which stay as they are now."""
        return Durations(tuple(self._counts))

    def since(self, earlier: Durations) -> Durations:
        """What was added after `earlier`, a copy of this one, was made."""
        pairs = zip(self._counts, earlier._counts, strict=True)
        return Durations(tuple(now - before for now, before in pairs))

    def __len__(self) -> int:
        return sum(self._counts)

    def quantile(self, share: float) -> float | None:
        """Seconds that so large a share of them did not exceed; 1 is the longest. None of none.

        Example:
            Of 99 waits of 1 ms and one of 1 s, `quantile(0.5)` and `quantile(0.99)` are about 1 ms,
            `quantile(1)` is about 1 s.
        """
        wanted = max(1, math.ceil(share * len(self)))
        seen = 0
        for bucket, count in enumerate(self._counts):
            seen += count
            if seen >= wanted:
                return float(_FIRST_S * 2 ** (bucket / _PER_DOUBLING))
        return None
