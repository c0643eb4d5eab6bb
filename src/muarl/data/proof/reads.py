"""Looking changes nothing: neither the world nor what a dialogue is worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muarl.data.proof.finding import Check, ProofFinding, Subject
from muarl.data.proof.gold import GoldRun, scored, why
from muarl.data.proof.values import calls_of, facts_of, values_of
from muarl.messages import ToolSpec
from muarl.reward import reward_of
from muarl.spec import PredicateSpec, TaskSpec
from muarl.tools import ToolSession
from muarl.world import diff

_TRIES = 8
"""Calls of one tool until one is answered without an error."""


def reads_of(subject: Subject, tools: Sequence[ToolSpec]) -> list[ToolSpec]:
    """Tools that only look: all but the domain's writes and those that end a dialogue."""
    spec = subject.domain.spec
    return [tool for tool in tools if tool.name not in (*spec.writes, *spec.terminal)]


async def read_findings(
    subject: Subject, task: TaskSpec, gold: GoldRun, reads: Sequence[ToolSpec]
) -> tuple[list[ProofFinding], set[str]]:
    """Look at everything before and after the gold calls: world and reward must be as without.

    Predicates that limit calls or turns, or forbid a read by name, mean what they say, and are left
    out.

    Returns:
        What was found, and the tools that answered without an error.

    Raises:
        ToolServerError: The server did not start, or died.
        RewardError: A predicate could not be evaluated.
    """
    domain = subject.domain
    world = domain.world_for(task)
    async with domain.server.session(world) as session:
        run = GoldRun(world, list(gold.said))
        for tool in reads:
            if change := await _look(session, run, tool, task):
                return [_writes(subject, tool, task, change)], run.tools
        for call in task.gold:
            await run.call(session, call.tool, call.arguments)
        for tool in reads:
            if change := await _look(session, run, tool, task):
                return [_writes(subject, tool, task, change)], run.tools
    rewards = [domain.reward_for(task, training=training) for training in (False, True)]
    for reward in rewards if rewards[0] is not rewards[1] else rewards[:1]:
        wanted = [predicate for predicate in reward if not _limits(predicate, reads)]
        results = await scored(subject, task, gold.world, run, wanted)
        if wanted and reward_of(results) < 1:
            message = (
                f"the gold calls earn {reward_of(results):g} where the agent also looks at "
                f"something, not 1: {why(results)}"
            )
            return [subject.about_task(Check.READS, task, ("gold",), message)], run.tools
    return [], run.tools


async def _look(session: ToolSession, run: GoldRun, tool: ToolSpec, task: TaskSpec) -> str:
    """Call a tool until it answers; what that changed in the world, or ""."""
    named = values_of(task)
    others: list[Any] = list(dict.fromkeys(fact.value for fact in facts_of(task)))
    for arguments in calls_of(tool, named, others or ["x"], _TRIES):
        before = run.world.fork()
        good = await run.look(session, tool.name, arguments)
        if changes := diff(before, run.world):
            return str(changes[0])
        if good:
            break
    return ""


def _writes(subject: Subject, tool: ToolSpec, task: TaskSpec, change: str) -> ProofFinding:
    message = (
        f"tool {tool.name!r}, which `writes` does not name, changes the world (task {task.id!r}: "
        f"{change}); name it there, or let it only look"
    )
    return subject.about(Check.READS, ("writes",), message, at_key=True)


def _limits(predicate: PredicateSpec, reads: Sequence[ToolSpec]) -> bool:
    names = {tool.name for tool in reads}
    return any(
        (part.count is not None and part.count.of in ("turns", "calls"))
        or (part.never_called is not None and part.never_called.tool in names)
        or (part.called is not None and part.called.tool in names and part.called.at_most)
        for _, part in predicate.walk()
    )
