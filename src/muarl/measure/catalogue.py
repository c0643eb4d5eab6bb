"""Every figure, in the order of the 31 metrics. Docs are checked against it."""

from __future__ import annotations

from collections.abc import Mapping

from muarl.measure import (
    asking,
    collapse,
    contract,
    disclosure,
    ending,
    goals,
    panel,
    role,
    style,
    truth,
    variance,
    work,
)
from muarl.measure.figure import Figure

_ROOMS = (
    asking, disclosure, truth, goals, ending, style, role, collapse, variance, work, contract, panel,
)  # fmt: skip

CATALOGUE: Mapping[str, Figure] = {
    figure.name: figure
    for figure in sorted((f for room in _ROOMS for f in room.FIGURES), key=lambda f: f.number)
}
"""Figures of tier T0, by name."""

BY_TURN = frozenset(name for name, figure in CATALOGUE.items() if figure.turn is not None)
"""Those that count turns, of which a judge can say whether it is so."""

METRICS: Mapping[int, str] = {
    1: "clarification",
    2: "answers to requests",
    3: "fabrication on unknown",
    4: "premature disclosure",
    5: "first-turn dump",
    6: "leaks and parroting",
    7: "groundedness",
    8: "unexecuted claims",
    9: "goal coverage and drift",
    10: "mid-task change",
    11: "premature termination",
    12: "late or missing stop",
    13: "abandonment",
    14: "push-back and concession",
    15: "sycophancy",
    16: "verbosity",
    17: "register",
    18: "lexical redundancy",
    19: "role flip",
    20: "format",
    21: "collapse at a fixed prefix",
    22: "act entropy and coverage",
    23: "variance split",
    24: "group health",
    25: "contract score",
    26: "reward sensitivity",
    27: "calibration",
    28: "distance to a reference",
    29: "user effort",
    30: "effective work",
    31: "cost, latency, failures",
}
"""The 31 metrics of the method's notes. 27 and 28 need a reference, and stand in `reference`."""
