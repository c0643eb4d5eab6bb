"""What two sets have in common, item by item: the same, nearly the same words, the same entities."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from muarl.overlap.items import Item
from muarl.overlap.join import matches, rarity

WORDS = 0.45
"""Similarity of words from which two items are nearly the same."""
ENTITIES = 0.5
"""Likewise, of entities."""
_AT_LEAST = 2
"""Entities that two items must share; one, such as a user's name, they may have by chance."""

Level = Literal["exact", "words", "entities"]

_LEVELS: tuple[Level, ...] = ("exact", "words", "entities")


@dataclass(frozen=True, slots=True)
class Shared:
    """An item of the second set, and the one of the first that it is most like.

    Attributes:
        item: Its name.
        like: The other's.
        words: How alike their words are, in [0, 1].
        entities: How alike what they name is.
        levels: On which levels some item of the first set is like it.
    """

    item: str
    like: str
    words: float
    entities: float
    levels: tuple[Level, ...]


@dataclass(frozen=True)
class Overlap:
    """What a second set shares with a first.

    Attributes:
        first: Items in the first.
        second: Items in the second.
        pairs: Items of the second that are like one of the first, in their order.
    """

    first: int
    second: int
    pairs: tuple[Shared, ...]

    @property
    def counts(self) -> Mapping[Level, int]:
        """Level to the items of the second set that are like one of the first on it."""
        return {level: sum(level in pair.levels for pair in self.pairs) for level in _LEVELS}

    def __str__(self) -> str:
        of_them = ", ".join(
            f"{count} {said}"
            for (_, count), said in zip(
                self.counts.items(),
                ("exactly the same", "alike in words", "alike in entities"),
                strict=True,
            )
        )
        return f"{len(self.pairs)} of {self.second} are like one of {self.first} ({of_them})"


def between(
    first: Sequence[Item],
    second: Sequence[Item],
    *,
    words: float = WORDS,
    entities: float = ENTITIES,
) -> Overlap:
    """Compare two sets.

    Words and entities count the more, the rarer they are in both sets; see `muarl.overlap.join`.

    Args:
        first: What is compared with, such as what is trained on.
        second: What is looked at, item by item.
        words: Similarity of words from which two items are nearly the same.
        entities: Likewise, of entities, of which they must share two.
    """
    in_words = [item.words for item in first], [item.words for item in second]
    in_entities = [item.entities for item in first], [item.entities for item in second]
    found: dict[int, dict[int, set[Level]]] = {}
    same: dict[str, int] = {}
    for index, item in enumerate(first):
        for key in item.same:
            same.setdefault(key, index)
    for index, item in enumerate(second):
        for key in item.same & same.keys():
            found.setdefault(index, {}).setdefault(same[key], set()).add("exact")
    for other, index in _played(first, second):
        found.setdefault(index, {}).setdefault(other, set()).add("exact")
    for index, other in _played(second, first):
        found.setdefault(index, {}).setdefault(other, set()).add("exact")
    for other, index, _ in matches(*in_words, words):
        found.setdefault(index, {}).setdefault(other, set()).add("words")
    for other, index, _ in matches(*in_entities, entities):
        if len(first[other].entities & second[index].entities) >= _AT_LEAST:
            found.setdefault(index, {}).setdefault(other, set()).add("entities")
    of_words, of_entities = rarity(*in_words), rarity(*in_entities)
    pairs = []
    for index in sorted(found):
        mine = second[index]
        alike = []
        for other, levels in found[index].items():
            theirs = first[other]
            by_words = _similarity(theirs.words, mine.words, of_words)
            by_entities = _similarity(theirs.entities, mine.entities, of_entities)
            alike.append(("exact" in levels, by_words + by_entities, -other, by_words, by_entities))
        _, _, other, by_words, by_entities = max(alike)
        levels = {level for of_pair in found[index].values() for level in of_pair}
        ordered = tuple(level for level in _LEVELS if level in levels)
        pairs.append(Shared(mine.id, first[-other].id, by_words, by_entities, ordered))
    return Overlap(len(first), len(second), tuple(pairs))


def _played(tasks: Sequence[Item], dialogues: Sequence[Item]) -> Iterator[tuple[int, int]]:
    """Tasks and dialogues that make all of their gold calls, by position."""
    often = Counter(call for task in tasks for call in task.gold)
    by_rarest: defaultdict[str, list[int]] = defaultdict(list)
    for index, task in enumerate(tasks):
        if task.gold:
            by_rarest[min(task.gold, key=lambda call: (often[call], call))].append(index)
    for index, dialogue in enumerate(dialogues):
        for call in sorted(dialogue.made & by_rarest.keys()):
            yield from ((at, index) for at in by_rarest[call] if tasks[at].gold <= dialogue.made)


def _similarity(one: frozenset[str], other: frozenset[str], weight: Mapping[str, float]) -> float:
    either = sum(weight[word] for word in one | other)
    return sum(weight[word] for word in one & other) / either if either else 0.0
