"""What a run's sink is given, what it has to offer, and how a package registers one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec

from muarl.spec.plugin import O, Plugin


class Figures(msgspec.Struct, frozen=True):
    """The numbers of one line of a run's metrics.

    Attributes:
        axis: What `at` counts: `iteration`, or the `step` of a cold start.
        at: Where on it they lie.
        values: Path to number, such as `iteration/reward_mean` or `eval/final/T1/success/value`.
    """

    axis: str
    at: int
    values: dict[str, float]


class Sink(Protocol):
    """Takes figures as they come, in a thread of its own. What it raises ends the sink, and not the run."""

    def write(self, figures: Figures) -> None:
        """Take the figures of one line."""
        ...

    def rewind(self, kept: list[Figures]) -> None:
        """A resumed run is going to write again what is not `kept`, which is all that came before."""
        ...

    def close(self) -> None:
        """Nothing more comes."""
        ...


@dataclass(frozen=True)
class SinkPlugin(Plugin[O]):
    """A sink, registered in the group `muarl.sinks`.

    Attributes:
        options: The model of what a spec may say to it.
        make: Opens the sink of a run, of options, the run's folder and the run's spec as data.
    """

    make: Callable[[O, Path, Mapping[str, Any]], Sink]

    group = "muarl.sinks"
