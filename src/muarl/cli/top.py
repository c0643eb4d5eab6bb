"""`muarl top RUN`: where a run stands, from another terminal, while it goes on.

What the run itself shows, the reward of its iterations, and what was said last. It reads the run's folder
and changes nothing in it; Ctrl-C ends the watching, not the run. Where stdout is no terminal a line is
printed every ten seconds. It ends when the run has.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
from rich.console import Console, Group, RenderableType
from rich.text import Text

from muarl.cli._answer import answer, lent_stdout
from muarl.cli._display import LiveView, drawn
from muarl.cli._printable import printable
from muarl.cli._standing import Standing, read_standing, require_standing
from muarl.cli._telling import redraws
from muarl.errors import RecordError

_EVERY_S = 0.5
_SECONDS_PER_LINE = 10.0
_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 40
"""Characters of the line of rewards."""
_SILENCE_S = 15.0
"""It says where it stands once a second."""
_LAST_BYTES = 65_536
"""Of the log, in which its last line must be."""
_ENDS = {
    "run_ends": "the run has ended",
    "run_stops": "the run was stopped",
    "run_fails": "the run has failed",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a run")
    parser.add_argument("--once", action="store_true", help="show it once, and end")
    parser.add_argument("--json", action="store_true", help="print it once, as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Show where the run stands until it has ended."""
    seen = Watched(args.run)
    if args.json:
        answer(json.dumps(seen.figures()))
    elif args.once:
        answer(_plain(seen.drawn()))
    else:
        with lent_stdout():
            if isinstance(sys.stdout, io.TextIOWrapper):  # a terminal that is told to be ASCII
                sys.stdout.reconfigure(errors="backslashreplace")
            console = Console(file=sys.stdout)
        if redraws(console.file):
            with LiveView(seen.drawn, console).shown():
                _wait(lambda: seen.ended is None)
        else:
            _say_lines(seen)
    return 0


class Watched:
    """A run's folder, looked at from outside.

    Args:
        folder: Of the run.

    Raises:
        NoRunError: No run that can be watched was begun there.
        RecordError: A file of it is damaged.
    """

    def __init__(self, folder: Path) -> None:
        from muarl.record.odd_files import refuse_odd_files
        from muarl.train.run_folder import RunFolder

        self._folder = RunFolder(folder)
        refuse_odd_files(folder)
        self._last = require_standing(folder)

    @property
    def standing(self) -> Standing:
        """Where it stood last."""
        self._last = read_standing(self._folder.path) or self._last
        return self._last

    @property
    def ended(self) -> str | None:
        """How it ended, in words; None while it goes on."""
        standing = self.standing  # read first: it is written until after the log's last line
        last = _last_event(self._folder.events)
        if last in _ENDS:
            return _ENDS[last]
        if standing.is_gone:
            return "the run is gone: its process was killed; `--resume` goes on with it"
        return None

    @property
    def silent_s(self) -> float:
        """Seconds for which a run that goes on has said nothing, if that is longer than it ever is."""
        silent = time.time() - self._last.at
        return silent if silent > _SILENCE_S else 0.0

    @property
    def rewards(self) -> list[float]:
        """Mean reward of each iteration so far.

        Raises:
            RecordError: A line of its metrics is damaged.
        """
        lines = (line for line in self._folder.lines() if line["kind"] == "iteration")
        means = (line.get("reward_mean") for line in lines)
        return [float(mean) for mean in means if isinstance(mean, int | float)]

    def figures(self) -> dict[str, object]:
        """All of it, for a program."""
        standing = msgspec.to_builtins(self.standing)
        return {**standing, "rewards": self.rewards, "ended": self.ended}

    def drawn(self) -> RenderableType:
        """All of it, for a terminal."""
        return Group(*self._parts())

    def _parts(self) -> Iterator[RenderableType]:
        standing, ended = self.standing, self.ended
        yield drawn(standing)
        try:
            rewards = self.rewards
        except RecordError as problem:  # the rest can be told
            rewards = []
            yield Text(printable(str(problem)), style="red", no_wrap=True, overflow="ellipsis")
        if rewards:
            line = Text(no_wrap=True, overflow="ellipsis")
            line.append(f"{'reward':<11}", style="dim")
            line.append(f"{sparkline(rewards, _WIDTH)}  {rewards[0]:.3f} to {rewards[-1]:.3f}")
            yield line
        for note in standing.notes:
            yield Text(note, style="dim", no_wrap=True, overflow="ellipsis")
        if ended is not None:
            yield Text(ended, style="bold")
        elif self.silent_s:
            yield Text(f"it has said nothing for {self.silent_s:.0f} s", style="red")


def sparkline(values: Sequence[float], width: int) -> str:
    """Numbers as bars between the least and the most of them, the mean of neighbours where need be.

    Example:
        >>> sparkline([0.0, 0.5, 1.0], 40)
        '▁▅█'
    """
    size = -(-len(values) // width)
    means = [sum(part) / len(part) for part in _parts_of(values, size)]
    low, span = min(means), (max(means) - min(means)) or 1.0
    return "".join(_BARS[round((mean - low) / span * (len(_BARS) - 1))] for mean in means)


def _parts_of(values: Sequence[float], size: int) -> Iterator[Sequence[float]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]


def _say_lines(seen: Watched) -> None:
    said = 0.0
    while (ended := seen.ended) is None:
        if time.monotonic() - said >= _SECONDS_PER_LINE:
            said = time.monotonic()
            answer(_in_a_line(seen.standing))
        time.sleep(_EVERY_S)
    answer(_in_a_line(seen.standing))
    answer(ended)


def _in_a_line(standing: Standing) -> str:
    if not standing.phases:
        return "nothing has begun yet"
    phase = standing.phases[-1]
    words = [f"{phase.name}: {phase.done:,}/{phase.total:,}", phase.figures]
    words.append(standing.dialogues.get("rates", ""))
    if "success" in standing.dialogues:
        words.append(f"success {standing.dialogues['success']}")
    return "  ".join(filter(None, words))


def _plain(shown: RenderableType) -> str:
    console = Console(width=200, color_system=None)
    with console.capture() as captured:
        console.print(shown)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def _wait(goes_on: Callable[[], bool]) -> None:
    while goes_on():
        time.sleep(_EVERY_S)


def _last_event(log: Path) -> str:
    """What the last whole line of a run's log is about; "" where there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(file.seek(0, 2) - _LAST_BYTES, 0))
            lines = file.read().split(b"\n")[:-1]
        return str(msgspec.json.decode(lines[-1])["event"]) if lines else ""
    except (OSError, msgspec.DecodeError, RecursionError, KeyError, TypeError):
        return ""
