"""Stored episodes as a log of inspect_ai, so that its viewer and its data frames read them.

A log is of one task and one model: here one phase of a run. Each episode is a sample; dialogues on the same
task are its epochs. What is written is the JSON form of inspect's log, version 2, as its documentation
has it (https://inspect.aisi.org.uk/eval-logs.html); inspect_ai itself is not needed to write it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from muarl.evaluate.failures import failure_of
from muarl.evaluate.statistics import Interval, mean_share, success_rate
from muarl.messages import Message, ToolCall, ToolResult, with_rules
from muarl.record import Episode, EpisodeHead, PredicateResult
from muarl.record.saving import saving
from muarl.version import __version__

_FULL = 1 - 1e-6
_VERSION = 2


def inspect_samples(episodes: Iterable[Episode]) -> Iterator[dict[str, Any]]:
    """A sample for each episode; a fault has an error, and no score (law L2)."""
    epochs: Counter[str] = Counter()
    for episode in episodes:
        epochs[episode.key.task_id] += 1
        messages = list(_messages(episode))
        beginning = len(with_rules(episode.system)) + 1
        yield {
            "id": episode.key.task_id,
            "epoch": epochs[episode.key.task_id],
            "input": messages[:beginning],
            "target": "",
            "messages": messages,
            "output": _output(episode, messages),
            "scores": _scores(episode),
            "metadata": _metadata(episode),
            "error": _error(episode),
        }


def inspect_header(
    heads: Sequence[EpisodeHead], *, phase: str, model: str, created: datetime
) -> dict[str, Any]:
    """All of a log but its samples.

    Args:
        heads: Of its episodes.
        phase: Their phase.
        model: Who played the agent.
        created: When the record was written.
    """
    scored = [head for head in heads if head.reward is not None and not head.outcome.is_fault]
    rewards: defaultdict[str, list[float]] = defaultdict(list)
    for head in scored:
        rewards[head.key.task_id].append(head.reward or 0.0)
    success = success_rate({task: [r >= _FULL for r in of] for task, of in rewards.items()})
    tasks = list(dict.fromkeys(head.key.task_id for head in heads))
    when = created.astimezone(UTC).isoformat(timespec="seconds")
    name = heads[0].domain or "muarl"
    return {
        "version": _VERSION,
        "status": "success",
        "eval": {
            "created": when,
            "task": name,
            "task_id": f"{name}:{phase}",
            "run_id": f"{phase}:{heads[0].key.run_seed}",
            "eval_id": f"{name}:{phase}:{heads[0].key.run_seed}",
            "dataset": {"name": heads[0].split, "samples": len(tasks), "sample_ids": tasks},
            "model": model,
            "config": {"epochs": max(Counter(head.key.task_id for head in heads).values())},
            "packages": {"muarl": __version__},
            "metadata": {"phase": phase},
        },
        "plan": {"name": "muarl", "steps": []},
        "results": {
            "total_samples": len(heads),
            "completed_samples": len(scored),
            "scores": [
                _score("success", success, len(heads) - len(scored)),
                _score("reward", mean_share(rewards), len(heads) - len(scored)),
            ],
        },
        "stats": {"started_at": when, "completed_at": when},
    }


def write_inspect(header: Mapping[str, Any], samples: Iterable[dict[str, Any]], path: Path) -> int:
    """Write a log, sample by sample; gives their number.

    Raises:
        RecordError: The disk said no.
    """
    encoder = msgspec.json.Encoder()
    count = 0
    with saving(path), path.open("wb") as file:
        file.write(encoder.encode(header).removesuffix(b"}") + b',"samples":[')
        for sample in samples:
            file.write((b",\n" if count else b"\n") + encoder.encode(sample))
            count += 1
        file.write(b"\n]}\n")
    return count


def _messages(episode: Episode) -> Iterator[dict[str, Any]]:
    for message in (*with_rules(episode.system), Message("user", episode.opening.text)):
        yield {"role": message.role, "content": message.content}
    for turn in episode.turns:
        calls = [_call(call) for call in turn.calls]
        said = {"role": "assistant", "content": turn.said, "source": "generate"}
        yield said | ({"tool_calls": calls} if calls else {})
        for call, result in zip(turn.calls, turn.results, strict=False):
            yield _answer(call, result)
        if turn.reply is not None and turn.reply.text:
            yield {"role": "user", "content": turn.reply.text}


def _call(call: ToolCall) -> dict[str, Any]:
    made = {"id": call.id, "function": call.name, "arguments": call.arguments, "type": "function"}
    return made if call.error is None else {**made, "parse_error": f"{call.error}: {call.raw}"}


def _answer(call: ToolCall, result: ToolResult) -> dict[str, Any]:
    answer = {
        "role": "tool",
        "content": result.content,
        "tool_call_id": call.id,
        "function": call.name,
    }
    error = {"type": "unknown", "message": result.content}
    return {**answer, "error": error} if result.is_error else answer


def _output(episode: Episode, messages: Sequence[dict[str, Any]]) -> dict[str, Any]:
    said = [message for message in messages if message["role"] == "assistant"]
    usages = [turn.usage for turn in episode.turns if turn.usage is not None]
    sent = sum(usage.prompt_tokens or 0 for usage in usages)
    written = sum(usage.completion_tokens or 0 for usage in usages) or episode.num_sampled
    last = episode.turns[-1].finish_reason if episode.turns else "stop"
    reason = "max_tokens" if last == "length" else "stop"
    return {
        "model": episode.elsewhere or "muarl",
        "choices": [{"message": said[-1], "stop_reason": reason}] if said else [],
        "usage": {
            "input_tokens": sent,
            "output_tokens": written,
            "total_tokens": sent + written,
        },
    }


def _scores(episode: Episode) -> dict[str, Any]:
    if episode.reward is None or episode.outcome.is_fault:
        return {}
    reasons = "; ".join(f"{found.name}: {found.reason}" for found in episode.rewards)
    own = {
        "success": {"value": "C" if episode.reward >= _FULL else "I", "explanation": reasons},
        "reward": {"value": episode.reward, "explanation": reasons},
    }
    return {**{found.name: _found(found) for found in episode.metrics}, **own}


def _found(found: PredicateResult) -> dict[str, Any]:
    """A metric's score; where it does not apply, inspect has no number either."""
    value = "N" if found.score is None else found.score
    return {"value": value, "explanation": found.reason, "metadata": {"evidence": found.evidence}}


def _metadata(episode: Episode) -> dict[str, Any]:
    key = episode.key
    return {
        "muarl_key": str(key),
        "persona": episode.persona,
        "user": episode.user,
        "split": episode.split,
        "outcome": episode.outcome.value,
        "failure": failure_of(episode),
        "changes": [msgspec.to_builtins(change) for change in episode.changes],
    }


def _error(episode: Episode) -> dict[str, Any] | None:
    if not episode.outcome.is_fault:
        return None
    words = episode.error or episode.outcome.value
    return {"message": words, "traceback": "", "traceback_ansi": ""}


def _score(name: str, found: Interval, unscored: int) -> dict[str, Any]:
    told = {"mean": found.value, "low_95": found.low, "high_95": found.high}
    return {
        "name": name,
        "scorer": name,
        "scored_samples": found.n,
        "unscored_samples": unscored,
        "metrics": {
            of: {"name": of, "value": value} for of, value in told.items() if value is not None
        },
    }
