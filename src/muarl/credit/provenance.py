"""Which turn's answer the arguments of a call came from: who made use of whom.

A value is an argument of a call, or an item in one, that is a text or a number. It came from the first
turn in whose answer (tool results, the user's reply) it stands, whatever its spelling
(`muarl.spoken`), unless it stood in the user's opening already. True and False, and what the policy
made up itself, come from nowhere. Needs no judge: only the record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from muarl.record import Episode, Turn
from muarl.spoken import Reading, read


class Use(NamedTuple):
    """A turn that made use of what an earlier one was answered.

    Attributes:
        source: The turn that was answered.
        user: The turn that called with it.
        failed: A call with it was answered with an error.
    """

    source: int
    user: int
    failed: bool


def uses(episode: Episode) -> list[Use]:
    """Each pair of turns once; failed where any of its calls failed."""
    heard = [read(episode.opening.text)]
    found: dict[tuple[int, int], bool] = {}
    for position, turn in enumerate(episode.turns):
        for call, result in zip(turn.calls, turn.results, strict=False):
            for value in _values(call.arguments):
                source = _first(heard, read(value)) - 1  # the opening is no turn's doing
                if source >= 0:
                    pair = (source, position)
                    found[pair] = found.get(pair, False) or result.is_error
        heard.append(read(answer_of(turn)))
    return [Use(*pair, failed) for pair, failed in found.items()]


def unheard(episode: Episode) -> bool:
    """Whether a call that failed had an argument that nobody had said: no rule, no user, no tool.

    What the tools' descriptions name, such as the values that a field may have, counts as said.
    """
    said = [read(episode.system), read(episode.opening.text)]
    said += [read(f"{tool.description} {tool.parameters}") for tool in episode.tools]
    for turn in episode.turns:
        for call, result in zip(turn.calls, turn.results, strict=False):
            for wanted in map(read, _values(call.arguments) if result.is_error else ()):
                if wanted.tokens and not any(text.may_say(wanted) for text in said):
                    return True
        said.append(read(answer_of(turn)))
    return False


def answer_of(turn: Turn) -> str:
    """All that answered a turn's message: tools, or the user."""
    texts = [result.content for result in turn.results]
    if turn.reply is not None:
        texts.append(turn.reply.text)
    return "\n".join(texts)


def _first(heard: Sequence[Reading], wanted: Reading) -> int:
    """Where it was heard first; 0 (the opening, or nowhere) if it says nothing or was not heard."""
    return next((i for i, said in enumerate(heard) if said.may_say(wanted)), 0)


def _values(argument: Any) -> Iterator[str]:
    match argument:
        case dict():
            for below in argument.values():
                yield from _values(below)
        case list():
            for below in argument:
                yield from _values(below)
        case bool() | None:
            return
        case str() | int() | float():
            yield str(argument)
