"""Gold calls earn 1, and doing nothing earns less."""

from __future__ import annotations

from collections.abc import Sequence

from muarl.data.proof.finding import Check, ProofFinding, Subject
from muarl.errors import RewardError
from muarl.messages import Message, ToolCall, ToolResult
from muarl.record import PredicateResult, Turn, UserReply
from muarl.reward import Evidence, evaluate, reward_of
from muarl.spec import PredicateSpec, TaskSpec


async def gold_findings(
    subject: Subject, task: TaskSpec
) -> tuple[list[ProofFinding], float | None]:
    """Make a task's gold calls on a fresh world and score them; score doing nothing beside it.

    The gold calls are scored as the best dialogue that makes them: each is confirmed by the user
    first, and everything that the predicates want said is said.

    Returns:
        What was found, and what doing nothing earns (None if it could not be scored).

    Raises:
        ToolServerError: The server did not start, or died.
    """
    domain = subject.domain
    wanted = task.reward if task.reward is not None else domain.spec.reward
    world = domain.world_for(task)
    heard = UserReply("")
    turns = [_turn(p.said.text, heard) for p in wanted if p.said is not None]
    async with domain.server.session(world) as session:
        initial = world.fork()
        for index, gold in enumerate(task.gold):
            call = ToolCall(id=f"gold_{index}", name=gold.tool, arguments=gold.arguments)
            result = await session.call(call)
            if result.is_error:
                message = f"gold call {gold.tool!r} was answered with an error: {result.content}"
                return [subject.about_task(Check.GOLD, task, ("gold", index), message)], None
            turns += [_turn("", UserReply("yes", act="confirm")), _turn("", None, (call, result))]
    try:
        best = _score(wanted, Evidence(world, world, turns, domain.spec.writes))
        idle = _score(wanted, Evidence(initial, world, [], domain.spec.writes))
    except RewardError as error:
        return [subject.about_task(Check.GOLD, task, ("reward",), str(error))], None
    found = []
    if reward_of(best) < 1:
        message = f"the gold calls earn {reward_of(best):g}, not 1: {_why(best)}"
        found.append(subject.about_task(Check.GOLD, task, ("gold",), message))
    if task.gold and reward_of(idle) >= 1:
        message = (
            "doing nothing already earns 1; let the gold calls change something that the reward "
            "sees, or leave them out"
        )
        found.append(subject.about_task(Check.IDLE, task, ("gold",), message))
    return found, reward_of(idle)


def _score(wanted: Sequence[PredicateSpec], evidence: Evidence) -> list[PredicateResult]:
    return [evaluate(predicate, evidence) for predicate in wanted]


def _why(results: Sequence[PredicateResult]) -> str:
    low = [f"{r.name}: {r.reason}" for r in results if r.score is not None and r.score < 1]
    return "; ".join(low) or "no predicate applies"


def _turn(
    said: str, reply: UserReply | None = None, call: tuple[ToolCall, ToolResult] | None = None
) -> Turn:
    """A turn that no policy sampled."""
    made = () if call is None else (call[0],)
    return Turn(
        message=Message(role="assistant", content=said, tool_calls=made),
        sample=0,
        start=0,
        end=0,
        finish_reason="stop",
        policy_version=0,
        results=[] if call is None else [call[1]],
        reply=reply,
    )
