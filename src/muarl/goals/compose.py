"""Tasks made of goals: drawn by keyed generators, proved, and kept where there is room for them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate

from muarl.errors import did_you_mean
from muarl.goals.axes import Axes, Quotas
from muarl.goals.draft import Draft, Drawn
from muarl.goals.errors import GoalError
from muarl.goals.goal import Goal, Goals, Unfit, Wish
from muarl.goals.prove import Prover, Stage
from muarl.goals.scene import Scene
from muarl.goals.words import goal_in_words
from muarl.overlap import NearDuplicates
from muarl.seeds import derive_seed, generator
from muarl.spec import TaskSpec

_TRIES = 100
"""Draws for each task that is asked for, until goals are said not to give them."""
_PATIENCE = 200
"""Draws in a row that are refused, some of them by quotas, until these are loosened."""
_OF_FLOOR = 2 / 3
"""Of the domain's floor, what tasks may come to that doing nothing solves."""


@dataclass(frozen=True)
class Composed:
    """One task, and where it lies on each axis."""

    task: TaskSpec
    axes: Axes


@dataclass(frozen=True)
class Composition:
    """What was made of goals.

    Attributes:
        made: The tasks.
        drawn: How many were drawn for them.
        refused: Why others were not kept, to how many.
        examples: Reason to one thing that it was said of, where there is more to say.
        trusted: Arguments of writes (`order_id of cancel_order`) to how often they come from the
            answer of a tool alone: that nothing else was meant is the goal's word, for no `find`
            says what else could be.
        loosened: How often quotas had to be loosened, by a fiftieth of all tasks each time.
    """

    made: list[Composed]
    drawn: int
    refused: Counter[str]
    examples: dict[str, str]
    trusted: Counter[str]
    loosened: int

    @property
    def tasks(self) -> list[TaskSpec]:
        """The tasks."""
        return [composed.task for composed in self.made]


async def compose(
    goals: Goals,
    stage: Stage,
    *,
    split: str,
    splits: Mapping[str, int],
    seed: int,
    count: int,
    wanted: Callable[[], bool] = lambda: True,
) -> Composition:
    """Make tasks of a split. Same seed and count, same tasks, to the byte.

    Args:
        goals: What users may want.
        stage: The domain.
        split: Of the tasks.
        splits: All splits of the domain, to how large they are: entities are divided accordingly.
        seed: Of all draws.
        count: How many tasks.
        wanted: Asked before each draw; once it says no, what was made by then is returned.

    Raises:
        GoalError: A goal breaks its contract, or so many draws were refused that goals and quotas
            cannot fit together.
        ToolServerError: The tool server does not start, or died.
    """
    if not goals.goals:
        raise GoalError(
            "no goal is declared: put `@goals.goal()` above the functions that draw wishes"
        )
    tools = await stage.tools()
    offered = {
        "agent": [tool.name for tool in tools],
        "user": [tool.name for tool in await stage.user_tools()],
    }
    composer = _Composer(goals, Prover(stage, tools), stage, offered, split, splits, seed, count)
    while len(composer.made) < count and wanted():
        if composer.drawn >= count * _TRIES:
            raise GoalError(composer.why_not())
        await composer.try_one()
    return Composition(
        made=composer.made,
        drawn=composer.drawn,
        refused=composer.refused,
        examples=composer.examples,
        trusted=composer.trusted,
        loosened=composer.loosened,
    )


class _NoRoom(Unfit):
    """A quota has no room for it."""


