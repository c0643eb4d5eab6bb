"""How she writes: metrics 16, 17 and 18."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from muarl.measure.figure import Figure, each, turns
from muarl.measure.view import UserTurn, View
from muarl.measure.words import ngrams, sentences, similar

_SHORT = 3
_NEAR = 0.8
"""Turns whose sets of words share so much are the same turn again."""
_MARKDOWN = re.compile(
    r"\*\*\S|^#{1,6} |^\s*(?:[-*+]|\d+[.)]) |`[^`]+`|\[[^\]]+\]\([^)]+\)", re.MULTILINE
)


def is_polite(turn: UserTurn) -> bool:
    """She uses a word of courtesy."""
    return "polite" in turn.cues


def has_markdown(turn: UserTurn) -> bool:
    """She writes lists, headings, bold, code or links."""
    return bool(_MARKDOWN.search(turn.text))


def in_sentences(turn: UserTurn) -> bool:
    """Every sentence begins with a capital or a figure and ends with a mark."""
    return all(s[0].isupper() or s[0].isdecimal() for s in sentences(turn.text)) and all(
        s[-1] in ".!?" for s in sentences(turn.text)
    )


def _lengths(view: View) -> Iterator[float]:
    yield from (float(len(turn.words)) for turn in view.user if turn.words)


def _sd(items: Sequence[float]) -> float | None:
    """Sample standard deviation; in floats, for `statistics.stdev` is exact and slow."""
    if len(items) < 2:
        return None
    mean = math.fsum(items) / len(items)
    return math.sqrt(math.fsum((x - mean) ** 2 for x in items) / (len(items) - 1))


def _p90(items: Sequence[float]) -> float:
    """The smallest length that nine tenths of the turns do not exceed."""
    return sorted(items)[math.ceil(0.9 * len(items)) - 1]


def _ratio(view: View) -> Iterator[float]:
    theirs = sum(len(turn.words) for turn in view.agent)
    if theirs:
        yield sum(len(turn.words) for turn in view.user) / theirs


def _distinct(n: int) -> Figure:
    def observe(view: View) -> Iterator[float]:
        found = [gram for turn in view.user for gram in ngrams(turn.words, n)]
        if found:
            yield len(set(found)) / len(found)

    return Figure(
        name=f"distinct_{n}",
        number=18,
        says=f"different runs of {n} words in her turns of a dialogue, over all of them",
        source="CustomerSim",
        unit="share",
        better="compare",
        items=each(observe),
    )


def _self_similarity(views: Sequence[View]) -> Iterator[float]:
    """For each pair of dialogues on a task: cosine of her words, weighted by TF-IDF.

    A document is all she says in one dialogue. The idf is smoothed, ln((1 + N) / (1 + df)) + 1 over the
    N dialogues on the task, so that words all of them have still count (Pedregosa et al. 2011,
    scikit-learn's TfidfVectorizer). Compared are neighbours in the order of the corpus: the mean over
    them is that over all pairs, at the price of N, not N squared.
    """
    documents = [Counter(word for turn in view.user for word in turn.words) for view in views]
    n = len(documents)
    df = Counter(word for document in documents for word in document)
    vectors = [
        {word: tf * (math.log((1 + n) / (1 + df[word])) + 1) for word, tf in document.items()}
        for document in documents
    ]
    for one, other in itertools.pairwise(vectors):
        dot = sum(weight * other.get(word, 0.0) for word, weight in one.items())
        norms = math.hypot(*one.values()) * math.hypot(*other.values())
        if norms:
            yield min(1.0, dot / norms)


def _near(view: View) -> Iterator[float]:
    before: list[Sequence[str]] = []
    for turn in view.user:
        if len(turn.words) > _SHORT:
            yield float(any(similar(turn.words, other) >= _NEAR for other in before))
            before.append(turn.words)


FIGURES = (
    Figure(
        name="words_per_turn",
        number=16,
        says="words in a turn of the user's",
        source="USI",
        unit="words",
        better="compare",
        items=each(_lengths),
    ),
    Figure(
        name="words_sd",
        number=16,
        says="standard deviation of the words in her turns",
        source="USI",
        unit="words",
        better="compare",
        items=each(_lengths),
        statistic=_sd,
    ),
    Figure(
        name="words_p90",
        number=16,
        says="words that nine tenths of her turns do not exceed",
        source="USI",
        unit="words",
        better="compare",
        items=each(_lengths),
        statistic=_p90,
    ),
    Figure(
        name="short_turns",
        number=16,
        says=f"share of her turns of at most {_SHORT} words",
        source="USI (29 % of people's, 1 % of a simulator's)",
        unit="share",
        better="compare",
        items=turns(lambda turn: len(turn.words) <= _SHORT),
    ),
    Figure(
        name="words_to_agents",
        number=16,
        says="her words in a dialogue, over the agent's",
        source="USI",
        unit="ratio",
        better="compare",
        items=each(_ratio),
    ),
    Figure(
        name="polite_turns",
        number=17,
        says="share of her turns with a word of courtesy",
        source="USI (15.3 % of people's, 49.0 % of GPT-4o's)",
        unit="share",
        better="compare",
        items=turns(is_polite),
        turn=is_polite,
    ),
    Figure(
        name="markdown_turns",
        number=17,
        says="share of her turns with Markdown in them",
        source="CustomerSim",
        unit="share",
        better="compare",
        items=turns(has_markdown),
        turn=has_markdown,
    ),
    Figure(
        name="complete_sentences",
        number=17,
        says="share of her turns whose sentences all begin with a capital and end with a mark",
        source="CustomerSim",
        unit="share",
        better="compare",
        items=turns(in_sentences),
    ),
    _distinct(1),
    _distinct(2),
    Figure(
        name="self_similarity",
        number=18,
        says="cosine of TF-IDF vectors of what she says in two dialogues on the same task",
        source="CustomerSim",
        unit="cosine",
        better="lower",
        items=_self_similarity,
    ),
    Figure(
        name="repeated_turns",
        number=18,
        says=f"share of her turns of more than {_SHORT} words that share {_NEAR:.0%} of their words with an "
        "earlier one",
        source="CustomerSim",
        unit="share",
        better="lower",
        items=each(_near),
    ),
)
