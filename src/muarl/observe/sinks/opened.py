"""Sinks that an installed package provides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from muarl.authors import RAISED, blame, let_others_pass
from muarl.errors import PluginError
from muarl.figures import Figures, SinkPlugin
from muarl.spec.plugged import PluggedSink


class OpenedSink:
    """A sink whose code is another author's: what it raises is its fault, and said of it.

    Args:
        named: As the run names it.
        folder: Of the run.
        config: The run's spec.

    Raises:
        PluginError: Its package raised, or made what is no sink.
    """

    def __init__(self, named: PluggedSink, folder: Path, config: Mapping[str, Any]) -> None:
        self._whose = str(named.provided)
        plugin = named.registered(SinkPlugin)
        with self._blamed():
            self._sink = plugin.make(named.options, folder, config)
        wanted = ("write", "rewind", "close")
        if lacking := [n for n in wanted if not callable(getattr(self._sink, n, None))]:
            raise PluginError(
                f"{self._whose} made a {type(self._sink).__name__}, which is no muarl.plugins.Sink: it "
                f"lacks {' and '.join(lacking)}"
            )

    def write(self, figures: Figures) -> None:
        with self._blamed():
            self._sink.write(figures)

    def rewind(self, kept: list[Figures]) -> None:
        with self._blamed():
            self._sink.rewind(kept)

    def close(self) -> None:
        with self._blamed():
            self._sink.close()

    @contextmanager
    def _blamed(self) -> Iterator[None]:
        try:
            yield
        except RAISED as error:  # boundary: the package raises anything
            let_others_pass(error)
            raise PluginError(f"{self._whose} raised {blame(error)}") from error
