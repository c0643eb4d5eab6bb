"""Tasks that are nearly the same: trained on one, a policy has practised the other (law L10).

Two tasks are compared by what is to be done in them: what the user wishes and knows, the gold calls,
what they put into the world, what a reward of their own asks for. Where that is the same the tasks are,
however their goals are worded; names, personas and wordings do not count. What two tasks share of all
that either has is their similarity (Jaccard), with the words of their goals or without them, whichever
is more alike; so much of their entities alone must they share as well, since tasks of one template
differ in little else; and the tools that solve them must be the same. MinHash finds the pairs worth
comparing; each is then compared exactly, so that no pair is named for nothing.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice, pairwise
from typing import Any

import msgspec

from muarl.spec import RequestSpec, TaskSpec, UserGoalSpec
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
Band = tuple[Any, ...]
"""A kind, a number, and values: what two tasks that are nearly the same have in common."""

_WORLD_LEAVES = 100
"""Values of a task's own world that are looked at."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two tasks that are nearly the same.

    Attributes:
        first: The one that comes first.
        second: The other.
        similarity: In [`NEAR`, 1].
        exact: The same is to be done in both.
    """

    first: TaskSpec
    second: TaskSpec
    similarity: float
    exact: bool


class NearDuplicates:
    """Tasks seen so far, and which of them another is nearly the same as."""

    def __init__(self) -> None:
        self._tasks: list[TaskSpec] = []
        self._traits: list[Traits] = []
        self._bands: defaultdict[Band, list[int]] = defaultdict(list)

    def add(self, task: TaskSpec) -> None:
        """A task was seen."""
        traits = Traits.of(task)
        self._add(task, traits, list(_bands(traits)))

    def like(self, task: TaskSpec) -> list[Pair]:
        """Pairs of those seen and a task; one without words, facts and gold calls is like no other."""
        traits = Traits.of(task)
        return self._like(task, traits, list(_bands(traits)))

    def of(self, task: TaskSpec) -> list[Pair]:
        """Pairs of those seen and a task, which counts as seen from then on."""
        traits = Traits.of(task)
        bands = list(_bands(traits))
        found = self._like(task, traits, bands)
        self._add(task, traits, bands)
        return found

    def _add(self, task: TaskSpec, traits: Traits, bands: Sequence[Band]) -> None:
        for band in bands:
            self._bands[band].append(len(self._tasks))
        self._tasks.append(task)
        self._traits.append(traits)

    def _like(self, task: TaskSpec, traits: Traits, bands: Sequence[Band]) -> list[Pair]:
        near = dict.fromkeys(other for band in bands for other in self._bands.get(band, ()))
        found: list[Pair] = []
        for other in near:
            theirs = self._traits[other]
            similarity = theirs.similarity(traits)
            if similarity >= NEAR:
                found.append(Pair(self._tasks[other], task, similarity, theirs.deed == traits.deed))
        return found


def near_duplicates(tasks: Iterable[TaskSpec]) -> Iterator[Pair]:
    """Pairs of tasks that are nearly the same, in the order of the second of them."""
    seen = NearDuplicates()
    for task in tasks:
        yield from seen.of(task)


@dataclass(frozen=True, slots=True)
class Traits:
    """What is to be done in a task, in pieces that can be counted.

    Attributes:
        deed: As of `deed_of`.
        deeds: Wishes, facts, gold calls, the task's own world and reward.
        goal: Words of the goal, two in a row.
        features: Both.
        entities: What the deeds are about: values of facts and arguments.
        mentioned: Those, and what bears a figure in the goal.
        situation: What the user wants and knows in which world, whatever the gold calls are.
        calls: The gold calls.
        tools: Tools of the gold calls.
    """

    deed: str
    deeds: frozenset[str]
    goal: frozenset[str]
    features: frozenset[str]
    entities: frozenset[str]
    mentioned: frozenset[str]
    situation: str
    calls: frozenset[str]
    tools: tuple[str, ...]

    @classmethod
    def of(cls, task: TaskSpec) -> Traits:
        """The traits of a task."""
        said = [" ".join(token) for token in tokens(words_of(task))]
        goal = frozenset(f"goal {' '.join(run)}" for run in pairwise(said)) or frozenset(
            f"goal {word}" for word in said
        )
        told = list(_told(task))
        deeds = {f"{kind} {name} {value}" for kind, name, value in told}
        brought = islice(_values(task.world), _WORLD_LEAVES)
        deeds |= {f"world{path} {_json(value)}" for path, value in brought}
        deeds |= {f"wanted {part}" for part in _wanted(task)}
        entities = frozenset(value for _, _, value in told if value)
        figures = {word.split()[1] for word in said if any(map(str.isdecimal, word))}
        return cls(
            deed=deed_of(task),
            deeds=frozenset(deeds),
            goal=goal,
            features=goal | deeds,
            entities=entities,
            mentioned=entities | figures,
            situation=_situation_of(task),
            calls=frozenset(_json([call.by, call.tool, call.arguments]) for call in task.gold),
            tools=tuple(call.tool for call in task.gold),
        )

    def similarity(self, other: Traits) -> float:
        """What both have of all that either has, in [0, 1]; the least of features and entities."""
        if not (self.features or other.features):
            return 0.0
        if self.deed == other.deed or self._is_as(other):
            return 1.0
        if self.tools != other.tools:
            return 0.0
        in_words = jaccard(self.features, other.features)
        if self.mentioned or other.mentioned:
            in_words = min(in_words, jaccard(self.mentioned, other.mentioned))
        if not (self.entities and other.entities):
            return in_words
        in_deeds = min(jaccard(self.deeds, other.deeds), jaccard(self.entities, other.entities))
        return max(in_words, in_deeds)

    def _is_as(self, other: Traits) -> bool:
        """Whether they differ at most in that one has gold calls that the other leaves out.

        Where one has none at all, something else is to be done.
        """
        fewer, more = sorted((self.calls, other.calls), key=len)
        return bool(fewer) and fewer <= more and self.situation == other.situation


def words_of(task: TaskSpec) -> str:
    """What its user wants, in words: her messages, where they are fixed, else the goal."""
    return "\n".join(turn.says for turn in task.turns) or task.goal


def deed_of(task: TaskSpec) -> str:
    """What is to be done in which world, whole: alike in two tasks, these are the same.

    Names, personas, wordings, and what she tells only when asked are left out. Where neither facts
    nor arguments nor a world of its own say what it is about, the words of the goal do.
    """
    asked = _asked(task.user) if task.user else []
    calls = [[call.by, call.tool, call.arguments] for call in task.gold]
    named = task.world or any(call.arguments for call in task.gold) or _has_facts(task)
    words = [] if named else re.findall(r"\w+", words_of(task).casefold())
    return _json([task.world, calls, asked, sorted(_wanted(task)), words])


def _situation_of(task: TaskSpec) -> str:
    words = [] if _has_facts(task) else re.findall(r"\w+", words_of(task).casefold())
    asked = _asked(task.user) if task.user else []
    return _json([task.world, asked, sorted(_wanted(task)), words])


def _has_facts(task: TaskSpec) -> bool:
    return task.user is not None and any(
        (task.user.facts, *(list(request.all_facts()) for request in task.user.requests))
    )


def _asked(asked: UserGoalSpec | RequestSpec) -> list[Any]:
    facts = sorted([fact.id, fact.value] for fact in asked.facts)
    if isinstance(asked, UserGoalSpec):
        return [facts, *map(_asked, asked.requests)]
    return [asked.ask, facts, asked.instead and _asked(asked.instead)]


def _told(task: TaskSpec) -> Iterator[tuple[str, str, str]]:
    """Kind, name and value of wishes, facts, calls and their arguments."""
    if task.user is not None:
        yield from (("fact", fact.id, fact.value.casefold()) for fact in task.user.facts)
        for request in task.user.requests:
            yield from _wished(request, "")
    for call in task.gold:
        yield "call", call.tool, ""
        for path, value in _values(call.arguments):
            text = value if isinstance(value, str) else _json(value)
            yield f"argument of {call.tool}", path, text.casefold()


def _wished(request: RequestSpec, kind: str) -> Iterator[tuple[str, str, str]]:
    yield f"{kind}ask", request.ask, ""
    for fact in request.facts:
        yield f"{kind}fact of {request.ask}", fact.id, fact.value.casefold()
    if request.instead is not None:
        yield from _wished(request.instead, "instead ")


def _wanted(task: TaskSpec) -> Iterator[str]:
    """What a task's own reward asks for by name, such as a text to be said."""
    for predicate in task.reward or ():
        for _, part in predicate.walk():
            asks = (part.said, part.world, part.sql, part.called, part.judge, part.python)
            if any((*asks, part.plugin)):
                yield part.model_dump_json(exclude_defaults=True)


