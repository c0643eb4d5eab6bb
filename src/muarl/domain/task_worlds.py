"""The worlds of one task: the one that its dialogues begin with, and what its gold calls make of it."""

from __future__ import annotations

from collections.abc import Mapping

from muarl.authors import RAISED, blame, let_others_pass
from muarl.domain.sync import Sync
from muarl.errors import SpecError, SyncError, ToolServerError
from muarl.messages import ToolCall
from muarl.spec import DomainSpec, Located, TaskSpec
from muarl.spec.calls import Who
from muarl.tools import ToolSession
from muarl.world import World


def first_world(
    located: Located[DomainSpec], base: World, sync: Sync | None, task: TaskSpec
) -> World:
    """A fresh world for one dialogue of a task, with both sides in step.

    Args:
        located: The domain's file.
        base: The domain's world before any task.
        sync: Brings a world in step; None where nothing is declared.
        task: Of the dialogue.

    Raises:
        SpecError: The task's rows are none of the domain's tables, or `sync` failed.
    """

    def problem(loc: tuple[str, ...], message: str) -> SpecError:
        return SpecError([located.problem(loc, message)])

    plugin = located.spec.world.plugin
    try:
        world = base.fork(task.world)
    except ValueError as wrong:
        raise problem(("tasks",), f"task {task.id!r}: world: {wrong}") from wrong
    except RAISED as error:  # boundary: a package's world raises anything
        let_others_pass(error)
        if plugin is None:
            raise
        message = f"{plugin.provided} raised as it was forked: {blame(error)}"
        raise problem(("world", "plugin"), message) from error
    if sync is not None:
        try:
            sync(world)
        except SyncError as error:
            message = f"task {task.id!r} cannot begin: {error}"
            raise problem(("device", "sync"), message) from error
    return world


async def make_gold_calls(task: TaskSpec, sides: Mapping[Who, ToolSession]) -> None:
    """Make the gold calls of a task, in order.

    Args:
        task: Whose calls.
        sides: Sessions over its world, of each side that may call.

    Raises:
        ToolServerError: A gold call was answered with an error.
    """
    for index, gold in enumerate(task.gold):
        call = ToolCall(id=f"gold_{index}", name=gold.tool, arguments=gold.arguments)
        result = await sides[gold.by].call(call)
        if result.is_error:
            raise ToolServerError(
                f"gold call {index} of task {task.id!r}, {gold.tool}, "
                f"was answered with an error: {result.content}"
            )
