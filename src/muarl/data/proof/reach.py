"""Everything a task needs can be known: the user tells it, or a tool finds it from what she tells.

Looked at are the texts among the arguments of gold calls, but those that stand in the rules or in a
tool's description, and those of more than a few words, which the agent words itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from muarl.data.proof.finding import Check, ProofFinding, Subject
from muarl.data.proof.gold import GoldRun
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
    subject: Subject, task: TaskSpec, public: Known, reads: Reads, gold: GoldRun
) -> list[ProofFinding]:
    """Values in the agent's gold calls that a persona neither tells nor leads to.

    Args:
        subject: The domain.
        task: The task.
        public: What every agent knows; see `public_words`.
        reads: Tools of either side that only look.
        gold: Its gold calls, and what they were answered.

    Raises:
        ToolServerError: The server did not start, or died.
    """
    needed = [need for need in _unanswered(gold) if not public.hold(need[2])]
    found = [
        subject.about_task(Check.REACH, task, ("gold", index, "tool"), message)
        for index, message in _not_shown(task)
    ]
    for persona in task.personas:
        named = _told(subject, task, persona)
        told = [value for values in named.values() for value in values]
        words = Known(told)
        missing = [at for at in needed if not (words.hold(at[2]) or is_worded(at[2], told))]
        if missing:
            missing = await _not_found(subject, task, missing, named, reads)
        for index, name, value in missing:
            message = (
                f"nobody can know {value!r}, which gold call {index + 1} needs as {name!r}: persona "
                f"{persona!r} does not tell it, and no tool finds it from what she tells"
            )
            loc = ("gold", index, "arguments")
            found.append(subject.about_task(Check.REACH, task, loc, message))
    return found


def _not_shown(task: TaskSpec) -> Iterator[tuple[int, str]]:
    """Gold calls of tools that the agent is not shown by then."""
    for index, call in enumerate(task.gold if task.tools is not None else ()):
        shown = {*(task.tools or ())}.union(*(said.shows for said in task.turns[: call.turn + 1]))
        if call.by == "agent" and call.tool not in shown:
            message = (
                f"nobody can know of {call.tool!r}, which gold call {index + 1} calls: the agent is not "
                "shown it; name it under the task's `tools`, or under `shows` of a turn before"
            )
            yield index, message


def _unanswered(gold: GoldRun) -> Iterator[Need]:
    """What the agent's gold calls need and no gold call before was answered with."""
    answers = Known()
    for index, (call, answer) in enumerate(gold.made):
        for name, text in values_in(call.arguments) if call.by == "agent" else ():
            if not answers.hold(text):
                yield index, name, text
        if call.by == "agent":
            answers.add(answer.content)


def _told(subject: Subject, task: TaskSpec, persona: str) -> dict[str, list[str]]:
    """What a persona tells, asked or not.

    By the names of her ledger's facts; of a task without any, her fixed messages or her goal.
    """
    script, manner = subject.domain.spec.user, subject.domain.spec.personas[persona]
    if task.turns:
        return {"": [turn.says for turn in task.turns]}
    if task.user is None:
        return {"": [task.goal]}
    told: dict[str, list[str]] = {}
    for fact in facts_of(task):
        how = manner.disclose.get(fact.id, fact.disclose)
        heard = how == "volunteer" or script is None or f"ask:{fact.id}" in script.understands
        if how != "never" and heard:
            told.setdefault(fact.id, []).append(fact.value)
    return told


async def _not_found(
    subject: Subject,
    task: TaskSpec,
    missing: Sequence[Need],
    told: Mapping[str, Sequence[str]],
    reads: Reads,
) -> list[Need]:
    """What no tool that only looks answers, asked with what was told and with what was answered."""
    world = subject.world_for(task)
    left = list(missing)
    known = _Gathered(told, whole=task.user is not None)
    tried: set[tuple[Who, str, bytes]] = set()
    async with subject.domain.sides(world) as sides:
        while left and len(tried) < _CALLS:
            untried = (
                (by, tool.name, arguments)
                for by, tool, arguments in known.calls(reads)
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
                known.learn(result.content)
    return left


class _Gathered:
    """What was told and answered so far, by itself and by the name that it stood under.

    Args:
        told: Facts that were told, by their names.
        whole: Each is a value as it is, and not a text to be looked through.
    """

    def __init__(self, told: Mapping[str, Sequence[str]], *, whole: bool) -> None:
        values = [value for values in told.values() for value in values]
        self._values = dict.fromkeys(values if whole else _pieces(values))
        self._named = {name: dict.fromkeys(values) for name, values in told.items() if whole}

    def learn(self, answer: str) -> None:
        """Take in what a tool answered; in JSON a value has the name of its field."""
        self._values |= dict.fromkeys(_pieces([answer]))
        with suppress(msgspec.DecodeError, RecursionError):
            for name, value in _fields(msgspec.json.decode(answer)):
                self._named.setdefault(name, {})[value] = None

    def calls(self, reads: Reads) -> Iterator[tuple[Who, ToolSpec, dict[str, Any]]]:
        """Calls that might find more: first those whose arguments bear their parameters' names."""
        tools = [(by, tool) for by, offered in reads.items() for tool in offered]
        named = {name: list(values) for name, values in self._named.items()}
        for by, tool in tools:
            required = tool.parameters.get("required", tool.parameters.get("properties", {}))
            if named.keys() >= set(required):
                yield from ((by, tool, found) for found in calls_of(tool, named, (), _CALLS))
        values = list(self._values)
        for by, tool in tools:
            yield from ((by, tool, found) for found in calls_of(tool, {}, values, _CALLS))


def _fields(value: Any) -> Iterator[tuple[str, str]]:
    """Texts in JSON data that have a name, and the name."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(inner, str):
                yield name, inner
            yield from _fields(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _fields(inner)


def _pieces(texts: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(piece for text in texts for piece in _PIECE.findall(text)))


def _key(arguments: dict[str, Any]) -> bytes:
    return msgspec.json.encode(arguments, order="deterministic")
