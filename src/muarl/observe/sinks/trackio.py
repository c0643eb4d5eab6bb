"""Trackio, which keeps runs in a database on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muarl.figures import Figures
from muarl.spec.sinks import TrackioSpec


class TrackioSink:
    """Gives figures to Trackio.

    Args:
        spec: Where to.
        folder: Of the run, whose name the run there bears.
        config: The run's spec.
    """

    def __init__(self, spec: TrackioSpec, folder: Path, config: Mapping[str, Any]) -> None:
        import trackio

        self._run: Any = trackio.init(
            project=spec.project,
            name=folder.resolve().name,
            config=dict(config),
            resume="allow",
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
        )

    def write(self, figures: Figures) -> None:
        self._run.log({f"at/{figures.axis}": figures.at, **figures.values})

    def rewind(self, kept: list[Figures]) -> None:
        """What it has been given stays: what is done again is there twice."""

    def close(self) -> None:
        self._run.finish()
