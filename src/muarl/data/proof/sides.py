"""Dual control: both sides come in step, and a scripted user can do her part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from muarl.data.proof.finding import Check, ProofFinding, Subject
from muarl.data.proof.gold import Sides
from muarl.data.proof.values import facts_of
from muarl.errors import SyncError
from muarl.messages import ToolCall
from muarl.spec import TaskSpec
from muarl.user.deeds import filled
from muarl.world import World, diff, equal


def deed_findings(subject: Subject, task: TaskSpec) -> Iterator[ProofFinding]:
    """Gold calls of the user's that nobody can ask a scripted user to make."""
    script = subject.domain.spec.user
    if script is None or task.user is None:
        return
    facts = {fact.id: fact.value for fact in facts_of(task)}
    deeds = [(deed.tool, filled(deed.arguments, facts.get)) for deed in script.actions.values()]
    for index, call in enumerate(task.gold):
        if call.by == "user" and not any(
            tool == call.tool and equal(arguments, call.arguments) for tool, arguments in deeds
        ):
            message = (
                f"nobody can ask the scripted user to make gold call {index + 1}, {call.tool!r} "
                "with these arguments; add it under user.actions"
            )
            yield subject.about_task(Check.REACH, task, ("gold", index), message)


async def sync_findings(subject: Subject, task: TaskSpec) -> list[ProofFinding]:
    """Whether `sync` settles at once, and gives the same every time, after each of the gold calls.

    Raises:
        ToolServerError: A server did not start, or died.
    """
    domain = subject.domain
    if domain.sync is None:
        return []
    world = subject.world_for(task)
    again = subject.world_for(task)
    async with domain.sides(world) as sides, domain.sides(again) as others:
        if found := _unsettled(subject, task, world):
            return [found]
        for index, call in enumerate(task.gold):
            made = ToolCall(f"sync_{index}", call.tool, call.arguments)
            await _both(sides, others, call.by, made)
            if found := _unsettled(subject, task, world):
                return [found]
            if changes := diff(world, again):
                message = (
                    f"the same calls lead to two worlds (task {task.id!r}, after gold call "
                    f"{index + 1}): {changes[0]}; let `sync` and tools draw nothing and ask no clock"
                )
                return [subject.about(Check.SYNC, ("device", "sync"), message)]
    return []


async def _both(sides: Sides, others: Sides, by: Any, call: ToolCall) -> None:
    await sides[by].call(call)
    await others[by].call(call)


def _unsettled(subject: Subject, task: TaskSpec, world: World) -> ProofFinding | None:
    """What running `sync` once more changes."""
    sync = subject.domain.sync
    assert sync is not None
    once_more = world.fork()
    try:
        sync(once_more)
    except SyncError as error:
        message = f"run again it fails (task {task.id!r}): {error}"
        return subject.about(Check.SYNC, ("device", "sync"), message)
    if changes := diff(world, once_more):
        message = (
            f"run again it changes something (task {task.id!r}): {changes[0]}; let it write only "
            "what follows from the rest of the world"
        )
        return subject.about(Check.SYNC, ("device", "sync"), message)
    return None
