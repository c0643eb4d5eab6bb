"""One sink in a thread of its own: a slow one holds nothing up, and one that fails ends alone."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue

from muarl.figures import Sink

_log = logging.getLogger(__name__)

_PATIENCE_S = 60.0
"""How long a run that is over waits for a sink that takes nothing."""
_LOOK_S = 1.0


class SinkApart:
    """A sink that is opened, told and closed in one thread, which nobody waits for while the run goes on.

    Args:
        name: As the run names it.
        make: Opens it.
        patience_s: Seconds that `close` waits for it to take any one thing.
    """

    def __init__(
        self, name: str, make: Callable[[], Sink], patience_s: float = _PATIENCE_S
    ) -> None:
        self._name = name
        self._make = make
        self._patience_s = patience_s
        self._waiting: SimpleQueue[Callable[[Sink], None] | None] = SimpleQueue()
        self._opened: Future[None] = Future()
        self._thread = threading.Thread(target=self._work, name=f"muarl-sink-{name}", daemon=True)
        self._took_at = 0.0

    def open(self) -> None:
        """Open it.

        Raises:
            Exception: Whatever its library does.
        """
        self._thread.start()
        self._opened.result()

    def tell(self, what: Callable[[Sink], None]) -> None:
        """Have it told, after all that it was to be told before."""
        if self._thread.is_alive():
            self._waiting.put(what)

    def close(self) -> None:
        """Wait until it has taken everything, and been closed, for as long as it takes anything."""
        self._waiting.put(None)
        self._took_at = time.monotonic()
        while self._thread.is_alive():
            self._thread.join(min(_LOOK_S, self._patience_s))
            if self._thread.is_alive() and time.monotonic() - self._took_at > self._patience_s:
                _log.warning(
                    "the sink %r has taken nothing for %.0f s: the run ends without it",
                    self._name,
                    self._patience_s,
                )
                return

    def _work(self) -> None:
        try:
            sink = self._make()
        except BaseException as problem:  # noqa: BLE001 - whatever a library raises, it ends this sink
            self._opened.set_exception(_plain(problem))
            return
        self._opened.set_result(None)
        try:
            while (tell := self._waiting.get()) is not None:
                tell(sink)
                self._took_at = time.monotonic()
            sink.close()
        except BaseException as problem:  # noqa: BLE001 - likewise
            _log.warning("the sink %r is told no more: %s", self._name, _plain(problem))


def _plain(problem: BaseException) -> Exception:
    """Of what would end the run if it were raised in it, an error that does not."""
    if isinstance(problem, Exception):
        return problem
    return RuntimeError(f"{type(problem).__name__}: {problem}")
