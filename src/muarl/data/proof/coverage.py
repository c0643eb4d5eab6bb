"""Every tool is of use in some task: a call of it was answered without an error."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice

from muarl.data.proof.finding import Check, ProofFinding, Subject
from muarl.data.proof.gold import run_calls
from muarl.data.proof.reads import Reads
from muarl.data.proof.values import calls_of, facts_of, values_of
from muarl.messages import ToolCall, ToolSpec
from muarl.spec.calls import Who

_TASKS = 3
"""In which a tool is tried that no dialogue so far has used."""
_TRIES = 8
"""Calls of it in each."""


async def coverage_findings(
    subject: Subject, offered: Reads, used: Collection[tuple[Who, str]]
) -> list[ProofFinding]:
    """Tools of no use in any task, and those that can only fail.

    Gold calls of tasks that were not looked at are made here, and tools that end a dialogue, which are
    of use in every task, are tried.

    Args:
        subject: The domain.
        offered: The tools of either side.
        used: Those that were called without an error so far.

    Raises:
        ToolServerError: The server did not start, or died.
    """
    domain = subject.domain
    tasks = [task for split in domain.splits for task in domain.tasks(split)]
    found = []
    for by, tools in offered.items():
        for tool in tools:
            if (by, tool.name) in used:
                continue
            in_gold = (t for t in tasks if any((c.by, c.tool) == (by, tool.name) for c in t.gold))
            ends = by == "agent" and tool.name in domain.spec.terminal
            wanted = False
            for task in islice(in_gold, _TASKS):
                wanted = True
                run = await run_calls(subject, task, task.gold)
                if (by, tool.name) in run.tools:
                    break
            else:
                if ends and await _may_work(subject, tool):
                    continue
                message = _FAILS if wanted or ends else _UNUSED
                loc = ("tools",) if by == "agent" else ("device", "tools")
                found.append(
                    subject.about(Check.COVERAGE, loc, message.format(repr(tool.name)), at_key=True)
                )
    return found


async def _may_work(subject: Subject, tool: ToolSpec) -> bool:
    """Whether some call of a tool of the agent's is answered without an error."""
    for task in islice(subject.all_tasks(), _TASKS):
        others = list(dict.fromkeys(fact.value for fact in facts_of(task))) or ["x"]
        for arguments in calls_of(tool, values_of(task), others, _TRIES):
            async with subject.domain.sides(subject.world_for(task)) as sides:
                result = await sides["agent"].call(ToolCall("coverage", tool.name, arguments))
            if not result.is_error:
                return True
    return False


_UNUSED = (
    "no task exercises tool {}: no gold call makes it, the expert does not, and it answers to nothing "
    "that a task speaks of; add a task, or drop the tool"
)
_FAILS = (
    "no call of tool {} was answered without an error; mend it, or let a gold call or the expert call "
    "it with arguments that it takes"
)
