"""All sinks of a run, so that none of them can end it or hold it up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from muarl.errors import SetupError
from muarl.figures import Sink
from muarl.observe.sinks.apart import SinkApart
from muarl.observe.sinks.opened import OpenedSink
from muarl.observe.sinks.sink import figures_of
from muarl.observe.sinks.tensorboard import TensorboardSink
from muarl.observe.sinks.trackio import TrackioSink
from muarl.observe.sinks.wandb import WandbSink
from muarl.spec.sinks import SinkSpec


class Sinks:
    """The sinks of a run. A context manager; told of every line that the run adds to its metrics.

    Args:
        specs: Which.
        folder: Of the run.
        config: The run's spec, for those that show it.
    """

    def __init__(self, specs: Sequence[SinkSpec], folder: Path, config: Mapping[str, Any]) -> None:
        self._specs = specs
        self._folder = folder
        self._config = dict(config)
        self._sinks: list[SinkApart] = []
        self._iterations = 0

    def __enter__(self) -> Self:
        """Open them all.

        Raises:
            SetupError: One cannot be opened: it is not installed, or its service refuses us.
        """
        try:
            for spec in self._specs:
                sink = SinkApart(spec.name, partial(self._opened, spec))
                sink.open()
                self._sinks.append(sink)
        except Exception as problem:
            self._close()
            raise SetupError(
                f"the sink {spec.name!r} cannot be opened: {problem}. Mend that, or leave it out of "
                "`sinks`"
            ) from problem
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()

    def write(self, line: Mapping[str, Any]) -> None:
        """Tell all of one line."""
        figures = figures_of(line, self._iterations)
        if line["kind"] == "iteration":
            self._iterations = figures.at + 1
        if figures.values:
            for sink in self._sinks:
                sink.tell(lambda sink: sink.write(figures))

    def rewind(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Tell all which lines of a resumed run stay."""
        self._iterations = 0
        kept = []
        for line in lines:
            kept.append(figures_of(line, self._iterations))
            if line["kind"] == "iteration":
                self._iterations = kept[-1].at + 1
        for sink in self._sinks:
            sink.tell(lambda sink: sink.rewind(kept))

    def _opened(self, spec: SinkSpec) -> Sink:
        if spec.wandb is not None:
            return WandbSink(spec.wandb, self._folder, self._config)
        if spec.plugin is not None:
            return OpenedSink(spec.plugin, self._folder, self._config)
        if spec.trackio is not None:
            return TrackioSink(spec.trackio, self._folder, self._config)
        return TensorboardSink(self._folder)

    def _close(self) -> None:
        for sink in self._sinks:
            sink.close()
