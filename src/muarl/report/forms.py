"""Episodes in the form that pages read.

Values a tool or a model produced travel as JSON *text*: a browser would read `1.0` as `1` and lose
digits of long integers, and the viewer shows what was written.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import msgspec

from muarl.messages import ToolCall, ToolResult
from muarl.record import Episode, Sample, Turn, UserReply, changes_of
from muarl.record.learned import Learned
from muarl.report.rows import verdict
from muarl.world import Change


def tools_form(episode: Episode) -> list[dict[str, str]]:
    """The tools that the policy was offered."""
    return [
        {"name": t.name, "description": t.description, "parameters": _json(t.parameters)}
        for t in episode.tools
    ]


def samples_form(episode: Episode, learned: Learned | None = None) -> list[dict[str, Any]]:
    """The tokens, with the trainer's log-probs where a run wrote them down."""
    trainer = learned.trainer_logprobs if learned is not None else None
    return [
        _sample(sample, trainer[number] if trainer and number < len(trainer) else None)
        for number, sample in enumerate(episode.samples)
    ]


def dialogue_form(episode: Episode, learned: Learned | None = None) -> dict[str, Any]:
    """All of an episode but its system prompt, its tools and its tokens."""
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
        "opening": _reply(episode.opening),
        "turns": [_turn(turn) for turn in episode.turns],
        "changes": [_change(change) for change in episode.changes],
        "advantages": learned.turns if learned is not None else None,
    }


def _turn(turn: Turn) -> dict[str, Any]:
    return {
        "text": turn.said,
        "reasoning": turn.message.reasoning,
        "calls": _calls(turn.calls, turn),
        "reply": None if turn.reply is None else _reply(turn.reply),
        "changes": _together(turn),
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
        "calls": _calls(reply.calls, reply),
        "changes": _together(reply),
    }


def _calls(calls: Sequence[ToolCall], made: Turn | UserReply) -> list[dict[str, Any]]:
    return [
        _call(call, result, changes_of(made, number))
        for number, (call, result) in enumerate(zip_longest(calls, made.results))
    ]


def _together(made: Turn | UserReply) -> list[dict[str, str]]:
    """What its calls changed, where the record does not say which of them."""
    if all(changes_of(made, number) is not None for number in range(len(made.results))):
        return []
    return [_change(change) for change in made.changes]


def _call(
    call: ToolCall | None, result: ToolResult | None, changes: Sequence[Change] | None
) -> dict[str, Any]:
    """A call with its answer; either may be missing in a dialogue that was cut."""
    return {
        "name": call.name if call else result.name if result else "",
        "arguments": [[k, _json(v)] for k, v in call.arguments.items()] if call else [],
        "error": call.error if call else None,
        "raw": call.raw if call else "",
        "result": result.content if result else None,
        "is_error": bool(result and result.is_error),
        "changes": None if changes is None else [_change(change) for change in changes],
    }


def _change(change: Change) -> dict[str, str]:
    return {
        "path": change.path,
        "kind": change.kind,
        "before": _json(change.before),
        "after": _json(change.after),
    }


def _sample(sample: Sample, trainer: Sequence[float] | None) -> dict[str, Any]:
    form: dict[str, Any] = {
        "ids": sample.token_ids,
        "spans": [[span.start, span.end, span.policy_version] for span in sample.spans],
        "logprobs": [round(logprob, 4) for logprob in sample.logprobs],
    }
    if trainer is not None and len(trainer) == len(sample.logprobs):
        form["trainer"] = [round(logprob, 4) for logprob in trainer]
    return form


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
