"""An environment begins, answers and ends as it must, and does the same again when it is played again."""

from __future__ import annotations

from muarl.data.proof.again import parted
from muarl.data.proof.finding import Check, ProofFinding, Subject, spread
from muarl.data.trivial import actions_of, numbered
from muarl.environments import whose_calls
from muarl.environments.sides import OPEN, TELL
from muarl.messages import ToolCall
from muarl.seeds import generator
from muarl.spec import TaskSpec
from muarl.spec.environment import ENVIRONMENT
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
    """Play some tasks, and then the same once more, with the same messages.

    The second time all others were played in between, so that what one leaves to another is seen.

    Raises:
        ToolServerError: The environment raised, or broke its contract.
    """
    tasks = [task for split in subject.tasks.values() for task in spread(split, _TASKS)]
    first = [await _played(subject, task) for task in tasks]
    for task, (said, world) in zip(tasks, first, strict=True):
        again, other = await _played(subject, task)
        for number, (one, two) in enumerate(zip([*said, ""], [*again, ""], strict=False)):
            if one != two:
                when = f"to message {number}" if number else "as it begins"
                before, after = parted(one, two)
                message = (
                    f"the environment answers {before} {when}, and played once more from the same seed "
                    f"with the same messages {after}; draw from the generator that is seeded at its "
                    "beginning, keep nothing outside of it and ask no clock"
                )
                return [subject.about_task(Check.AGAIN, task, (), message)]
        if changes := canonical_diff(world, other, world.unordered):
            message = (
                f"the same messages, said once more from the same seed, come to something else: "
                f"{changes[0]}; draw from the generator that is seeded at its beginning"
            )
            return [subject.about_task(Check.AGAIN, task, (), message)]
    return []


async def _played(subject: Subject, task: TaskSpec) -> tuple[list[str], World]:
    """What an environment answers to messages drawn for a task, and the world at the end."""
    domain = subject.domain
    rng = generator(task.content_hash, "environment")
    world = subject.world_for(task)
    said: list[str] = []
    async with domain.sides(world) as sides:
        said.append((await sides["user"].call(ToolCall("open", OPEN, {}))).content)
        for number in range(_MESSAGES):
            if world[ENVIRONMENT]["over"]:
                break
            message = numbered(rng.choice(actions_of(domain)), number)
            if not message.tool_calls:
                call = ToolCall(f"tell_{number}", TELL, {"text": message.content})
                said.append((await sides["user"].call(call)).content)
                continue
            whose_calls.set(message)
            answers = [await sides["agent"].call(call) for call in message.tool_calls]
            said.append("\n".join(answer.content for answer in answers))
    return said, world
