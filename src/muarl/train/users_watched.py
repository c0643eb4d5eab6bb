"""The users of a training, watched for collapse from iteration to iteration.

What is seen stands under `users` in the iteration's line of the metrics:

    {"figures": {"repeats_text": 0.41, "act_entropy": 0.52, ...}, "alarms": ["iteration 7: ..."]}

and in one line of the log; what fires is a warning there and on the display.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import anyio.to_thread

from muarl.measure.episodes import transcripts
from muarl.measure.monitors import Monitors, watched
from muarl.scheduler import Group
from muarl.suite import AnyDomain

_log = logging.getLogger(__name__)


class UsersWatched:
    """Watches one run.

    Args:
        domain: Whose users they are.
        lines: The run's metrics so far: a resumed run's monitors go on where they were.
    """

    def __init__(self, domain: AnyDomain, lines: Iterable[Mapping[str, Any]]) -> None:
        self._domain = domain
        self._monitors = Monitors()
        for line in lines:
            if line["kind"] == "iteration" and "users" in line:
                self._monitors.observe(line["iteration"], line["users"]["figures"])

    async def observe(self, iteration: int, groups: Sequence[Group]) -> dict[str, Any]:
        """Look at the dialogues of an iteration, in a worker thread; what goes into the metrics.

        An environment is no user, and says the same again as often as it likes.
        """
        episodes = [
            episode
            for group in groups
            for episode in group.episodes
            if self._domain.of(episode.key.task_id).spec.environment is None
        ]

        def look() -> dict[str, float | None]:
            return watched(transcripts(self._domain, episodes))

        figures = await anyio.to_thread.run_sync(look)
        _log.info("users in iteration %d: %s", iteration, _in_words(figures))
        alarms = self._monitors.observe(iteration, figures)
        for alarm in alarms:
            _log.warning("%s: %s", alarm.of, alarm)
        return {"figures": figures, "alarms": list(map(str, alarms))}


def _in_words(figures: Mapping[str, float | None]) -> str:
    known = {name: value for name, value in figures.items() if value is not None}
    return ", ".join(f"{name} {value:.3f}" for name, value in known.items())
