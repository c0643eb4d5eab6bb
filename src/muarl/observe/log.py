"""What happened to a run's dialogues, as JSON lines: one for each group and each fault.

Every line has the same fields first; they are null, or empty, where the line is about the run:

    at               UTC, ISO 8601
    level            "info", or "warning" for what was not as it should be
    event            "run_begins", "group", "fault", "warning"; at last "run_ends", "run_stops"
                     (it was asked to) or "run_fails"
    group            "train/3/cancel-001": phase, iteration and task
    task             "cancel-001"
    episodes         keys of the episodes it is about, "train/3/cancel-001/0" and so on
    policy_version   of the oldest weights that sampled in them; null where nothing was sampled

What was said is in the journal; the log holds no text of a dialogue, and no secret (`plain_words`).
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import structlog
from structlog.typing import EventDict

from muarl.observe.words import plain_words
from muarl.record import Episode
from muarl.record.saving import saving
from muarl.scheduler import EpisodePlan, Group, Observer

_log = logging.getLogger(__name__)
_FIRST = ("at", "level", "event", "group", "task", "episodes", "policy_version")


class RunLog(Observer):
    """Appends to a file of JSON lines. A context manager; the file is there from the beginning.

    A disk that refuses a line ends the log, with one warning, and not the run.

    Args:
        path: The file.
        secrets: Strings that must not appear in it, such as the keys of endpoints.
        clock: Seconds; only differences count.
    """

    def __init__(
        self,
        path: Path,
        secrets: Iterable[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = path
        self._secrets = tuple(secrets)
        self._given_up = False
        self._clock = clock
        self._begun: dict[EpisodePlan, float] = {}
        self._groups_begun: dict[tuple[str, int, str], float] = {}

    def __enter__(self) -> Self:
        """Open the file; what a killed run left half-written gets its line's end.

        Raises:
            RecordError: It cannot be opened.
        """
        with saving(self.path):
            self._file = self.path.open("a+b", buffering=0)
            self._file.seek(max(self._file.tell() - 1, 0))
            if self._file.read(1) not in (b"", b"\n"):
                self._file.write(b"\n")
        self._write = structlog.wrap_logger(
            structlog.BytesLogger(self._file),
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
                _in_order,
                structlog.processors.JSONRenderer(serializer=_json),
            ],
            wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()

    def say(self, event: str, *, warning: bool = False, **fields: Any) -> None:
        """Write a line about the run."""
        about: dict[str, Any] = {
            "group": None,
            "task": None,
            "episodes": [],
            "policy_version": None,
        }
        self._line(event, warning, about | fields)

    def attempt_started(self, plan: EpisodePlan) -> None:
        now = self._begun[plan] = self._clock()
        self._groups_begun.setdefault(plan.key.group, now)

    def attempt_ended(
        self, plan: EpisodePlan, episode: Episode, retry_after_s: float | None
    ) -> None:
        begun = self._begun.pop(plan)
        if episode.outcome.is_fault:
            self._line(
                "fault",
                True,
                _about([episode])
                | {
                    "kind": episode.fault or episode.outcome.value,
                    "words": plain_words(episode.error or "", self._secrets),
                    "outcome": episode.outcome.value,
                    "attempt": plan.attempt,
                    "retry_after_s": retry_after_s,
                    "elapsed_s": round(self._clock() - begun, 3),
                },
            )

    def group_whole(self, group: Group) -> None:
        begun = self._groups_begun.pop(group.key, None)
        if begun is None:  # an earlier run finished it, and wrote its line
            return
        episodes = group.episodes
        self._line(
            "group",
            False,
            _about(episodes)
            | {
                "rewards": [episode.reward for episode in episodes],
                "outcomes": dict(Counter(episode.outcome.value for episode in episodes)),
                "faults": group.num_faults,
                "turns": sum(len(episode.turns) for episode in episodes),
                "sampled_tokens": sum(episode.num_sampled for episode in episodes),
                "elapsed_s": round(self._clock() - begun, 3),
            },
        )

    def _line(self, event: str, warning: bool, fields: dict[str, Any]) -> None:
        if self._given_up:
            return
        write: Callable[..., Any] = self._write.warning if warning else self._write.info
        try:
            write(event, **fields)
        except OSError as problem:
            self._given_up = True
            _log.error("%s: nothing more is logged: %s", self.path, problem.strerror)


def _about(episodes: Sequence[Episode]) -> dict[str, Any]:
    """The fields of every line, for these episodes of one group."""
    key = episodes[0].key
    phase, iteration, task = key.group
    versions = [turn.policy_version for episode in episodes for turn in episode.turns]
    return {
        "group": f"{phase}/{iteration}/{task}",
        "task": task,
        "episodes": [str(episode.key) for episode in episodes],
        "policy_version": min(versions, default=None),
    }


def _in_order(_logger: Any, _method: str, event: EventDict) -> EventDict:
    return {name: event[name] for name in _FIRST} | dict(event)


def _json(event: EventDict, **_structlog: Any) -> bytes:
    return json.dumps(event, allow_nan=False).encode("ascii")
