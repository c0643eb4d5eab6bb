"""Why dialogues failed, by rules that a person can check on the record; no model is asked.

Each episode that did not earn the whole reward is of one kind, the first that holds:

    infrastructure   it ended in a fault of endpoint, tool server, predicate or deadline
    user_fault       the simulated user broke her contract
    rules_broken     a predicate on what the agent may do did not hold: `confirmed`, `preceded`,
                     `never_called`, `never_said`, `count` (in the reward or among the metrics)
    invented_fact    a call named what nobody had told: see `muarl.evaluate.identifiers`
    misread_result   a call gave as `x` a value that results had only under other names, while they had
                     others under `x`; or, with that tool's last answer an error, it was never called
                     again and the user was left with it
    cut_off          a cap on messages or tokens ended it
    stopped_early    it ended, and nothing in the world had changed
    wrong_outcome    it changed the world, otherwise than was asked for

The rules read the record alone, so they say what can be seen there, which need not be the only cause.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Literal

from muarl.evaluate.identifiers import first_unsaid
from muarl.record import Episode, Outcome

Kind = Literal[
    "infrastructure",
    "user_fault",
    "rules_broken",
    "invented_fact",
    "misread_result",
    "cut_off",
    "stopped_early",
    "wrong_outcome",
]

_FULL = 1 - 1e-6
_RULES = frozenset({"confirmed", "preceded", "never_called", "never_said", "count"})


def failure_of(episode: Episode) -> Kind | None:
    """The kind of an episode's failure; None for one that earned the whole reward."""
    if episode.outcome is Outcome.USER_FAULT:
        return "user_fault"
    if episode.outcome.is_fault or episode.reward is None:
        return "infrastructure"
    if episode.reward >= _FULL:
        return None
    if _broke_a_rule(episode):
        return "rules_broken"
    if first_unsaid(episode) is not None:
        return "invented_fact"
    if _misread(episode) or _ignored_an_error(episode):
        return "misread_result"
    if episode.outcome.is_truncated:
        return "cut_off"
    if not episode.changes:
        return "stopped_early"
    return "wrong_outcome"


def _broke_a_rule(episode: Episode) -> bool:
    return any(
        found.score is not None and found.score < _FULL and found.name.split(" ")[0] in _RULES
        for found in (*episode.rewards, *episode.metrics)
    )


def _misread(episode: Episode) -> bool:
    """A value taken from a result under one name, and given to a tool under another."""
    known: defaultdict[str, set[str]] = defaultdict(set)
    for turn in episode.turns:
        for call in turn.calls:
            for name, value in _named(call.arguments):
                elsewhere = any(value in values for other, values in known.items() if other != name)
                if name in known and value not in known[name] and elsewhere:
                    return True
        for result in turn.results:
            if not result.is_error:
                for name, value in _named(_read(result.content)):
                    known[name].add(value)
    return False


def _ignored_an_error(episode: Episode) -> bool:
    """The last answer of a tool was an error, and the agent only spoke after it."""
    calls = [(result.name, result.is_error) for turn in episode.turns for result in turn.results]
    said_after = bool(episode.turns) and not episode.turns[-1].calls
    return bool(calls) and calls[-1][1] and said_after and not episode.outcome.is_truncated


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _named(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Texts and numbers with the last name on the way to them; what has none is left out."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _named(below, str(key))
    elif isinstance(value, list):
        for below in value:
            yield from _named(below, name)
    elif name and isinstance(value, (str, int)) and not isinstance(value, bool) and value != "":
        yield name, str(value)
