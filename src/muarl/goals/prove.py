"""Whether a drawn task can be solved, and in one way only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from itertools import permutations
from typing import Protocol

import msgspec

from muarl.goals.draft import Draft, Drawn
from muarl.goals.errors import GoalError
from muarl.goals.goal import Unfit
from muarl.goals.scene import Patch, only
from muarl.messages import ToolCall, ToolResult, ToolSpec
from muarl.spec import DomainSpec, GoldCallSpec, TaskSpec
from muarl.spec.calls import Who
from muarl.spec.wording import disclosure
from muarl.spoken.known import Known, is_worded, values_in
from muarl.tools import ToolSession
from muarl.world import World, canonical_diff

Block = Sequence[GoldCallSpec]

_ALL_ORDERS = 3
"""So many blocks of calls are tried in every order; of more, neighbours change places, and all at once."""


class Stage(Protocol):
    """Where calls are made: a domain at work."""

    spec: DomainSpec

    def world_for(self, task: TaskSpec) -> World:
        """A fresh world of a task."""
        ...

    def sides(self, world: World) -> AbstractAsyncContextManager[Mapping[Who, ToolSession]]:
        """Sessions over a world, of each side that may call."""
        ...

    async def tools(self) -> Sequence[ToolSpec]:
        """The agent's tools."""
        ...

    async def user_tools(self) -> Sequence[ToolSpec]:
        """The user's, on her own device."""
        ...


@dataclass(frozen=True, slots=True)
class Proved:
    """A draft that is a task.

    Attributes:
        personas: Those that can play it.
        trusted: As of `Composition`.
    """

    personas: list[str]
    trusted: frozenset[str]


class Prover:
    """Proves drawn tasks on a stage.

    Args:
        stage: The domain.
        tools: The agent's tools.
    """

    def __init__(self, stage: Stage, tools: Sequence[ToolSpec]) -> None:
        self._stage = stage
        self._public = Known([stage.spec.rules, msgspec.json.encode(list(tools)).decode()])

    def world(self, patch: Patch) -> World:
        """A world with what a task brings along."""
        return self._stage.world_for(
            TaskSpec.model_construct(id="draft", goal="", world=patch, gold=[])
        )

    async def after(self, world: World, calls: Sequence[GoldCallSpec]) -> World:
        """A fork of a world, after calls. Only those that change something are made.

        Raises:
            Unfit: One is answered with an error.
        """
        world = world.fork()
        async with self._stage.sides(world) as sides:
            for gold in calls:
                if self._stage.spec.writes_by(gold.by, gold.tool):
                    await made(sides, gold)
        return world

    async def prove(self, draft: Draft) -> Proved:
        """Prove a draft.

        Raises:
            Unfit: It cannot be solved, or something else could be meant.
            GoalError: A goal contradicts itself.
        """
        start = self.world(draft.scene.patch)
        final = start.fork()
        knowers = _Knowers(draft, self._public)
        async with self._stage.sides(final) as sides:
            for position, drawn in enumerate(draft.drawn):
                _refuse_several_meanings(draft, position, start, final)
                await self._refuse_harmless(drawn, final)
                for gold in drawn.calls:
                    knowers.call(gold)
                    knowers.read((await made(sides, gold)).content)
                for text in drawn.wish.final.say:
                    knowers.say(text)
        if any(draft.writes()) and not canonical_diff(start, final, final.unordered):
            raise Unfit("the gold calls change nothing")
        for order in other_orders(draft):
            if not await self._leads_to(final, start, order):
                raise Unfit("the order in which wishes are fulfilled matters")
        return Proved(knowers.left, frozenset(knowers.trusted))

    async def _refuse_harmless(self, drawn: Drawn, world: World) -> None:
        """Refuse a refusal of something that would not matter."""
        wish = drawn.wish.final
        if not wish.forbidden:
            return
        if any(self._stage.spec.writes_by(gold.by, gold.tool) for gold in drawn.calls):
            raise GoalError(
                f"goal {drawn.goal!r}: a wish that the rules forbid has gold calls that write; give "
                "what is allowed in a wish of its own"
            )
        try:
            done = await self.after(world, wish.forbidden)
        except Unfit:
            return  # the tools refuse it as well
        if not canonical_diff(world, done, world.unordered):
            raise Unfit("what the rules forbid would change nothing")

    async def _leads_to(self, final: World, start: World, order: Sequence[GoldCallSpec]) -> bool:
        try:
            world = await self.after(start, order)
        except Unfit:
            return True  # the tools allow no such order
        return not canonical_diff(final, world, final.unordered)


