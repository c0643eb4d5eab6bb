"""Where a run stands: its phases, what its dialogues do, what was said last; and the file of it.

One picture for three who look: the terminal of the run itself, a log, and `muarl top` in another
process, which reads it from `now.json` in the run's folder.
"""

from __future__ import annotations

import os
import platform
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from muarl.cli._printable import in_one_line, printable
from muarl.cli._status import brief, status_lines
from muarl.errors import NoRunError, RecordError
from muarl.helper_thread import helper_thread
from muarl.observe import Counters

FILE = "now.json"
_RATES_OVER_S = 10.0
_NOTES = 5
"""Of the last ones."""
_EVERY_S = 1.0


class Phase(msgspec.Struct):
    """One stage of a run.

    Attributes:
        name: Such as "GRPO".
        total: Units it has.
        done: Units that are done.
        seconds: How long it has taken, up to now or to its end.
        figures: What was last said beside it: "reward 0.414".
    """

    name: str
    total: int
    done: int = 0
    seconds: float = 0.0
    figures: str = ""


class Standing(msgspec.Struct):
    """Where a run stands at one moment.

    Attributes:
        at: When, in seconds since 1970.
        host: The machine of its process.
        pid: That process.
        phases: Those that ended, and the present one.
        dialogues: Name to line on the dialogues of the present phase (`_status.status_lines`).
        notes: Lines that were worth keeping, the last ones.
    """

    at: float
    host: str
    pid: int
    phases: list[Phase]
    dialogues: dict[str, str]
    notes: list[str]

    @property
    def is_gone(self) -> bool:
        """Whether its process was on this machine and is there no more."""
        if self.host != platform.node():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
        return False


class Course:
    """Told of a run's progress (a `muarl.train.progress.Progress`); says where it stands.

    It may be asked from another thread than it is told in.
    """

    def __init__(self, counters: Counters, clock: Callable[[], float] = time.monotonic) -> None:
        self._counters = counters
        self._clock = clock
        self._before = counters.snapshot()
        self._recent = deque([self._before])
        self._phases: list[Phase] = []
        self._begun = clock()
        self._notes: deque[str] = deque(maxlen=_NOTES)
        self._asked = threading.Lock()  # the terminal's thread and the file's both ask

    def phase(self, name: str, total: int) -> None:
        self.finish()
        with self._asked:
            self._before = self._counters.snapshot()  # what is said of dialogues counts from now on
            self._recent = deque([self._before])
            self._begun = self._clock()
            self._phases.append(Phase(in_one_line(name), total))

    def advance(self, done: int, **figures: Any) -> None:
        if self._phases:
            present = self._phases[-1]
            present.done, present.figures = done, _words(figures)
            present.seconds = self._clock() - self._begun

    def note(self, text: str) -> None:
        self._notes.append(printable(text))

    def finish(self) -> None:
        """The present phase is done."""
        if self._phases:
            present = self._phases[-1]
            if present.done < present.total:
                present.seconds = self._clock() - self._begun
            present.done = present.total

    def brief(self) -> str:
        """What was last said beside the present phase, and a few words on its dialogues."""
        words = [self._phases[-1].figures] if self._phases else []
        words.append(brief(self._counters.snapshot().since(self._before)))
        return "  ".join(filter(None, words))

    def standing(self) -> Standing:
        """Where it stands now."""
        with self._asked:
            now = self._counters.snapshot()
            while now.seconds - self._recent[0].seconds > _RATES_OVER_S and len(self._recent) > 1:
                self._recent.popleft()
            lines = status_lines(now.since(self._before), now.since(self._recent[0]))
            self._recent.append(now)
            if self._phases and self._phases[-1].done < self._phases[-1].total:
                self._phases[-1].seconds = self._clock() - self._begun
            phases = [Phase(*msgspec.structs.astuple(each)) for each in self._phases]
        return Standing(time.time(), platform.node(), os.getpid(), phases, lines, list(self._notes))


@contextmanager
def written(course: Course, folder: Path) -> Iterator[None]:
    """Keep `now.json` of a run's folder as the run stands, once a second, while this is open.

    From a thread of its own: the event loop may be busy. A disk that refuses it does not end the run.
    """
    path = folder / FILE

    def write() -> None:
        fresh = path.with_name(f"{FILE}.new")
        with suppress(OSError):
            fresh.write_bytes(msgspec.json.encode(course.standing()))
            fresh.replace(path)

    def keep_writing(ended: threading.Event) -> None:
        write()
        while not ended.wait(_EVERY_S):
            write()

    try:
        with helper_thread(keep_writing, "muarl-now"):
            yield
    finally:
        write()


def read_standing(folder: Path) -> Standing | None:
    """What a run's folder says of where it stands; None where it says nothing that can be read."""
    try:
        return require_standing(folder)
    except RecordError:
        return None


def require_standing(folder: Path) -> Standing:
    """Likewise, where it has to say something.

    Raises:
        NoRunError: The folder says nothing of it.
        RecordError: What it says is damaged.
    """
    path = folder / FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=Standing)
    except (FileNotFoundError, NotADirectoryError) as missing:
        raise NoRunError(
            f"{folder}: nothing there says where a run stands: expected the folder of a run that "
            "`muarl train`, `rollout`, `eval` or `synth` is writing, or has written"
        ) from missing
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(
            f"{path}: damaged: expected where a run stands ({error}). A run that goes on writes it anew "
            "each second; of one that has ended the rest can be read: muarl report"
        ) from error


def _words(figures: dict[str, Any]) -> str:
    return "  ".join(
        f"{name} {value:.3f}" if isinstance(value, float) else f"{name} {value}"
        for name, value in figures.items()
        if value is not None
    )
