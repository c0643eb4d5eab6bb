"""The tag tier and the judge tier, each beside its agreement with the deterministic one.

A tag is what a simulator says itself that she did; a judgement is what a model or a person found in a
turn. Neither is proof. So neither is told without the share of turns on which it says what the words
and the ledger say, and Cohen's kappa, which takes out what would agree by chance (Cohen 1960, A
coefficient of agreement for nominal scales). A judgement that something holds must quote the turn word
by word; what does not is not counted, and that is counted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence

import msgspec

from muarl.measure.collapse import act_entropy
from muarl.measure.figure import Figure
from muarl.measure.view import UserTurn, View
from muarl.measure.words import plain

_CLASSES = {
    "accept_refusal": "request",
    "next": "request",
    "abandon": "leave",
    "partly": "tell",
    "unavailable": "request",
    "push_back": "object",
    "challenge": "object",
    "digress": "other",
    "pass": "other",
    "reveal_piece": "tell",
    "ask_clarification": "ask",
    "change_mind": "change",
    "challenge_solution": "object",
    "be_vague": "other",
}
"""Tags of scripted users, of their knobs and of FACA's strategies, as the acts that they name."""


class Agreement(msgspec.Struct, frozen=True):
    """How far two ways of reading the same turns agree.

    Attributes:
        n: Turns that both read.
        share: Of them on which both say the same; None of none.
        kappa: The same less what chance would give; None where chance alone would give all.
    """

    n: int
    share: float | None
    kappa: float | None


class TagTier(msgspec.Struct, frozen=True):
    """What the users' own tags say.

    Attributes:
        acts: Act to its share of tagged turns, by the tags.
        acts_by_words: The same by the words.
        act_entropy: H(act | state) in nats, by the tags.
        agreement: With the words, turn by turn.
    """

    acts: dict[str, float]
    acts_by_words: dict[str, float]
    act_entropy: float | None
    agreement: Agreement


class JudgeTier(msgspec.Struct, frozen=True):
    """What judges say of one figure.

    Attributes:
        value: Share of the judged turns that count.
        by_words: The same by the words, on the same turns.
        agreement: With the words, turn by turn.
        unproved: Judgements whose evidence is not in the turn; in nothing else here.
    """

    value: float | None
    by_words: float | None
    agreement: Agreement
    unproved: int


def agreement(ours: Sequence[Hashable], theirs: Sequence[Hashable]) -> Agreement:
    """How far two readings agree.

    Example:
        >>> agreement("aab", "aab").kappa, agreement("ab", "ba").kappa
        (1.0, -1.0)
    """
    n = len(ours)
    if not n:
        return Agreement(0, None, None)
    share = sum(a == b for a, b in zip(ours, theirs, strict=True)) / n
    one, other = Counter(ours), Counter(theirs)
    chance = sum(count * other[kind] for kind, count in one.items()) / n**2
    return Agreement(n, share, (share - chance) / (1 - chance) if chance < 1 else None)


def act_of_tag(turn: UserTurn) -> str:
    """The act that a tag names, as `UserTurn.act` would; "" without a tag."""
    kind = turn.tag.partition(":")[0]
    if kind in ("stop", "close"):
        return "leave" if turn.unsettled else "stop"
    return _CLASSES.get(kind, kind)


def tag_tier(views: Iterable[View]) -> TagTier | None:
    """What tags say, openings apart; None where nobody tagged anything."""
    tagged = [turn for view in views for turn in view.user if turn.tag and turn.heard]
    if not tagged:
        return None
    tags, words = [act_of_tag(turn) for turn in tagged], [turn.act for turn in tagged]
    states = [turn.state for turn in tagged]
    return TagTier(
        acts=_shares(tags),
        acts_by_words=_shares(words),
        act_entropy=act_entropy(zip(states, tags, strict=True)),
        agreement=agreement(tags, words),
    )


def _shares(acts: Sequence[str]) -> dict[str, float]:
    return {act: count / len(acts) for act, count in sorted(Counter(acts).items())}


def judge_tier(views: Iterable[View], figures: Mapping[str, Figure]) -> dict[str, JudgeTier]:
    """What judges say, by figure; of those that are counted turn by turn."""
    said: defaultdict[str, list[tuple[bool, bool]]] = defaultdict(list)
    unproved: Counter[str] = Counter()
    for view in views:
        for judgement in view.transcript.judgements:
            figure = figures.get(judgement.figure)
            if figure is None or figure.turn is None:
                continue
            turn = view.user[judgement.turn]
            quoted = plain(judgement.evidence)
            if judgement.holds and not (quoted and quoted in plain(turn.text)):
                unproved[judgement.figure] += 1
            else:
                said[judgement.figure].append((judgement.holds, figure.turn(turn)))
    return {
        name: JudgeTier(
            value=_mean([judged for judged, _ in said[name]]),
            by_words=_mean([words for _, words in said[name]]),
            agreement=agreement([a for a, _ in said[name]], [b for _, b in said[name]]),
            unproved=unproved[name],
        )
        for name in sorted({*said, *unproved})
    }


def _mean(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None
