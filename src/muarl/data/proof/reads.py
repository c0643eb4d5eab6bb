"""Looking changes nothing: neither the world nor what a dialogue is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muarl.data.proof.finding import Check, ProofFinding, Subject
from muarl.data.proof.gold import GoldRun, Sides, scored, why
from muarl.data.proof.values import calls_of, facts_of, values_of
from muarl.messages import ToolSpec
from muarl.reward import reward_of
from muarl.spec import GoldCallSpec, PredicateSpec, TaskSpec
from muarl.spec.calls import Who
from muarl.world import diff

_TRIES = 8
"""Calls of one tool until one is answered without an error."""


Reads = Mapping[Who, Sequence[ToolSpec]]
"""Whose tools they are, and the tools."""


def reads_of(
    subject: Subject, tools: Sequence[ToolSpec], user_tools: Sequence[ToolSpec] = ()
) -> Reads:
    """Tools that only look: all but the writes of either side and those that end a dialogue."""
    spec = subject.domain.spec
    hers = spec.device.writes if spec.device is not None else ()
    return {
        "agent": [tool for tool in tools if tool.name not in (*spec.writes, *spec.terminal)],
        "user": [tool for tool in user_tools if tool.name not in hers],
    }


async def read_findings(
    subject: Subject, task: TaskSpec, gold: GoldRun, reads: Reads
) -> tuple[list[ProofFinding], GoldRun]:
    """Look at everything before and after the gold calls: world and reward must be as without.

    Predicates that limit calls or turns, or forbid a read by name, mean what they say, and are left
    out.

    Returns:
        What was found, and the run with what was looked at.

    Raises:
        ToolServerError: The server did not start, or died.
        RewardError: A predicate could not be evaluated.
    """
    domain = subject.domain
    world = subject.world_for(task)
    looks = [(by, tool) for by, offered in reads.items() for tool in offered]
    async with domain.sides(world) as sides:
        run = GoldRun(world, task.turns, confirmed=domain.spec.benchmark is None)
        for by, tool in looks:
            if change := await _look(sides, run, by, tool, task):
                return [_writes(subject, by, tool, task, change)], run
        for call in task.gold:
            await run.call(sides, call)
        run.go_on(len(task.turns))
        for by, tool in looks:
            if change := await _look(sides, run, by, tool, task):
                return [_writes(subject, by, tool, task, change)], run
    rewards = [domain.reward_for(task, training=training) for training in (False, True)]
    for reward in rewards if rewards[0] is not rewards[1] else rewards[:1]:
        wanted = [predicate for predicate in reward if not _limits(predicate, reads)]
        results = await scored(subject, task, gold.world, run, wanted)
        if wanted and reward_of(results) < 1:
            message = (
                f"the gold calls earn {reward_of(results):g} where the agent also looks at "
                f"something, not 1: {why(results)}"
            )
            return [subject.about_task(Check.READS, task, ("gold",), message)], run
    return [], run


async def _look(sides: Sides, run: GoldRun, by: Who, tool: ToolSpec, task: TaskSpec) -> str:
    """Call a tool until it answers; what that changed in the world, or ""."""
    named = values_of(task)
    others: list[Any] = list(dict.fromkeys(fact.value for fact in facts_of(task)))
    for arguments in calls_of(tool, named, others or ["x"], _TRIES):
        before = run.world.fork()
        call = GoldCallSpec(tool=tool.name, arguments=arguments, by=by)
        refusal = await run.look(sides, call)
        if changes := diff(before, run.world):
            return str(changes[0])
        if refusal is None:
            break
    return ""


def _writes(subject: Subject, by: Who, tool: ToolSpec, task: TaskSpec, change: str) -> ProofFinding:
    loc = ("writes",) if by == "agent" else ("device", "writes")
    message = (
        f"tool {tool.name!r}, which `{'.'.join(loc)}` does not name, changes the world (task "
        f"{task.id!r}: {change}); name it there, or let it only look"
    )
    return subject.about(Check.READS, loc, message, at_key=True)


def _limits(predicate: PredicateSpec, reads: Reads) -> bool:
    looks = {(by, tool.name) for by, offered in reads.items() for tool in offered}
    return any(
        (part.count is not None and part.count.of in ("turns", "calls"))
        or (never is not None and (never.by, never.tool) in looks)
        or (called is not None and (called.by, called.tool) in looks and called.at_most)
        for _, part in predicate.walk()
        for never, called in [(part.never_called, part.called)]
    )
