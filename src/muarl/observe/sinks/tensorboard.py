"""TensorBoard: event files in the run's folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from muarl.figures import Figures


class TensorboardSink:
    """Writes event files; what a resumed run does again replaces what it did.

    Args:
        folder: Of the run.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "tensorboard"
        self._writer = self._new_writer()

    def write(self, figures: Figures) -> None:
        self._add(figures)
        self._writer.flush()

    def rewind(self, kept: list[Figures]) -> None:
        self._writer.close()
        shutil.rmtree(self._folder)
        self._writer = self._new_writer()
        for figures in kept:
            self._add(figures)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()

    def _add(self, figures: Figures) -> None:
        for path, value in figures.values.items():
            self._writer.add_scalar(path, value, figures.at)

    def _new_writer(self) -> Any:
        from tensorboard.summary import Writer

        return Writer(str(self._folder))
