"""Transcripts in a line or two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muarl.measure import CATALOGUE, Line, Transcript, View
from muarl.measure.transcript import Fact, Goal, ToolUse

DO = ToolUse("do", {"order_id": "W41"})
ORDER = Fact("order_id", "W41")
EMAIL = Fact("email", "ann@post.example", "on_request")
PIN = Fact("pin", "7733", "never")
CITY = Fact("city", "oslo", others=("oslo", "rome", "lima"))


def said(*lines: str, task: str = "t", number: int = 0, **fields: Any) -> Transcript:
    """A transcript of lines by turns, the user first; `[do] text` does it first, a last `.` line stops.

    "text ###" is a user's line that ends the dialogue.
    """
    found = []
    for place, text in enumerate(lines):
        uses: Sequence[ToolUse] = ()
        if text.startswith("[do]"):
            uses, text = (DO,), text[4:].strip()
        stop = text.endswith("###")
        speaker = "agent" if place % 2 else "user"
        found.append(Line(speaker, text.removesuffix("###").strip(), stop=stop, uses=tuple(uses)))
    defaults: dict[str, Any] = {
        "facts": (EMAIL,),
        "goals": (Goal(facts=(ORDER,), calls=(DO,)),),
    }
    return Transcript(id=f"{task}/{number}", task=task, lines=tuple(found), **(defaults | fields))


def items(name: str, *transcripts: Transcript) -> list[Any]:
    """What dialogues add to a figure."""
    return list(CATALOGUE[name].items([View(t) for t in transcripts]))


def value(name: str, *transcripts: Transcript) -> float | None:
    """A figure of dialogues on one task."""
    return CATALOGUE[name].value(items(name, *transcripts))
