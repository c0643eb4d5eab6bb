"""A user who says what a person said in a recorded dialogue of the same task, message by message.

She does not hear the policy: where it leads the dialogue elsewhere than the recorded agent did, her
answers may not fit. That is what people's words cost; it is for measuring a policy at its first turns,
and for comparing users, not for training.

A file holds one dialogue a line, in the form in which people's dialogues are measured; what is needed
of it is:

    {"id": "p7", "task": "cancel-1", "lines": [{"speaker": "user", "text": "Hi, ..."}, ...]}
"""

from __future__ import annotations

import random
from codecs import BOM_UTF8
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import structs

from muarl.errors import RecordError, UserError
from muarl.record import UserReply


class _Line(msgspec.Struct):
    speaker: Literal["user", "agent"]
    text: str
    act: str = ""


class _Dialogue(msgspec.Struct):
    task: str
    lines: list[_Line]


_decoder = msgspec.json.Decoder(_Dialogue)

Recorded = dict[str, list[list[UserReply]]]
"""Task to what the users of its dialogues said, in order."""


def read_replies(path: Path) -> Recorded:
    """What people said, by task.

    Raises:
        RecordError: The file cannot be read; names the line and what is wrong with it.
    """
    found: Recorded = defaultdict(list)
    try:
        lines = path.read_bytes().removeprefix(BOM_UTF8).splitlines()
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror or error}") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            dialogue = _decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise RecordError(
                f"{path}:{number}: not a dialogue: {error}. Expected one JSON object a line with "
                "`task` and `lines`, see docs/user-models.md"
            ) from error
        replies = _replies(dialogue.lines)
        if not replies:
            raise RecordError(f"{path}:{number}: nobody speaks as the user in this dialogue")
        found[dialogue.task].append(replies)
    return dict(found)


def _replies(lines: Sequence[_Line]) -> list[UserReply]:
    """Her messages; what she said in one breath is one, and with the last she leaves."""
    texts: list[list[_Line]] = []
    spoke_before = False
    for line in lines:
        if line.speaker == "user" and spoke_before:
            texts[-1].append(line)
        elif line.speaker == "user":
            texts.append([line])
        spoke_before = line.speaker == "user"
    replies = [
        UserReply("\n".join(ln.text for ln in breath), act=breath[-1].act) for breath in texts
    ]
    if len(replies) == 1:  # she has said all, and leaves when she is answered
        replies.append(UserReply(""))
    if replies:
        replies[-1] = structs.replace(replies[-1], stop=True, act=replies[-1].act or "stop")
    return replies


class ReplayUser:
    """One dialogue's recorded user; which of the task's dialogues is drawn."""

    def __init__(self, recorded: Sequence[Sequence[UserReply]], rng: random.Random) -> None:
        self._left = list(rng.choice(recorded))

    async def open(self) -> UserReply:
        return self._next()

    async def reply(self, agent_text: str) -> UserReply:
        del agent_text
        return self._next()

    def _next(self) -> UserReply:
        if not self._left:
            raise UserError("the recorded dialogue is over, and she was asked to go on")
        return self._left.pop(0)
