"""Verify an episode by doing it again: its calls, on a fresh world, must answer as recorded."""

from __future__ import annotations

from collections.abc import Sequence

from muarl.domain import Domain
from muarl.messages import ToolCall
from muarl.record import Episode
from muarl.spec import TaskSpec
from muarl.world import Change, Json, diff


async def replay_problem(domain: Domain, task: TaskSpec, episode: Episode) -> str | None:
    """What differs when an episode's tool calls are made again; None if nothing does.

    Compares every result and the final world. Needs no model and no user.
    """
    world = domain.world_for(task)
    initial = world.fork()
    async with domain.server.session(world) as session:
        for number, turn in enumerate(episode.turns):
            calls = turn.message.tool_calls
            if len(turn.results) != len(calls):
                return f"turn {number}: {len(calls)} calls, {len(turn.results)} recorded results"
            for call, recorded in zip(calls, turn.results, strict=True):
                answer = await session.call(
                    ToolCall(id=call.id, name=call.name, arguments=call.arguments, error=call.error)
                )
                if (answer.content, answer.is_error) != (recorded.content, recorded.is_error):
                    return (
                        f"turn {number}, {call.name}: answered {answer.content!r}, "
                        f"recorded {recorded.content!r}"
                    )
    again, recorded_changes = _facts(diff(initial, world)), _facts(episode.changes)
    if differences := diff(recorded_changes, again):
        return f"the final world differs from the recorded one: {differences[0]}"
    return None


def _facts(changes: Sequence[Change]) -> dict[str, Json]:
    return {f"{c.path} {c.kind}": {"before": c.before, "after": c.after} for c in changes}