class _Composer:
    def __init__(
        self,
        goals: Goals,
        prover: Prover,
        stage: Stage,
        offered: Mapping[str, Sequence[str]],
        split: str,
        splits: Mapping[str, int],
        seed: int,
        count: int,
    ) -> None:
        self.made: list[Composed] = []
        self.drawn = 0
        self.refused: Counter[str] = Counter()
        self.examples: dict[str, str] = {}
        self.trusted: Counter[str] = Counter()
        self.loosened = 0
        self._refused: list[bool] = []
        self._goals, self._prover, self._spec = goals, prover, stage.spec
        self._offered = offered
        self._split, self._seed, self._count = split, seed, count
        self._owns = owner(split, splits)
        self._quotas = Quotas({"wishes": goals.wishes, **goals.balance}, count)
        idle = stage.spec.floor * _OF_FLOOR if goals.idle is None else goals.idle
        self._idle_left = int(idle * count)
        self._seen = NearDuplicates()

    async def try_one(self) -> None:
        """Draw a task, and keep it if it is one that is needed."""
        self.drawn += 1
        try:
            self.made.append(await self._one())
            self._refused = []
        except Unfit as unfit:
            reason, *detail = map(str, unfit.args or ("unfit",))
            self.refused[reason] += 1
            if detail:
                self.examples.setdefault(reason, detail[0])
            self._refused.append(isinstance(unfit, _NoRoom))
            if len(self._refused) >= _PATIENCE and any(self._refused):
                self._quotas.loosen()
                self.loosened += 1
                self._refused = []

    def why_not(self) -> str:
        """Why there are too few tasks."""
        reasons = [
            f"{count} times {reason}"
            + (f" ({self.examples[reason]})" if reason in self.examples else "")
            for reason, count in self.refused.most_common(5)
        ]
        return (
            f"only {len(self.made)} of {self._count} tasks of split {self._split!r} could be made in "
            f"{self.drawn} draws: {'; '.join(reasons)}; mend the goals, their weights or `balance`"
        )

    async def _one(self) -> Composed:
        scene, drawn = await self._draw()
        draft = Draft(self._spec, scene, drawn)
        axes = draft.axes()
        if full := self._quotas.full(axes):
            raise _NoRoom(f"there are enough tasks with this value of {full}")
        if draft.is_idle and not self._idle_left:
            raise Unfit("there are enough tasks that doing nothing solves")
        draft = replace(draft, goal=goal_in_words(self._goals, scene, draft.wishes))
        proved = await self._prover.prove(draft)
        task = draft.task(f"{self._split}-{len(self.made):04d}", proved.personas, axes)
        if pairs := self._seen.of(task):
            raise Unfit("nearly the same as another task", pairs[0].first.id)
        self._quotas.take(axes)
        self.trusted.update(proved.trusted)
        self._idle_left -= draft.is_idle
        return Composed(task, axes)

    async def _draw(self) -> tuple[Scene, tuple[Drawn, ...]]:
        rng = generator("goals", self._seed, self._split, self.drawn)
        scene = Scene(self._split, rng, self._owns)
        scene.start = scene.world = self._prover.world({})
        if self._goals.begin is not None:
            scene.who = self._goals.begin(scene)
        (count,) = rng.choices(list(self._goals.wishes), list(self._goals.wishes.values()))
        drawn: list[Drawn] = []
        for position in range(count):
            if position:
                scene.start = self._prover.world(scene.patch)
                calls = [call for wish in drawn for call in wish.calls]
                scene.world = await self._prover.after(scene.start, calls)
            scene.wish, scene.looks = position, []
            goal = self._goal(rng, first=not position, last=position == count - 1)
            wish = self._checked(goal, goal.draw(scene))
            drawn.append(Drawn(goal.name, wish, tuple(scene.looks)))
            self._refuse_hopeless(Draft(self._spec, scene, tuple(drawn)))
        return scene, tuple(drawn)

    def _refuse_hopeless(self, draft: Draft) -> None:
        """Refuse what no further wish could make a task that is needed."""
        if not draft.personas:
            raise Unfit("no persona can play it")
        if axis := self._quotas.passed(draft.axes()):
            raise _NoRoom(f"there are enough tasks with this value of {axis}")

    def _goal(self, rng: random.Random, *, first: bool, last: bool) -> Goal:
        open_to = [
            goal
            for goal in self._goals.goals
            if (first or not goal.first) and (last or not goal.last)
        ]
        if not open_to:
            where = "a first" if not first else "a last"
            raise GoalError(f"all goals are for {where} wish, and tasks are to have several")
        weights = [goal.weight for goal in open_to]
        return rng.choices(open_to, weights)[0]

    def _checked(self, goal: Goal, wish: object) -> Wish:
        if not isinstance(wish, Wish):
            raise GoalError(f"goal {goal.name!r} must return a Wish, it returned {wish!r}")
        if unknown := sorted(set(wish.personas) - self._spec.personas.keys()):
            raise GoalError(
                f"goal {goal.name!r} names personas {unknown}, which the domain has not"
            )
        final = wish.final
        for call in (*final.forbidden, *(call for block in final.blocks for call in block)):
            known = self._offered[call.by]  # none of the user's where she has no device
            if known and call.tool not in known:
                hint = did_you_mean(call.tool, known) or f"; there are {', '.join(known)}"
                raise GoalError(
                    f"goal {goal.name!r} calls {call.tool!r}, which is no tool of the {call.by}'s{hint}"
                )
        return wish


def owner(split: str, splits: Mapping[str, int]) -> Callable[[str], bool]:
    """Tells which names are of a split: each is of one alone, whatever the seed.

    Args:
        split: The split.
        splits: All of them, to how many tasks they have; names are divided in this proportion.
    """
    names, ends = list(splits), list(accumulate(splits.values()))

    @cache
    def owns(name: str) -> bool:
        at = derive_seed("split of", name) % ends[-1]
        return names[next(i for i, end in enumerate(ends) if at < end)] == split

    return owns
