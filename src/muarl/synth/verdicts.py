"""Verdicts on disk: `verdicts.jsonl` beside the journal, a line for each dialogue, in its order."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from muarl.errors import RecordError
from muarl.record import EpisodeKey
from muarl.record.saving import saving
from muarl.synth.verify import Verdict

FILE = "verdicts.jsonl"


def write_verdicts(folder: Path, verdicts: Iterable[Verdict]) -> None:
    """Replace a folder's verdicts, as a whole.

    Raises:
        RecordError: The disk said no.
    """
    path, fresh = folder / FILE, folder / f"{FILE}.new"
    with saving(path):
        fresh.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in verdicts))
        fresh.replace(path)


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
    except FileNotFoundError as missing:
        raise RecordError(
            f"{folder} holds no {FILE}: its dialogues were not verified. Make some with: muarl synth"
        ) from missing
    for number, line in enumerate(lines, start=1):
        try:
            verdict = decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise RecordError(f"{path}:{number}: expected a verdict: {error}") from error
        found[verdict.key] = verdict
    return found
