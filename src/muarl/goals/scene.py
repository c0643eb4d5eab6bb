"""A scene: what a goal sees while it draws a wish, and what it may put there."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muarl.goals.goal import Unfit, Words
from muarl.spec import FactSpec, GoldCallSpec
from muarl.spec.task import Disclosure
from muarl.world import World

_TRIES = 1000
"""Names drawn until one is of the right split and new."""

Query = Callable[[World], Iterable[Any]]
"""All values in a world that fit what the user says."""

Patch = dict[str, Any]


@dataclass(frozen=True)
class Find:
    """A fact that the agent has to find.

    Attributes:
        fact: Its name.
        value: The only one that fits.
        query: All that fit, in a world.
        wish: Position of the wish that it is for.
    """

    fact: str
    value: Any
    query: Query
    wish: int


class Scene:
    """One task in the making.

    Attributes:
        split: Of the task.
        rng: Draws; the only source of chance that a goal may use.
        world: As the gold calls of the wishes so far leave it. It is read here; what a task brings
            along is put there by `bring`.
        start: As it is before the first wish.
        who: What `Goals.begin` returned.
        wish: Position of the wish that is drawn now.
    """

    def __init__(self, split: str, rng: random.Random, owns: Callable[[str], bool]) -> None:
        self.split = split
        self.rng = rng
        self.who: Any = None
        self.wish = 0
        self.patch: Patch = {}
        self.facts: dict[str, FactSpec] = {}
        self.about: list[tuple[Words, dict[str, str]]] = []
        self.finds: list[Find] = []
        self.looks: list[GoldCallSpec] = []
        self._owns = owns
        self._taken: set[str] = set()
        self.start: World
        self.world: World

    def owns(self, name: str) -> bool:
        """Whether an entity of this name is of this split: each name is of one split alone."""
        return self._owns(name)

    def pick(self, names: Iterable[str], *, any_split: bool = False) -> str:
        """One of these entities, drawn from those of this split that no wish here picked before.

        Args:
            names: Theirs, in an order that does not change.
            any_split: Entities that all splits share, such as cities.

        Raises:
            Unfit: There is none.
        """
        free = [n for n in names if n not in self._taken and (any_split or self._owns(n))]
        if not free:
            raise Unfit("nothing is there that could be picked")
        name = self.rng.choice(free)
        self._taken.add(name)
        return name

    def name(self, make: Callable[[random.Random], str]) -> str:
        """A name of this split for something new, made by `make` until it is one.

        Raises:
            Unfit: None was made.
        """
        for _ in range(_TRIES):
            name = make(self.rng)
            if name not in self._taken and self._owns(name):
                self._taken.add(name)
                return name
        raise Unfit("no new name was found")

    def bring(self, patch: Mapping[str, Any]) -> None:
        """Put something into the task's world: it is there from the start, merged key by key."""
        _merge(self.patch, patch)
        self.start = self.start.fork(patch)
        self.world = self.world.fork(patch)

    def tell(self, fact: str, value: str, words: Words, disclose: Disclosure = "volunteer") -> None:
        """Give the user a fact that belongs to her and not to one wish, such as her account.

        Args:
            fact: Its id.
            value: What she says when she tells it.
            words: It in a sentence: "your account is {account}".
            disclose: How she tells it.

        Raises:
            Unfit: She has another value for it already.
        """
        known = self.facts.get(fact)
        if known is not None and known.value != value:
            raise Unfit(f"she has another {fact!r} already")
        if known is None:
            self.facts[fact] = FactSpec(id=fact, value=value, disclose=disclose)
            self.about.append((words, {fact: value}))

    def remark(self, words: Words) -> None:
        """Say something more about the user in the task's words: "you do not know your order number"."""
        self.about.append((words, {}))

    def find(self, fact: str, query: Query, by: Sequence[GoldCallSpec] = ()) -> Any:
        """A fact that nobody tells the agent: it has to look.

        Args:
            fact: Its name.
            query: All values that fit what the user says, in the world that it is given. There
                must be one, before the first wish and now.
            by: Calls that find it, from what the user tells and what was found before; they become
                the first gold calls of the wish.

        Returns:
            The value.

        Raises:
            Unfit: None fits, or several do.
        """
        value = only(fact, query, self.world)
        self.finds.append(Find(fact, value, query, self.wish))
        self.looks += by
        return value


def only(fact: str, query: Query, world: World) -> Any:
    """The one value that fits.

    Raises:
        Unfit: None fits, or several do.
    """
    fitting: list[Any] = []
    for value in query(world):
        if value not in fitting:
            fitting.append(value)
    if len(fitting) != 1:
        raise Unfit(f"{'several' if fitting else 'none'} fit what she says of {fact!r}")
    return fitting[0]


def _merge(into: Patch, patch: Mapping[str, Any]) -> None:
    for key, value in patch.items():
        if isinstance(value, Mapping):
            below = into.setdefault(key, {})
            if not isinstance(below, dict):
                below = into[key] = {}
            _merge(below, value)
        else:
            into[key] = value
