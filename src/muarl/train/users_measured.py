"""The users of an evaluation, measured: a line of the metrics beside its scores.

{"kind": "users", "phase": "final", "temperature": 1.0, "dialogues": 400, "tasks": 400,
 "faults": 0, "user_faults": 0, "figures": {"asks": {"value": 0.02, "low": 0.01, ...}, ...}}
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import msgspec

from muarl.measure.episodes import transcripts
from muarl.measure.table import measure
from muarl.record import Episode
from muarl.suite import AnyDomain
from muarl.train.run_folder import RunFolder

KIND = "users"
_MOST = 5_000
"""Dialogues; more would hardly narrow an interval, and each takes two milliseconds."""


def log_users(
    folder: RunFolder, domain: AnyDomain, episodes: Iterable[Episode], seed: int, **about: Any
) -> None:
    """Measure the users of some dialogues, and write down what was found.

    Args:
        folder: The run's.
        domain: Whose users they are.
        episodes: The dialogues, of which the first 5,000 are measured.
        seed: Draws the intervals.
        about: Which dialogues these are: `phase`, `temperature`, or `policy` and `user` of a grid.
    """
    found = msgspec.to_builtins(measure(transcripts(domain, islice(episodes, _MOST)), seed=seed))
    del found["reward"]  # stands in the line of the evaluation
    folder.log(KIND, **about, **found)
