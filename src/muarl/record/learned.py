"""What training made of single episodes: `learned.jsonl` of a run folder, one line an iteration.

    {"iteration": 3, "episodes": [{"id": "train/3/cancel-17/0", "turns": [0.5, 0.5],
                                   "trainer_logprobs": [[-0.1, -0.02]]}]}

A run of several iterations appends; one that is taken up writes those after its checkpoint again.
`turns` holds the advantage of each turn, as the update used it. `trainer_logprobs` holds, sample by
sample, the log-probs of its sampled tokens under the trainer's weights before the update, for the
samples that were looked at; null for others.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from muarl.errors import RecordError
from muarl.record.saving import saving

FILE = "learned.jsonl"


class Learned(msgspec.Struct, frozen=True, omit_defaults=True):
    """What training made of one episode.

    Attributes:
        id: The episode's key as text.
        turns: Advantage of each turn.
        trainer_logprobs: Per sample, one number per sampled token; None where nobody looked.
    """

    id: str
    turns: list[float] = []
    trainer_logprobs: Sequence[list[float] | None] = ()


class LearnedLine(msgspec.Struct, frozen=True):
    """A line of the file.

    Attributes:
        iteration: Whose update it was.
        episodes: That it was made from.
    """

    iteration: int
    episodes: list[Learned]


_decoder = msgspec.json.Decoder(LearnedLine)


def append_learned(path: Path, line: LearnedLine) -> None:
    """Append a line, in place of one that was torn when its writer was killed.

    Raises:
        RecordError: The disk refused.
    """
    with saving(path), path.open("a+b") as file:
        end = file.seek(0, os.SEEK_END)
        if end:
            file.seek(end - 1)
            if file.read(1) != b"\n":
                file.seek(0)
                file.truncate(file.read().rfind(b"\n") + 1)
        file.write(msgspec.json.encode(line) + b"\n")


def read_learned(path: Path) -> dict[str, Learned]:
    """Episode to what was made of it; of an iteration that a resumed run wrote again, the last.

    A run that writes no such file, as older ones, has an empty one. A half-written last line is left out.

    Raises:
        RecordError: A line that is not the last is damaged.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror})") from error
    found: dict[int, LearnedLine] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            entry = _decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            if number == len(lines):
                continue
            raise RecordError(
                f"{path}:{number}: damaged: {error}; delete the line to read the rest"
            ) from error
        found[entry.iteration] = entry
    return {one.id: one for entry in found.values() for one in entry.episodes}
