"""A task that was drawn and is not proved yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from muarl.goals.axes import Axes
from muarl.goals.goal import Wish
from muarl.goals.scene import Scene
from muarl.spec import DomainSpec, GoldCallSpec, PredicateSpec, TaskSpec, UserGoalSpec
from muarl.spec.predicate_kinds import Said
from muarl.spec.wording import disclosure


@dataclass(frozen=True)
class Drawn:
    """A wish, the goal that drew it, and the calls that find what nobody tells."""

    goal: str
    wish: Wish
    looks: tuple[GoldCallSpec, ...]

    @property
    def calls(self) -> list[GoldCallSpec]:
        """All its gold calls, in order."""
        return [*self.looks, *(call for block in self.wish.final.blocks for call in block)]


@dataclass(frozen=True)
class Draft:
    """What was drawn for one task.

    Attributes:
        spec: The domain.
        scene: Where it was drawn.
        drawn: Its wishes.
        goal: It in words.
    """

    spec: DomainSpec
    scene: Scene
    drawn: tuple[Drawn, ...]
    goal: str = ""

    @property
    def wishes(self) -> list[Wish]:
        """Its wishes, in order."""
        return [drawn.wish for drawn in self.drawn]

    @property
    def gold(self) -> list[GoldCallSpec]:
        """Its gold calls, in order."""
        return [call for drawn in self.drawn for call in drawn.calls]

    @property
    def personas(self) -> list[str]:
        """Personas of the domain for whom these gold calls are right."""
        return [name for name in self.spec.personas if self._suits(name)]

    def _suits(self, name: str) -> bool:
        persona = self.spec.personas[name]
        return all(
            (not wish.personas or name in wish.personas)
            and (wish.instead is None or persona.changes_mind)
            for wish in self.wishes
        )

    def writes(self) -> Iterator[GoldCallSpec]:
        """Gold calls that change something."""
        return (call for call in self.gold if self.spec.writes_by(call.by, call.tool))

    @property
    def is_idle(self) -> bool:
        """Whether doing nothing is the right thing, and no more is asked for."""
        asks_more = any(wish.final.say or wish.final.reward for wish in self.wishes)
        return not asks_more and not any(self.writes())

    def axes(self) -> Axes:
        """Where it lies on each axis."""
        writes = list(self.writes())
        facts = [*self.scene.facts.values(), *(f for wish in self.wishes for f in wish.all_facts())]
        asked = {
            fact.id
            for fact in facts
            for name in self.personas
            if disclosure(fact, self.spec.personas[name]) == "on_request"
        }
        deeds = sum(call.by == "user" for call in self.gold)
        yeses = sum(call.by == "agent" for call in writes)
        return {
            "wishes": len(self.drawn),
            "writes": len(writes),
            "finds": len(self.scene.finds),
            "turns": len(self.drawn) + len(asked) + yeses + deeds + 1,
            "refusals": sum(bool(wish.final.forbidden) for wish in self.wishes),
        }

    def task(self, name: str, personas: list[str], axes: Axes) -> TaskSpec:
        """It as a task of the domain."""
        more = [
            predicate
            for wish in self.wishes
            for predicate in (
                *(PredicateSpec(said=Said(text=text)) for text in wish.final.say),
                *wish.final.reward,
            )
        ]
        asked = [*self.spec.reward, *more]
        return TaskSpec(
            id=name,
            split=self.scene.split,
            goal=self.goal,
            personas=personas,
            user=UserGoalSpec(
                requests=[wish.request() for wish in self.wishes],
                facts=list(self.scene.facts.values()),
            ),
            world=self.scene.patch,
            # Gold calls are what is to be done; looking is not, where nothing is.
            gold=[] if self.is_idle else self.gold,
            reward=asked if more else None,
            metrics=[_partial_credit(asked), *self.spec.metrics] if more else None,
            axes=axes,
        )


def _partial_credit(asked: Sequence[PredicateSpec]) -> PredicateSpec:
    """How much of what is asked holds; judges are not asked twice."""
    free = [each for each in asked if not any(part.judge for _, part in each.walk())]
    return PredicateSpec(share=free or list(asked))
