"""Dialogues in JSON lines: people's, or anybody's that are not in a journal.

One dialogue a line, a `Transcript`; `docs/user-metrics.md` shows one. Who speaks twice in a row is taken
to have said it in one breath; what an agent says first, a greeting, is left out.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import structs

from muarl.errors import RecordError, did_you_mean
from muarl.measure.catalogue import BY_TURN
from muarl.measure.transcript import Line, Transcript
from muarl.opened_file import opened_file
from muarl.record import Outcome

_decoder = msgspec.json.Decoder(Transcript)
_OUTCOMES = [outcome.value for outcome in Outcome]


def read_dialogues(path: Path) -> Iterator[Transcript]:
    """The dialogues of a file.

    Raises:
        RecordError: It cannot be read; names the line and what is wrong with it.
    """
    seen: dict[str, int] = {}
    try:
        with opened_file(path) as file:
            for number, line in enumerate(file, start=1):
                if number == 1:
                    line = line.removeprefix(BOM_UTF8)
                if line.strip():
                    found = _read(line, f"{path}:{number}")
                    if seen.setdefault(found.id, number) != number:
                        raise RecordError(
                            f"{path}:{number}: dialogue {found.id!r} is there already, in line "
                            f"{seen[found.id]}"
                        )
                    yield found
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror or error}") from error


def _read(line: bytes, at: str) -> Transcript:
    try:
        found = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError(
            f"{at}: not a dialogue: {error}. Expected one JSON object a line, see docs/user-metrics.md"
        ) from error
    if found.outcome not in _OUTCOMES:
        raise RecordError(f"{at}: unknown outcome {found.outcome!r}; one of {', '.join(_OUTCOMES)}")
    if not found.lines:
        raise RecordError(f"{at}: dialogue {found.id!r} has no lines")
    lines = joined(found.lines)
    if lines[0].speaker == "agent":
        lines = lines[1:]
    num_user = sum(line.speaker == "user" for line in lines)
    if not num_user:
        raise RecordError(f"{at}: nobody speaks as the user in dialogue {found.id!r}")
    for judgement in found.judgements:
        if judgement.turn >= num_user:
            raise RecordError(
                f"{at}: a judgement of turn {judgement.turn}; the user has {num_user} (from 0)"
            )
        if judgement.figure not in BY_TURN:
            raise RecordError(
                f"{at}: a judgement of {judgement.figure!r}, which is no figure that is counted turn by "
                f"turn{did_you_mean(judgement.figure, BY_TURN)}"
            )
    return structs.replace(found, lines=lines)


def joined(lines: tuple[Line, ...]) -> tuple[Line, ...]:
    """The same lines with neighbours of one speaker made one.

    Example:
        >>> [line.text for line in joined((Line("user", "Hi."), Line("user", "My lamp broke.")))]
        ['Hi. My lamp broke.']
    """
    found: list[Line] = []
    for line in lines:
        if found and found[-1].speaker == line.speaker:
            found[-1] = _together(found[-1], line)
        else:
            found.append(line)
    return tuple(found)


def _together(one: Line, other: Line) -> Line:
    return structs.replace(
        one,
        text=f"{one.text} {other.text}".strip(),
        act=one.act or other.act,
        stop=one.stop or other.stop,
        uses=(*one.uses, *other.uses),
        seconds=_sum(one.seconds, other.seconds),
        cost=_sum(one.cost, other.cost),
    )


def _sum(one: float | None, other: float | None) -> float | None:
    known = [x for x in (one, other) if x is not None]
    return sum(known) if known else None
