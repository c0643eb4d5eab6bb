"""Whether she still varies: metrics 21 and 22.

Episodes of a group begin alike, so their users are re-samples at the same prefix for as long as their
dialogues are the same word by word: the opening always, later turns where they happen to be.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from muarl.measure.figure import Figure, each
from muarl.measure.view import UserTurn, View

GROUP_SIZE = 8
"""Rollouts that `coverage` is told for."""


def same_prefix(views: Sequence[View]) -> list[list[UserTurn]]:
    """Turns of users that had the same dialogue behind them, by prefix; at least two of each.

    A prefix is the task, the persona and all that was said before.
    """
    found: defaultdict[Hashable, list[UserTurn]] = defaultdict(list)
    for view in views:
        said: list[str] = []
        for turn in view.user:
            if turn.heard is not None:
                said.append(turn.heard.text)
            key = (view.task, view.transcript.persona, view.transcript.user, tuple(said))
            found[key].append(turn)
            said.append(turn.text)
    return [turns for turns in found.values() if len(turns) > 1]


def repeat_share(drawn: Iterable[Hashable]) -> float:
    """Share of the commonest among several draws; 1 minus it is SCOPE's epsilon."""
    counts = Counter(drawn)
    return max(counts.values()) / counts.total()


def _repeats(kind: Callable[[UserTurn], Hashable]) -> Callable[[Sequence[View]], list[float]]:
    return lambda views: [repeat_share(map(kind, turns)) for turns in same_prefix(views)]


def _acts(view: View) -> Iterator[tuple[str, str]]:
    yield from ((turn.state, turn.act) for turn in view.user if turn.words and turn.heard)


def act_entropy(items: Iterable[tuple[str, str]]) -> float | None:
    """Entropy of acts given the state, in nats: H(act | state), weighted by how common a state is."""
    by_state: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for state, act in items:
        by_state[state][act] += 1
    total = sum(acts.total() for acts in by_state.values())
    if not total:
        return None
    return sum(acts.total() / total * entropy(acts.values()) for acts in by_state.values())


def entropy(counts: Iterable[int]) -> float:
    """Entropy of a distribution given by counts, in nats (the plug-in estimate)."""
    positive = [count for count in counts if count]
    total = sum(positive)
    return -math.fsum(c / total * math.log(c / total) for c in positive)


def coverage(behaviours: Sequence[frozenset[str]], rollouts: int = GROUP_SIZE) -> float | None:
    """Chance that a behaviour is seen in a group, mean over the behaviours that users show at all.

    A behaviour is an act; q is the share of dialogues that have it; it is seen in G rollouts with
    probability 1 - (1 - q)^G.
    """
    if not behaviours:
        return None
    counts = Counter(act for dialogue in behaviours for act in dialogue)
    if not counts:
        return None
    seen = [1 - (1 - c / len(behaviours)) ** rollouts for c in counts.values()]
    return math.fsum(seen) / len(seen)


FIGURES = (
    Figure(
        name="repeats_text",
        number=21,
        says="share of the commonest text among several draws of a user at the same prefix; 1 is "
        "collapse",
        source="SCOPE",
        unit="share",
        better="lower",
        items=_repeats(lambda turn: (" ".join(turn.words), turn.stop)),
    ),
    Figure(
        name="repeats_act",
        number=21,
        says="the same, of what she does rather than how she words it (openings have one act only, and "
        "are left out)",
        source="SCOPE",
        unit="share",
        better="compare",
        items=lambda views: [
            repeat_share(turn.act for turn in turns)
            for turns in same_prefix(views)
            if turns[0].heard is not None
        ],
    ),
    Figure(
        name="act_entropy",
        number=22,
        says="entropy of what she does given what she answers, H(act | state)",
        source="SCOPE",
        unit="nats",
        better="compare",
        items=each(_acts),
        statistic=act_entropy,
    ),
    Figure(
        name="act_coverage",
        number=22,
        says=f"chance that a behaviour is seen in {GROUP_SIZE} rollouts, 1 - (1 - q)^{GROUP_SIZE}, mean over "
        "behaviours",
        source="SCOPE",
        unit="share",
        better="higher",
        items=each(lambda view: [frozenset(turn.act for turn in view.user)] if view.user else []),
        statistic=coverage,
    ),
)