async def made(sides: Mapping[Who, ToolSession], gold: GoldCallSpec) -> ToolResult:
    """Make a call.

    Raises:
        Unfit: It is answered with an error.
        GoalError: Nobody has such a side.
    """
    if gold.by not in sides:
        raise GoalError(f"{gold.tool!r} is a call of the user's, and the domain has no `device`")
    result = await sides[gold.by].call(ToolCall("gold", gold.tool, gold.arguments))
    if result.is_error:
        raise Unfit("a gold call is answered with an error", f"{gold.tool}: {result.content}")
    return result


class _Knowers:
    """Personas of a draft, and what an agent who talks with them can know.

    Attributes:
        left: Those who lead to all that was needed so far.
        trusted: As of `Composition`.
    """

    def __init__(self, draft: Draft, public: Known) -> None:
        self.left = draft.personas
        if not self.left:
            raise Unfit("no persona can play it")
        self.trusted: set[str] = set()
        self._public = public
        self._read = Known()
        self._writes = draft.spec.writes
        self._found = {str(find.value) for find in draft.scene.finds}
        facts = [*draft.scene.facts.values(), *(f for w in draft.wishes for f in w.all_facts())]
        self._told = {
            name: [
                fact.value
                for fact in facts
                if disclosure(fact, draft.spec.personas[name]) != "never"
            ]
            for name in self.left
        }
        self._heard = {name: Known(told) for name, told in self._told.items()}

    def read(self, answer: str) -> None:
        """A tool answered."""
        self._read.add(answer)

    def call(self, gold: GoldCallSpec) -> None:
        """A call is made: all that stands in it must be known.

        Raises:
            Unfit: Nobody is left who knows it.
        """
        if gold.by == "agent":
            for name, text in values_in(gold.arguments):
                self._need(text, f"{name} = {text!r} of {gold.tool}")
                if gold.tool in self._writes and self._is_only_read(text):
                    self.trusted.add(f"{name} of {gold.tool}")

    def _is_only_read(self, text: str) -> bool:
        """Whether it stands in a tool's answer alone, and no query says what else would fit."""
        told = any(text in self._told[name] or self._heard[name].hold(text) for name in self.left)
        return not (told or text in self._found or self._public.hold(text))

    def say(self, text: str) -> None:
        """The agent says what the user wanted to know."""
        self._need(text, f"{text!r}, which must be said")

    def _need(self, text: str, what: str) -> None:
        if self._public.hold(text) or self._read.hold(text):
            return
        self.left = [
            name
            for name in self.left
            if self._heard[name].hold(text) or is_worded(text, self._told[name])
        ]
        if not self.left:
            raise Unfit("nobody can know what a gold call needs", what)


def _refuse_several_meanings(draft: Draft, position: int, start: World, now: World) -> None:
    """What has to be found is what it was taken for: at the start of the dialogue, and now."""
    worlds = [now] if draft.drawn[position].wish.follows else [start, now]
    for find in draft.scene.finds:
        if find.wish == position:
            for world in worlds:
                if only(find.fact, find.query, world) != find.value:
                    raise Unfit(f"something else fits what she says of {find.fact!r}")


def other_orders(draft: Draft) -> Iterator[list[GoldCallSpec]]:
    """The blocks of gold calls in other orders that the user's words allow; writes alone, reads change nothing."""
    writes = {(call.by, call.tool) for call in draft.writes()}
    stretches: list[list[Block]] = [[]]
    for drawn in draft.drawn:
        if drawn.wish.follows:
            stretches.append([])
        for block in drawn.wish.final.blocks:
            if changes := [call for call in block if (call.by, call.tool) in writes]:
                stretches[-1].append(changes)
    for index, stretch in enumerate(stretches):
        for order in _orders(stretch):
            changed = [*stretches[:index], order, *stretches[index + 1 :]]
            yield [call for blocks in changed for block in blocks for call in block]


def _orders(blocks: Sequence[Block]) -> Iterator[Sequence[Block]]:
    if len(blocks) <= _ALL_ORDERS:
        yield from list(permutations(blocks))[1:]
        return
    yield blocks[::-1]
    for at in range(len(blocks) - 1):
        yield [*blocks[:at], blocks[at + 1], blocks[at], *blocks[at + 2 :]]
