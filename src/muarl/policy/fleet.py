"""Which endpoint a dialogue's next message goes to.

A dialogue stays with one endpoint, so that its context is in that one's prefix cache: each endpoint
is ranked for the dialogue by a hash of both (rendezvous hashing, Thaler and Ravishankar 1998). The
best ranked that is well gets the message; when it falls out, only its own dialogues move, each to
its second best, and they come back when it is well again.

Pure: told the time, awaits nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from muarl.http.breaker import Breaker, Permit


@dataclass(eq=False)
class Endpoint:
    """One server.

    Attributes:
        url: Its base URL.
        breaker: Whether it is well.
        is_stale: It does not hold the weights that it should; nothing is sent to it until it does.
        last_failure: What went wrong last, in words.
    """

    url: str
    breaker: Breaker = field(default_factory=Breaker)
    is_stale: bool = False
    last_failure: str = ""


class Fleet:
    """Endpoints that hold the same weights."""

    def __init__(self, urls: Iterable[str]) -> None:
        self.endpoints: Sequence[Endpoint] = [Endpoint(url) for url in urls]

    def choose(
        self, dialogue: str, now: float, barred: Collection[Endpoint] = ()
    ) -> tuple[Endpoint, Permit] | None:
        """The endpoint for a dialogue's next message, with the leave to send it; None: wait.

        Args:
            dialogue: Which.
            now: The time.
            barred: Endpoints that this message must not go to now.
        """
        for endpoint in self.ranked(dialogue):
            if endpoint.is_stale or endpoint in barred:
                continue
            if permit := endpoint.breaker.admit(now):
                return endpoint, permit
        return None

    def ranked(self, dialogue: str) -> list[Endpoint]:
        """All endpoints, best first; the same in every process."""

        def weight(endpoint: Endpoint) -> bytes:
            both = f"{endpoint.url}\0{dialogue}".encode()
            return hashlib.blake2b(both, digest_size=8).digest()

        return sorted(self.endpoints, key=weight)
