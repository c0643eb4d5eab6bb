"""Episodes in the form the page reads.

Values a tool or a model produced travel as JSON *text*: a browser would read `1.0` as `1` and lose
digits of long integers, and the viewer shows what was written.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import msgspec

from muarl.messages import ToolCall, ToolResult
from muarl.record import Episode, Sample, Turn, UserReply
from muarl.report.choose import VERDICTS, Choice, verdict
from muarl.world import Change

PAGE_BYTES = 8_000_000
"""Room for episodes in one page; long dialogues use it up sooner, and the page says what is left."""


class Embedded(msgspec.Struct):
    """Everything the viewer needs.

    Attributes:
        episodes: Encoded, in the order to read them.
        systems: Distinct system prompts; episodes refer to them by position.
        toolsets: Distinct lists of offered tools, likewise.
        shown: Per phase and verdict, how many of how many are shown.
        token_ids: Ids that occur in the shown episodes.
    """

    episodes: list[msgspec.Raw]
    systems: list[str]
    toolsets: list[list[dict[str, str]]]
    shown: list[dict[str, Any]]
    token_ids: set[int]


def embed(choice: Choice, room: int = PAGE_BYTES) -> Embedded:
    """Encode chosen episodes, first to last, as far as there is room."""
    systems: dict[str, int] = {}
    toolsets: dict[bytes, int] = {}
    page = Embedded([], [], [], [], set())
    shown: dict[tuple[str, str], int] = {}
    placed: list[tuple[tuple[int, int, int], msgspec.Raw]] = []
    used = 0
    for episode in choice.episodes:
        tools = [
            {"name": t.name, "description": t.description, "parameters": _json(t.parameters)}
            for t in episode.tools
        ]
        tools_key = msgspec.json.encode(tools)
        if tools_key not in toolsets:
            toolsets[tools_key] = len(page.toolsets)
            page.toolsets.append(tools)
        if episode.system not in systems:
            systems[episode.system] = len(page.systems)
            page.systems.append(episode.system)
        form = _episode(episode, systems[episode.system], toolsets[tools_key])
        encoded = msgspec.json.encode(form)
        if used + len(encoded) > room:
            continue
        used += len(encoded)
        kind = (episode.key.phase, verdict(episode))
        place = (choice.phases.index(kind[0]), episode.key.iteration, VERDICTS.index(kind[1]))
        placed.append((place, msgspec.Raw(encoded)))
        page.token_ids.update(i for sample in episode.samples for i in sample.token_ids)
        shown[kind] = shown.get(kind, 0) + 1
    placed.sort(key=lambda pair: pair[0])
    page.episodes = [encoded for _, encoded in placed]
    page.shown = [
        {"phase": phase, "verdict": kind, "shown": shown.get((phase, kind), 0), "total": total}
        for phase in choice.phases
        for kind in VERDICTS
        if (total := choice.totals[phase, kind])
    ]
    return page


def _episode(episode: Episode, system: int, tools: int) -> dict[str, Any]:
    key = episode.key
    return {
        "id": str(key),
        "phase": key.phase,
        "iteration": key.iteration,
        "task": key.task_id,
        "sample": key.sample,
        "persona": episode.persona,
        "user": episode.user,
        "split": episode.split,
        "task_hash": episode.task_hash,
        "content_hash": episode.content_hash,
        "outcome": episode.outcome.value,
        "verdict": verdict(episode),
        "error": episode.error,
        "reward": episode.reward,
        "rewards": episode.rewards,
        "metrics": episode.metrics,
        "forks": episode.forks,
        "system": system,
        "tools": tools,
        "opening": _reply(episode.opening),
        "turns": [_turn(turn) for turn in episode.turns],
        "changes": [_change(change) for change in episode.changes],
        "samples": [_sample(sample) for sample in episode.samples],
    }


def _turn(turn: Turn) -> dict[str, Any]:
    return {
        "text": turn.message.content,
        "reasoning": turn.message.reasoning,
        "calls": _calls(turn.message.tool_calls, turn.results),
        "reply": None if turn.reply is None else _reply(turn.reply),
        "changes": [_change(change) for change in turn.changes],
        "finish": turn.finish_reason,
        "version": turn.policy_version,
        "sample": turn.sample,
        "start": turn.start,
        "end": turn.end,
    }


def _reply(reply: UserReply) -> dict[str, Any]:
    """What the user said, and what she did on her own device before."""
    return {
        "text": reply.text,
        "stop": reply.stop,
        "act": reply.act,
        "knobs": reply.knobs,
        "breaches": reply.breaches,
        "calls": _calls(reply.calls, reply.results),
        "changes": [_change(change) for change in reply.changes],
    }


def _calls(calls: Sequence[ToolCall], results: Sequence[ToolResult]) -> list[dict[str, Any]]:
    return [_call(call, result) for call, result in zip_longest(calls, results)]


def _call(call: ToolCall | None, result: ToolResult | None) -> dict[str, Any]:
    """A call with its answer; either may be missing in a dialogue that was cut."""
    return {
        "name": call.name if call else result.name if result else "",
        "arguments": [[k, _json(v)] for k, v in call.arguments.items()] if call else [],
        "error": call.error if call else None,
        "raw": call.raw if call else "",
        "result": result.content if result else None,
        "is_error": bool(result and result.is_error),
    }


def _change(change: Change) -> dict[str, str]:
    return {
        "path": change.path,
        "kind": change.kind,
        "before": _json(change.before),
        "after": _json(change.after),
    }


def _sample(sample: Sample) -> dict[str, Any]:
    return {
        "ids": sample.token_ids,
        "spans": [[span.start, span.end, span.policy_version] for span in sample.spans],
        "logprobs": [round(logprob, 4) for logprob in sample.logprobs],
    }


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
