"""All sinks of a run, so that none of them can end it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from muarl.errors import SetupError
from muarl.figures import Sink
from muarl.observe.sinks.opened import OpenedSink
from muarl.observe.sinks.sink import figures_of
from muarl.observe.sinks.tensorboard import TensorboardSink
from muarl.observe.sinks.trackio import TrackioSink
from muarl.observe.sinks.wandb import WandbSink
from muarl.spec.sinks import SinkSpec

_log = logging.getLogger(__name__)


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
        self._sinks: dict[str, Sink] = {}
        self._iterations = 0

    def __enter__(self) -> Self:
        """Open them all.

        Raises:
            SetupError: One cannot be opened: it is not installed, or its service refuses us.
        """
        try:
            for spec in self._specs:
                self._sinks[spec.name] = self._opened(spec)
        except Exception as problem:
            self._all(lambda sink: sink.close())
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
        self._all(lambda sink: sink.close())

    def write(self, line: Mapping[str, Any]) -> None:
        """Tell all of one line."""
        figures = figures_of(line, self._iterations)
        if line["kind"] == "iteration":
            self._iterations = figures.at + 1
        if figures.values:
            self._all(lambda sink: sink.write(figures))

    def rewind(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Tell all which lines of a resumed run stay."""
        self._iterations = 0
        kept = []
        for line in lines:
            kept.append(figures_of(line, self._iterations))
            if line["kind"] == "iteration":
                self._iterations = kept[-1].at + 1
        self._all(lambda sink: sink.rewind(kept))

    def _opened(self, spec: SinkSpec) -> Sink:
        if spec.wandb is not None:
            return WandbSink(spec.wandb, self._folder, self._config)
        if spec.plugin is not None:
            return OpenedSink(spec.plugin, self._folder, self._config)
        if spec.trackio is not None:
            return TrackioSink(spec.trackio, self._folder, self._config)
        return TensorboardSink(self._folder)

    def _all(self, tell: Callable[[Sink], None]) -> None:
        for name, sink in list(self._sinks.items()):
            try:
                tell(sink)
            except Exception as problem:  # noqa: BLE001 - whatever a library raises, the run goes on
                del self._sinks[name]
                _log.warning("the sink %r is told no more: %s", name, problem)
