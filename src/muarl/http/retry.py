"""When to try again, and when not to."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 8.0
_EXCERPT = 200
QUOTED = 4 * _EXCERPT
"""Characters of an answer that an excerpt is taken from."""
_SAID = 1000
"""Characters of what is said of a failure: some of its words are the endpoint's own."""


class PassingFailure(Exception):
    """May go better next time.

    Attributes:
        wait_s: How long the endpoint asks us to wait, if it does.
        is_busy: The endpoint is well, and has too much to do.
    """

    def __init__(self, words: str, wait_s: float | None = None, *, is_busy: bool = False) -> None:
        self.wait_s = wait_s
        self.is_busy = is_busy
        super().__init__(shortly(words))


class Backoff:
    """Waits between the tries of one request: doubling, and spread.

    They are spread so that requests refused together do not come back together; nothing that is
    recorded depends on them.

    Example:
        The n-th wait lies between half and all of 0.5, 1, 2, 4, 8, 8, ... seconds.
    """

    def __init__(self) -> None:
        self._longest_s = _FIRST_WAIT_S
        self._jitter = random.Random()

    def next_s(self) -> float:
        """Seconds to wait before the next try."""
        wait_s = self._longest_s * self._jitter.uniform(0.5, 1.0)
        self._longest_s = min(2 * self._longest_s, _LONGEST_WAIT_S)
        return wait_s


def may_pass(status: int) -> bool:
    """Whether an HTTP status speaks of now, not of the request."""
    return status in (408, 429) or status >= 500


def seconds_of(retry_after: str | None) -> float | None:
    """Retry-After as seconds from now: a number or a date; None if it is neither."""
    if retry_after is None:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            when: Any = parsedate_to_datetime(retry_after)
            seconds = (when - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError, OverflowError):  # no date, or one without a zone
            return None
    return max(seconds, 0.0) if seconds < float("inf") else None


def wait_of(failure: PassingFailure, backoff: Backoff) -> float:
    """Seconds until the next try: as long as the endpoint asks, but never less than a backoff.

    Else one that asks for no time at all would be asked a thousand times a second.
    """
    return max(failure.wait_s or 0.0, backoff.next_s())


def excerpt(text: str) -> str:
    """The beginning of an answer, as messages quote it."""
    return shortly(" ".join(text[:QUOTED].split()), _EXCERPT)


def shortly(words: str, chars: int = _SAID) -> str:
    """Words, cut where they are more than a person reads."""
    return words if len(words) <= chars else words[:chars] + "…"
