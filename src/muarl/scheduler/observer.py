"""What is told of a run while it goes on: the one seam for logs, metrics and live views."""

from __future__ import annotations

from muarl.policy import EngineLoad, Policy
from muarl.record import Episode
from muarl.scheduler.admission import EpisodePlan, Group
from muarl.tools import ToolServer
from muarl.user import User


class Observer:
    """Told what happens, in the order in which it happens, on the event loop.

    Methods return at once and await nothing. An observer changes nothing; what it raises is a bug
    and ends the run. Here every method does nothing; a subclass overrides those it wants to hear of.
    """

    def attempt_started(self, plan: EpisodePlan) -> None:
        """A dialogue begins; `attempt_ended` follows unless the run is cancelled."""

    def attempt_ended(
        self, plan: EpisodePlan, episode: Episode, retry_after_s: float | None
    ) -> None:
        """A dialogue ended; a fault if `episode.outcome.is_fault`.

        Args:
            plan: As it began.
            episode: What it gave. Journaled already if it is final.
            retry_after_s: Seconds until it may be tried again; None if the episode is final.
        """

    def group_whole(self, group: Group) -> None:
        """The last episode of a group is final and journaled; told before it is handed over."""

    def window_set(self, load: EngineLoad, window: int) -> None:
        """The engine's load was read.

        Args:
            load: The reading.
            window: Dialogues that may be live from now on.
        """

    def policy(self, plan: EpisodePlan, policy: Policy) -> Policy:
        """What an attempt samples from: `policy`, or something around it that watches."""
        del plan
        return policy

    def user(self, plan: EpisodePlan, user: User) -> User:
        """Whom an attempt talks with, likewise."""
        del plan
        return user

    def server(self, plan: EpisodePlan, server: ToolServer) -> ToolServer:
        """Where an attempt's tools are, likewise."""
        del plan
        return server
