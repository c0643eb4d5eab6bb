"""An environment begins, answers and ends as it must, and does the same again when it is played again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack

from muarl.data.proof.again import parted
from muarl.data.proof.finding import Check, ProofFinding, Subject, spread
from muarl.data.trivial import actions_of, numbered
from muarl.domain import Domain
from muarl.environments import whose_calls
from muarl.environments.sides import OPEN, TELL
from muarl.messages import Message, ToolCall
from muarl.seeds import generator
from muarl.spec import TaskSpec
from muarl.spec.calls import Who
from muarl.spec.environment import ENVIRONMENT
from muarl.tools import ToolSession
from muarl.world import World, canonical_diff

_TASKS = 4
"""Of each split."""
_MESSAGES = 16
"""To each, at most."""
UNPROVED = (
    "an environment has no gold calls: that its tasks can be solved, and that splits do not begin alike, was "
    "not looked at; an expert shows the first"
)


async def environment_findings(subject: Subject) -> list[ProofFinding]:
    """Play some tasks, one after another, and then the same once more, with the same messages, all at once.

    So what one leaves to another is seen, and what one does to another that is played beside it.

    Raises:
        ToolServerError: The environment raised, or broke its contract.
    """
    tasks = [task for split in subject.tasks.values() for task in spread(split, _TASKS)]
    alone = [(await _played(subject, [task]))[0] for task in tasks]
    beside = await _played(subject, tasks)
    for task, (said, world), (again, other) in zip(tasks, alone, beside, strict=True):
        for number, (one, two) in enumerate(zip([*said, ""], [*again, ""], strict=False)):
            if one != two:
                when = f"to message {number}" if number else "as it begins"
                before, after = parted(one, two)
                message = (
                    f"the environment answers {before} {when}, and played once more from the same seed "
                    f"with the same messages, while others were played, {after}; draw from a generator of "
                    "its own that is seeded at its beginning, keep nothing outside of it and ask no clock"
                )
                return [subject.about_task(Check.AGAIN, task, (), message)]
        if changes := canonical_diff(world, other, world.unordered):
            message = (
                "the same messages, said once more from the same seed while others were played, come to "
                f"something else: {changes[0]}; draw from a generator of its own that is seeded at its "
                "beginning"
            )
            return [subject.about_task(Check.AGAIN, task, (), message)]
    return []


async def _played(subject: Subject, tasks: Sequence[TaskSpec]) -> list[tuple[list[str], World]]:
    """What environments answer to messages drawn for their tasks, in turns; and the worlds at the end."""
    async with AsyncExitStack() as held:
        plays = []
        for task in tasks:
            world = subject.world_for(task)
            sides = await held.enter_async_context(subject.domain.sides(world))
            plays.append(_Play(subject.domain, task, world, sides))
        for number in range(1 + _MESSAGES):
            for play in plays:
                await play.go_on(number)
    return [(play.said, play.world) for play in plays]


class _Play:
    """One environment, and what it said."""

    def __init__(
        self, domain: Domain, task: TaskSpec, world: World, sides: Mapping[Who, ToolSession]
    ) -> None:
        self._domain = domain
        self._rng = generator(task.content_hash, "environment")
        self._sides = sides
        self.world = world
        self.said: list[str] = []

    async def go_on(self, number: int) -> None:
        """Begin it, or send it its so manieth message."""
        if number == 0:
            self.said.append((await self._sides["user"].call(ToolCall("open", OPEN, {}))).content)
        elif not self.world[ENVIRONMENT]["over"]:
            await self._say(numbered(self._rng.choice(actions_of(self._domain)), number - 1))

    async def _say(self, message: Message) -> None:
        if not message.tool_calls:
            call = ToolCall(f"tell_{len(self.said)}", TELL, {"text": message.content})
            self.said.append((await self._sides["user"].call(call)).content)
            return
        whose_calls.set(message)
        answers = [await self._sides["agent"].call(call) for call in message.tool_calls]
        self.said.append("\n".join(answer.content for answer in answers))
