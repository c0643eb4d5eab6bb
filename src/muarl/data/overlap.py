"""Tasks that are nearly the same: trained on one, a policy has practised the other (law L10).

Two tasks are compared by what is to be done: the words of their goals, the facts the user holds, the
gold calls, what they put into the world. Names, personas, rewards and wordings do not count. What two
tasks share, of all that either has, is their similarity (Jaccard); so much of their entities alone
must they share as well, since tasks of one template differ in little else; and the tools that solve
them must be the same. MinHash finds the pairs worth comparing; each is then compared exactly, so that
no pair is named for nothing.
"""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice, pairwise
from typing import Any

import msgspec

from muarl.spec import RequestSpec, TaskSpec
from muarl.spoken import tokens

NEAR = 0.75
"""Similarity from which two tasks are nearly the same: a goal with one word of twelve changed is, one
with another entity among fewer than seven is not."""

_BANDS, _ROWS = 30, 5
"""A pair is compared if any band of its signatures agrees. At similarity 0.75 one in 3,000 is missed,
at 0.9 none; at 0.3, as tasks of one template come to, 13 of 14 are not even looked at."""

_PRIME = (1 << 61) - 1
_CACHED = 8192
"""Features whose hashes are kept, 5 KB each: those that the tasks of a template share."""
_WORLD_LEAVES = 100
"""Values of a task's own world that are looked at."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two tasks that are nearly the same.

    Attributes:
        first: The one that comes first.
        second: The other.
        similarity: In [`NEAR`, 1].
    """

    first: TaskSpec
    second: TaskSpec
    similarity: float

    @property
    def exact(self) -> bool:
        """Nothing that counts differs."""
        return self.similarity == 1.0


def near_duplicates(tasks: Sequence[TaskSpec]) -> Iterator[Pair]:
    """Pairs of tasks that are nearly the same, in the order of the second of them.

    A task without words, facts and gold calls is like no other.
    """
    known = [Traits.of(task) for task in tasks]
    bands: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for index, mine in enumerate(known):
        compared: set[int] = set()
        for band in _bands(mine.features):
            for other in bands[band]:
                if other not in compared:
                    compared.add(other)
                    similarity = known[other].similarity(mine)
                    if similarity >= NEAR:
                        yield Pair(tasks[other], tasks[index], similarity)
            bands[band].append(index)


@dataclass(frozen=True, slots=True)
class Traits:
    """What is to be done in a task, in pieces that can be counted.

    Attributes:
        features: Words of the goal, two in a row; wishes, facts and gold calls.
        entities: What they are about: values of facts and arguments, and what bears a figure.
        tools: Tools of the gold calls.
    """

    features: frozenset[str]
    entities: frozenset[str]
    tools: tuple[str, ...]

    @classmethod
    def of(cls, task: TaskSpec) -> Traits:
        """The traits of a task."""
        said = [" ".join(token) for token in tokens(task.goal)]
        features = {f"goal {' '.join(run)}" for run in pairwise(said)} or {
            f"goal {w}" for w in said
        }
        entities = {word.split()[1] for word in said if any(map(str.isdecimal, word))}
        for kind, name, value in _told(task):
            features.add(f"{kind} {name} {value}")
            entities |= {value} - {""}
        if task.world:
            features |= set(islice(_leaves(task.world, "world"), _WORLD_LEAVES))
        return cls(frozenset(features), frozenset(entities), tuple(c.tool for c in task.gold))

    def similarity(self, other: Traits) -> float:
        """What both have of all that either has, in [0, 1]; the least of features and entities."""
        if self.tools != other.tools:
            return 0.0
        if not (self.entities or other.entities):
            return _jaccard(self.features, other.features)
        return min(_jaccard(self.features, other.features), _jaccard(self.entities, other.entities))


def _told(task: TaskSpec) -> Iterator[tuple[str, str, str]]:
    """Kind, name and value of wishes, facts, calls and their arguments."""
    if task.user is not None:
        yield from (("fact", fact.id, fact.value.casefold()) for fact in task.user.facts)
        for request in task.user.requests:
            yield from _wished(request, "")
    for call in task.gold:
        yield "call", call.tool, ""
        for name, value in call.arguments.items():
            text = value if isinstance(value, str) else _json(value)
            yield f"argument of {call.tool}", name, text.casefold()


def _wished(request: RequestSpec, kind: str) -> Iterator[tuple[str, str, str]]:
    yield f"{kind}ask", request.ask, ""
    yield from ((f"{kind}fact", fact.id, fact.value.casefold()) for fact in request.facts)
    if request.instead is not None:
        yield from _wished(request.instead, "instead ")


def _leaves(value: Any, path: str) -> Iterator[str]:
    """Every value of a task's own world, with its place."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}")
    else:
        yield f"{path} {_json(value)}"


def _json(value: Any) -> str:
    return msgspec.json.encode(value, order="deterministic").decode()


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared)


def _bands(found: frozenset[str]) -> Iterator[tuple[int, ...]]:
    """A set's signature in bands, each with its number.

    In a value of the signature two sets agree as often as they are similar.
    """
    signature = [min(column) for column in zip(*map(_permuted, found), strict=True)]
    for band, start in enumerate(range(0, len(signature), _ROWS)):
        yield (band, *signature[start : start + _ROWS])


@lru_cache(maxsize=_CACHED)
def _permuted(feature: str) -> tuple[int, ...]:
    """A feature's hash under each permutation."""
    digest = hashlib.blake2b(feature.encode(), digest_size=7).digest()
    number = int.from_bytes(digest, "big")
    return tuple((a * number + b) % _PRIME for a, b in _permutations())


@cache
def _permutations() -> list[tuple[int, int]]:
    """The same ones always, so that the same pairs are found always."""
    rng = random.Random(0)
    count = _BANDS * _ROWS
    return [(rng.randrange(1, _PRIME), rng.randrange(_PRIME)) for _ in range(count)]