def _values(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value in JSON data, with its place; places in a list are one."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _values(inner, f"{path}.{key}")
    elif isinstance(value, (list, tuple)) and value:
        for inner in value:
            yield from _values(inner, f"{path}[]")
    elif path:
        yield path, value


def _json(value: Any) -> str:
    return msgspec.json.encode(value, order="deterministic").decode()


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """What both have of all that either has, in [0, 1]; one of them has something."""
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared)


def _bands(traits: Traits) -> Iterator[Band]:
    """What two tasks that are nearly the same have in common, each with its kind and number.

    The whole deed, or a band of a signature: in a value of it two sets agree as often as they are
    similar. That of a union is the least of both, value by value.
    """
    if not traits.features:
        return
    yield "deed", traits.deed
    yield "situation", traits.situation
    deeds, goal = signature(traits.deeds), signature(traits.goal)
    yield from cut("features", [*map(min, deeds, goal)] if deeds and goal else deeds or goal)
    if traits.entities:
        yield from cut("deeds", deeds)


def cut(kind: str, values: Sequence[int]) -> Iterator[Band]:
    """A signature in bands: two that are similar have one of them in common."""
    for band, start in enumerate(range(0, len(values), _ROWS)):
        yield (kind, band, *values[start : start + _ROWS])


def signature(found: frozenset[str]) -> list[int]:
    """MinHash of a set that is not empty: two agree in a value as often as they are similar."""
    return [min(column) for column in zip(*map(_permuted, found), strict=True)]


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
