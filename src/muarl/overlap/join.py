"""Which sets of words have much in common, without comparing all with all.

Words weigh what they tell: those in few sets much, those in all of them little. So two tasks of one template
that name different entities are not alike, and two texts that share rare words are, whatever they are
filled up with. The similarity is the weighted Jaccard coefficient: the weight of what both have, of the
weight of what either has; a word weighs ln(1 + n / d) squared, where d of all n sets have it. (The square
of the inverse document frequency is what a word adds to the product of two tf-idf vectors.)

The join is exact. With words in order of their weight, two sets of similarity t share a word among the
heaviest of each that make up the share 1 - t of its weight (prefix filtering: Chaudhuri, Ganti and
Kaushik, ICDE 2006). Only such pairs are looked at, and only those whose weights can still come to t.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

Sets = Sequence[frozenset[str]]

_SLACK = 1e-9
"""Sums of weights in another order differ by less."""


class Match(NamedTuple):
    """A set of the first sequence and one of the second, by position, and how alike they are."""

    first: int
    second: int
    similarity: float


def matches(first: Sets, second: Sets, threshold: float) -> Iterator[Match]:
    """All pairs whose similarity is at least `threshold`, by their place in `second`; empty sets are in none.

    Args:
        first: Sets of words.
        second: Those that they are compared with.
        threshold: In (0, 1].
    """
    weights = rarity(first, second)
    heaviest = sorted(weights, key=lambda word: (-weights[word], word))
    rank = {word: place for place, word in enumerate(heaviest)}
    weight = [weights[word] for word in heaviest]
    known = [_Ranked.of(words, rank, weight, threshold) for words in first]
    postings: defaultdict[int, list[int]] = defaultdict(list)
    for index, one in enumerate(known):
        for word in one.prefix:
            postings[word].append(index)
    for index, words in enumerate(second):
        mine = _Ranked.of(words, rank, weight, threshold)
        shared: defaultdict[int, float] = defaultdict(float)
        for word in mine.prefix:
            heavy = weight[word]
            for other in postings.get(word, ()):
                shared[other] += heavy
        for other in sorted(shared):
            theirs = known[other]
            both = mine.total + theirs.total
            # Of similarity t is whose shared weight is t / (1 + t) of the weight of both.
            needed = threshold / (1 + threshold) * both - _SLACK
            # What else both have lies behind one and the same of the two prefixes.
            if shared[other] + max(mine.rest, theirs.rest) < needed:
                continue
            common = sum(weight[word] for word in mine.words & theirs.words)
            similarity = common / (both - common)
            if similarity >= threshold - _SLACK:
                yield Match(other, index, min(similarity, 1.0))


def rarity(*groups: Sets) -> dict[str, float]:
    """What each word of some sets weighs."""
    count = sum(map(len, groups))
    found = Counter(word for sets in groups for words in sets for word in words)
    return {word: math.log1p(count / times) ** 2 for word, times in found.items()}


class _Ranked(NamedTuple):
    """A set of words, each as its place in the order of weights.

    Attributes:
        words: All of them.
        prefix: The heaviest.
        total: The weight of all.
        rest: The weight of those that are not in the prefix.
    """

    words: frozenset[int]
    prefix: list[int]
    total: float
    rest: float

    @classmethod
    def of(
        cls, words: frozenset[str], rank: dict[str, int], weight: list[float], threshold: float
    ) -> _Ranked:
        ranks = sorted(rank[word] for word in words)
        total = rest = sum(weight[word] for word in ranks)
        prefix = []
        for word in ranks:
            if rest < threshold * total - _SLACK:
                break
            prefix.append(word)
            rest -= weight[word]
        return cls(frozenset(ranks), prefix, total, max(rest, 0.0))
