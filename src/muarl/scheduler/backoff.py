"""How long a dialogue that ended in a fault is left alone before it is tried again."""

from __future__ import annotations

from muarl.record import EpisodeKey
from muarl.seeds import generator

LONGEST_WAIT_S = 30.0


def retry_wait_s(key: EpisodeKey, attempt: int, first_wait_s: float) -> float:
    """Seconds to wait after `attempt` failed: doubles, and is spread over its upper half.

    What takes down one dialogue takes down those beside it at the same instant; spread out, they
    do not come back at the same instant. The spread is drawn from the key, so that a run is the
    same twice (law L5).

    Example, `first_wait_s` 0.5: 0.25 to 0.5 s after the first attempt, 0.5 to 1 s after the second.
    """
    longest = min(first_wait_s * 2.0 ** (attempt - 1), LONGEST_WAIT_S)
    return longest * generator(str(key), key.run_seed, "retry", attempt).uniform(0.5, 1.0)
