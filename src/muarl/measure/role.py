"""Whether she stays the user and writes what a user can write: metrics 19 and 20."""

from __future__ import annotations

import re

from muarl.measure.figure import Figure, turns
from muarl.measure.view import UserTurn
from muarl.measure.words import ngrams

_ECHO = 4
"""Words in a run that count as copied."""
_ECHOED = 0.5
"""Share of her runs that the agent's last message has, from which a turn is an echo."""
_MARKER = re.compile(r"#{2,}\s*\w+\s*#{2,}|<\|\w+\|>|</?(?:think|stop|end)>|\[(?:STOP|END|DONE)\]")
_JSON = re.compile(r"^\s*(?:```(?:json)?\s*)?[{\[].*[}\]]\s*(?:```)?\s*$", re.DOTALL)


def echoes(turn: UserTurn) -> bool:
    """She says the agent's last message again; what she has to read back is shorter."""
    ours = ngrams(turn.words, _ECHO)
    if turn.heard is None or len(ours) < _ECHO:
        return False
    theirs = set(ngrams(turn.heard.words, _ECHO))
    return sum(gram in theirs for gram in ours) / len(ours) > _ECHOED


def flips_role(turn: UserTurn) -> bool:
    """She speaks as the agent would, or echoes it."""
    return "agent" in turn.cues or echoes(turn)


def breaks_format(turn: UserTurn) -> bool:
    """A marker inside what she says, several paragraphs, JSON, or nothing at all."""
    if not turn.text.strip():
        return not turn.stop
    return bool(_MARKER.search(turn.text) or "\n\n" in turn.text.strip() or _JSON.match(turn.text))


FIGURES = (
    Figure(
        name="role_flips",
        number=19,
        says="share of her turns that do what an agent does (offer help, cite its rules, look things "
        f"up, tool markup), or of whose runs of {_ECHO} words the agent's last message has more than half",
        source="tau2-bench's rules for users",
        unit="share",
        better="lower",
        items=turns(flips_role),
        turn=flips_role,
    ),
    Figure(
        name="format_errors",
        number=20,
        says="share of her turns with a stop marker or a special token inside, with several "
        "paragraphs, that are JSON, or that are empty and do not end the dialogue",
        source="tau-bench's rules for users",
        unit="share",
        better="lower",
        items=lambda views: [float(breaks_format(t)) for view in views for t in view.user],
        turn=breaks_format,
    ),
)
