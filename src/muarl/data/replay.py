"""Verify an episode by doing it again: its calls, on a fresh world, must answer as recorded."""

from __future__ import annotations

from muarl.domain import Domain
from muarl.messages import ToolCall
from muarl.record import Episode
from muarl.spec import TaskSpec
from muarl.world import diff, equal


async def replay_problem(domain: Domain, task: TaskSpec, episode: Episode) -> str | None:
    """What differs when an episode's tool calls are made again; None if nothing does.

    Compares every result and the final world. Needs no model and no user.
    """
    world = domain.world_for(task)
    initial = world.fork()
    async with domain.server.session(world) as session:
        for number, turn in enumerate(episode.turns):
            for call, recorded in zip(turn.message.tool_calls, turn.results, strict=False):
                answer = await session.call(
                    ToolCall(id=call.id, name=call.name, arguments=call.arguments, error=call.error)
                )
                if (answer.content, answer.is_error) != (recorded.content, recorded.is_error):
                    return (
                        f"turn {number}, {call.name}: answered {answer.content!r}, "
                        f"recorded {recorded.content!r}"
                    )
    again = {f"{c.kind} {c.path}": c.after for c in diff(initial, world)}
    before = {f"{c.kind} {c.path}": c.after for c in episode.changes}
    if not equal(again, before):
        return "the final world differs from the recorded one"
    return None
