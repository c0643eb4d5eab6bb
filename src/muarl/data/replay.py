"""Verify episodes by doing them again: their calls, on a fresh world, must answer as recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from muarl.data.stored import StoredTasks, judged_again
from muarl.environments import whose_calls
from muarl.errors import EpisodeError, RecordError, SpecError
from muarl.messages import Message, ToolCall, ToolResult
from muarl.record import Episode, PredicateResult
from muarl.spec import RewardFile, TaskSpec
from muarl.spec.calls import Who
from muarl.suite import AnyDomain
from muarl.tools import ToolSession
from muarl.world import Change, World, diff, equal


async def replay_problem(domain: AnyDomain, task: TaskSpec, episode: Episode) -> str | None:
    """What differs when an episode's tool calls are made again; None if nothing does.

    Compares every result and the final world. Needs no model and no user.
    """
    _, problem = await _replay(domain, task, episode)
    return problem


class Replayed(msgspec.Struct):
    """What became of replaying stored episodes.

    Attributes:
        same: Episodes that came out as recorded.
        different: Episodes that did not.
        faults: Episodes that were not replayed: they ended by no doing of the policy, unscored.
    """

    same: int = 0
    different: int = 0
    faults: int = 0


async def replay_all(
    domain: AnyDomain,
    episodes: Iterable[Episode],
    tell: Callable[[Episode, str], None],
    predicates: RewardFile | None = None,
) -> Replayed:
    """Replay stored episodes, one at a time; what cannot be replayed is a difference too.

    Args:
        domain: The domain.
        episodes: Gone through once.
        tell: Takes each difference.
        predicates: As in `replay_differences`.

    Raises:
        SpecError: What the domain's tools change outlives a dialogue; a replay would do it again.
    """
    if any(one.spec.writes_outside for one in domain.members):
        message = (
            "its tools change something outside the dialogue's own world (tools.external), which a "
            "replay would do again; `muarl score` calls no tool for what happened"
        )
        raise SpecError([domain.located.problem(("tools",), message)])
    tasks = StoredTasks(domain)
    tally = Replayed()
    async with domain.sharing():
        for episode in episodes:
            if episode.outcome.is_fault:
                tally.faults += 1
                continue
            try:
                found = await replay_differences(domain, tasks.of(episode), episode, predicates)
            except (EpisodeError, RecordError) as error:
                found = [str(error).removeprefix(f"{episode.key}: ")]
            for difference in found:
                tell(episode, difference)
            if found:
                tally.different += 1
            else:
                tally.same += 1
    return tally


async def replay_differences(
    domain: AnyDomain, task: TaskSpec, episode: Episode, predicates: RewardFile | None = None
) -> list[str]:
    """Everything in which an episode differs from what its record says.

    Its calls are made again, and the world they lead to is judged again.

    Args:
        domain: The domain.
        task: The episode's.
        episode: One that was scored; a fault has nothing to compare.
        predicates: What it was scored by, where that is neither the domain's nor the task's own.

    Raises:
        ToolServerError: The tool server does not start, or died.
        RewardError: A predicate could not be evaluated.
    """
    worlds, problem = await _replay(domain, task, episode)
    if problem is not None:
        return [problem]
    verdict = await judged_again(domain, task, episode, worlds, predicates)
    found = []
    if verdict.reward != episode.reward:
        found.append(f"reward: recorded {episode.reward}, now {verdict.reward:g}")
    found += _results("reward", episode.rewards, verdict.rewards)
    found += _results("metric", episode.metrics, verdict.metrics)
    return found


async def _replay(
    several: AnyDomain, task: TaskSpec, episode: Episode
) -> tuple[tuple[World, World], str | None]:
    """The worlds before and after an episode's calls, and what differs first on the way there."""
    domain = several.of(task.id)
    world = domain.world_for(task)
    declared = world.fork()
    async with domain.sides(world) as sides:
        initial = world.fork()
        changes = _changes(episode.start, diff(declared, initial), "initial")
        if found := next(changes, None):
            return (initial, world), found
        for what, who, calls, results, message in _called(episode):
            whose_calls.set(message)
            if calls and who not in sides:
                gone = f"{what}, {calls[0].name}: the domain has no `device` any more"
                return (initial, world), gone
            if (calls or results) and (found := await _again(sides[who], calls, results)):
                return (initial, world), f"{what}{found}"
        if episode.turns and episode.turns[-1].finish_reason == "length":
            domain.cut_short(world, episode.turns[-1].message)
    different = next(_changes(episode.changes, diff(initial, world), "final"), None)
    return (initial, world), different


_Called = tuple[str, Who, Sequence[ToolCall], Sequence[ToolResult], Message | None]
"""Where in the dialogue, who called, what, what was answered, and the policy's message that called."""


def _called(episode: Episode) -> Iterator[_Called]:
    """All calls of an episode, in the order in which they were made."""
    yield "opening", "user", episode.opening.calls, episode.opening.results, None
    for number, turn in enumerate(episode.turns):
        yield f"turn {number}", "agent", turn.calls, turn.results, turn.message
        if turn.reply is not None:
            reply = turn.reply
            yield f"turn {number}, the user", "user", reply.calls, reply.results, None


async def _again(
    session: ToolSession, calls: Sequence[ToolCall], results: Sequence[ToolResult]
) -> str | None:
    """Make calls again that came to the server; the first thing that is not as recorded."""
    if len(results) != len(calls):
        return f": {len(calls)} calls, {len(results)} recorded results"
    for call, recorded in zip(calls, results, strict=True):
        if recorded.instead:
            continue
        answer = await session.call(
            ToolCall(id=call.id, name=recorded.name, arguments=call.arguments, error=call.error)
        )
        if (answer.content, answer.is_error) != (recorded.content, recorded.is_error):
            return f", {call.name}: answered {answer.content!r}, recorded {recorded.content!r}"
    return None


def _changes(recorded: Sequence[Change], again: Sequence[Change], which: str) -> Iterator[str]:
    was, now = ({change.path: change for change in changes} for changes in (recorded, again))
    for path in dict.fromkeys([*was, *now]):
        before, after = was.get(path), now.get(path)
        if before is None or after is None or not _same(before, after):
            yield (
                f"the {which} world differs from the recorded one: "
                f"recorded {_shown(before)}, now {_shown(after)}"
            )


def _same(one: Change, other: Change) -> bool:
    return (
        one.kind == other.kind and equal(one.before, other.before) and equal(one.after, other.after)
    )


def _shown(change: Change | None) -> str:
    return "no change" if change is None else f"`{change}`"


def _results(
    kind: str, recorded: Sequence[PredicateResult], again: Sequence[PredicateResult]
) -> Iterator[str]:
    was, now = ({result.name: result.score for result in results} for results in (recorded, again))
    for name in dict.fromkeys([*was, *now]):
        before, after = was.get(name, "nothing"), now.get(name, "nothing")
        if before != after:
            yield f"{kind} {name}: recorded {before}, now {after}"
