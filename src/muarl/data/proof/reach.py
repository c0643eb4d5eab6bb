"""Everything a task needs can be known: the user tells it, or a tool finds it from what she tells.

Looked at are the texts among the arguments of gold calls, but those that stand in the rules or in a
tool's description, and those of more than a few words, which the agent words itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from muarl.data.proof.finding import Check, ProofFinding, Subject
from muarl.data.proof.reads import Reads
from muarl.data.proof.values import calls_of, facts_of
from muarl.messages import ToolCall, ToolSpec
from muarl.spec import TaskSpec
from muarl.spec.calls import Who
from muarl.spoken.known import Known, is_worded, values_in

_CALLS = 64
"""Calls made to find what one persona does not tell."""
Need = tuple[int, str, str]
"""Position of a gold call, name of an argument, and a text in it."""

_PIECE = re.compile(r"[\w@.#+-]*\w")


def public_words(subject: Subject, tools: Sequence[ToolSpec]) -> Known:
    """What the rules and the tools' descriptions say: known to every agent."""
    return Known([subject.domain.spec.rules, msgspec.json.encode(list(tools)).decode()])


async def reach_findings(
    subject: Subject, task: TaskSpec, public: Known, reads: Reads
) -> list[ProofFinding]:
    """Values in the agent's gold calls that a persona neither tells nor leads to.

    Args:
        subject: The domain.
        task: The task.
        public: What every agent knows; see `public_words`.
        reads: Tools of either side that only look.

    Raises:
        ToolServerError: The server did not start, or died.
    """
    needed = [at for at in _needed(task) if not public.hold(at[2])]
    found = []
    for persona in task.personas:
        told = _told(subject, task, persona)
        words = Known(told)
        missing = [at for at in needed if not (words.hold(at[2]) or is_worded(at[2], told))]
        if missing:
            missing = await _not_found(subject, task, missing, told, reads)
        for index, name, value in missing:
            message = (
                f"nobody can know {value!r}, which gold call {index + 1} needs as {name!r}: persona "
                f"{persona!r} does not tell it, and no tool finds it from what she tells"
            )
            loc = ("gold", index, "arguments")
            found.append(subject.about_task(Check.REACH, task, loc, message))
    return found


def _needed(task: TaskSpec) -> Iterator[Need]:
    for index, call in enumerate(task.gold):
        for name, text in values_in(call.arguments) if call.by == "agent" else ():
            yield index, name, text


def _told(subject: Subject, task: TaskSpec, persona: str) -> list[str]:
    """What a persona tells, asked or not: her ledger's facts, or her goal where she has no ledger."""
    script, manner = subject.domain.spec.user, subject.domain.spec.personas[persona]
    if task.user is None:
        return [task.goal]
    told = []
    for fact in facts_of(task):
        how = manner.disclose.get(fact.id, fact.disclose)
        heard = how == "volunteer" or script is None or f"ask:{fact.id}" in script.understands
        if how != "never" and heard:
            told.append(fact.value)
    return told


async def _not_found(
    subject: Subject,
    task: TaskSpec,
    missing: Sequence[Need],
    told: Sequence[str],
    reads: Reads,
) -> list[Need]:
    """What no tool that only looks answers, asked with what was told and with what was answered."""
    world = subject.world_for(task)
    left = list(missing)
    known = list(told) if task.user is not None else _pieces(told)
    tried: set[tuple[Who, str, bytes]] = set()
    async with subject.domain.sides(world) as sides:
        while left and len(tried) < _CALLS:
            untried = (
                (by, tool.name, arguments)
                for by, tools in reads.items()
                for tool in tools
                for arguments in calls_of(tool, {}, known, _CALLS)
                if (by, tool.name, _key(arguments)) not in tried
            )
            call = next(untried, None)
            if call is None:
                break
            by, name, arguments = call
            tried.add((by, name, _key(arguments)))
            result = await sides[by].call(ToolCall(f"reach_{len(tried)}", name, arguments))
            if not result.is_error:
                answer = Known([result.content])
                left = [need for need in left if not answer.hold(need[2])]
                known = list(dict.fromkeys([*known, *_pieces([result.content])]))
    return left


def _pieces(texts: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(piece for text in texts for piece in _PIECE.findall(text)))


def _key(arguments: dict[str, Any]) -> bytes:
    return msgspec.json.encode(arguments, order="deterministic")
