"""What was found of dialogues, on disk beside their journal.

`verdicts.jsonl` has a line for each dialogue, in its order, `yield.json` the table of all, and
`rulings.jsonl` each ruling of a judge from the moment it was made: a judge costs more than anything else
here, so that what it found outlives a kill, and a file that for a while asks for no judge.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from muarl.errors import NoRunError, RecordError
from muarl.record import EpisodeKey
from muarl.record.saving import saving
from muarl.synth.candidate import Ruling
from muarl.synth.graph import StateGraph
from muarl.synth.verify import Verdict, Yield

FILE, RULINGS, YIELD = "verdicts.jsonl", "rulings.jsonl", "yield.json"


class _Ruled(msgspec.Struct):
    key: EpisodeKey
    ruling: Ruling


class RulingsWriter:
    """Appends rulings to a folder's file; each is on disk before the next is asked for."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / RULINGS
        self._file: BinaryIO | None = None

    def __call__(self, key: EpisodeKey, ruling: Ruling) -> None:
        """Keep one.

        Raises:
            RecordError: The disk said no.
        """
        with saving(self._path):
            if self._file is None:  # most syntheses have no judge, and get no file
                self._file = self._path.open("ab")
                self._file.write(b"\n")  # ends a line that was broken off
            self._file.write(msgspec.json.encode(_Ruled(key, ruling)) + b"\n")
            self._file.flush()

    def close(self) -> None:
        """No more are to come."""
        if self._file is not None:
            self._file.close()


def known_rulings(folder: Path) -> dict[EpisodeKey, list[Ruling]]:
    """The rulings that a folder holds; what cannot be read of them will be asked for again.

    Raises:
        RecordError: Its verdicts cannot be read.
    """
    found: defaultdict[EpisodeKey, list[Ruling]] = defaultdict(list)
    for verdict in known_verdicts(folder).values():
        found[verdict.key] += verdict.rulings
    path = folder / RULINGS
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            ruled = msgspec.json.decode(line, type=_Ruled)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
        found[ruled.key].append(ruled.ruling)
    return found


def recorded(
    folder: Path, verdicts: Sequence[Verdict], stages: Iterable[str], graph: StateGraph
) -> Yield:
    """Replace a folder's verdicts and its table; gives the table.

    Args:
        folder: The folder.
        verdicts: On all of its dialogues, in order.
        stages: Names of those that they went through; people need not be among them.
        graph: All of its dialogues, merged.

    Raises:
        RecordError: The disk said no.
    """
    table = Yield(stages)
    for verdict in verdicts:
        table.count(verdict)
    kept = [verdict.key for verdict in verdicts if verdict.kept]
    table.graph = {"made": graph.figures(), "kept": graph.figures(kept)}
    lines = b"".join(msgspec.json.encode(verdict) + b"\n" for verdict in verdicts)
    _replace(folder / FILE, lines)
    _replace(folder / YIELD, json.dumps(table.as_json(), indent=1).encode())
    return table


def _replace(path: Path, data: bytes) -> None:
    """As a whole: readers see the old one or the new one."""
    fresh = path.with_name(f"{path.name}.new")
    with saving(path):
        fresh.write_bytes(data)
        fresh.replace(path)


def stages_in(folder: Path) -> list[str]:
    """Names of the stages of a folder's table, in order; none where it cannot be read."""
    try:
        return [stage["stage"] for stage in json.loads((folder / YIELD).read_bytes())["stages"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []


def known_verdicts(folder: Path) -> dict[EpisodeKey, Verdict]:
    """The verdicts of a folder; none where it was not verified yet.

    Raises:
        RecordError: One cannot be read.
    """
    return read_verdicts(folder) if (folder / FILE).exists() else {}


def read_verdicts(folder: Path) -> dict[EpisodeKey, Verdict]:
    """The verdict on each dialogue of a folder.

    Raises:
        RecordError: There are none, or one cannot be read.
    """
    path = folder / FILE
    decoder = msgspec.json.Decoder(Verdict)
    found: dict[EpisodeKey, Verdict] = {}
    try:
        lines = path.read_bytes().splitlines()
    except (FileNotFoundError, NotADirectoryError) as missing:
        raise NoRunError(
            f"{folder} holds no {FILE}: its dialogues were not verified. Make some with: muarl synth"
        ) from missing
    for number, line in enumerate(lines, start=1):
        try:
            verdict = decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise RecordError(
                f"{path}:{number}: expected a verdict: {error}. Without that file `muarl synth --resume` "
                "looks at all dialogues anew, and reviews have to be taken again"
            ) from error
        found[verdict.key] = verdict
    return found
