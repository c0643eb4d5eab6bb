"""From stored episodes to rows: one for each episode, or one for each sample."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from muarl.kernel.advantage import group_advantages
from muarl.messages import Message, ToolCall, with_rules
from muarl.record import Episode, EpisodeHead, EpisodeKey, PredicateResult, Sample
from muarl.spec.grpo import Baseline
from muarl.world import Change

Row = dict[str, Any]
"""Column to value; every row of a kind has the same columns."""

NOT_SAMPLED = -1
"""Stands where a token was not sampled, among policy versions."""


def advantages(heads: Iterable[EpisodeHead], baseline: Baseline = "std") -> dict[EpisodeKey, float]:
    """Advantage of each scored episode over its siblings; faults have none, and count nowhere.

    A group of which fewer than two episodes were scored has no baseline, and is left out.
    """
    groups: defaultdict[tuple[str, int, str], list[EpisodeHead]] = defaultdict(list)
    for head in heads:
        if head.reward is not None:
            groups[head.key.group].append(head)
    found: dict[EpisodeKey, float] = {}
    for members in groups.values():
        if len(members) > 1:
            values = group_advantages([head.reward for head in members], baseline=baseline)
            found |= {m.key: v for m, v in zip(members, values, strict=True) if v is not None}
    return found


def sample_rows(
    episodes: Iterable[Episode], advantage: Mapping[EpisodeKey, float]
) -> Iterator[Row]:
    """A row for each sample with something sampled in it; faults give none (law L2).

    Raises:
        RecordError: An episode was played by a model behind an endpoint, whose tokens are unknown.

    P prompt, A sampled, E what answered:

        token_ids         [ P    P    A    A    E    A ]
        loss_mask         [ no   no   yes  yes  no   yes]
        sampler_logprobs  [ 0    0   -0.1 -0.7  0   -0.3]
        policy_versions   [-1   -1    4    4   -1    5 ]
    """
    for episode in episodes:
        if episode.outcome.is_fault:
            continue
        episode.require_tokens()
        for part, sample in enumerate(episode.samples):
            if sample.spans:
                yield {
                    **identity(episode),
                    "part": part,
                    "reward": episode.reward,
                    "advantage": advantage.get(episode.key),
                    **_tokens(sample),
                }


def episode_rows(
    episodes: Iterable[Episode], advantage: Mapping[EpisodeKey, float]
) -> Iterator[Row]:
    """A row for each episode, faults included, with its conversation as chat messages."""
    for episode in episodes:
        yield {
            **identity(episode),
            "task_hash": episode.task_hash,
            "content_hash": episode.content_hash,
            "fault": episode.fault,
            "breach": episode.breach,
            "error": episode.error,
            "reward": episode.reward,
            "advantage": advantage.get(episode.key),
            "rewards": [_result(result) for result in episode.rewards],
            "metrics": [_result(result) for result in episode.metrics],
            "messages": list(chat_messages(episode)),
            "tools": _json([tool.as_function() for tool in episode.tools]),
            "changes": [_change(change) for change in episode.changes],
            "num_turns": len(episode.turns),
            "num_sampled": episode.num_sampled,
            "num_forks": episode.forks,
        }


def identity(episode: Episode) -> Row:
    """The columns that say which episode a row is of."""
    key = episode.key
    return {
        "run_seed": key.run_seed,
        "phase": key.phase,
        "iteration": key.iteration,
        "task_id": key.task_id,
        "sample": key.sample,
        "domain": episode.domain,
        "persona": episode.persona,
        "user": episode.user,
        "split": episode.split,
        "outcome": episode.outcome.value,
    }


def _tokens(sample: Sample) -> Row:
    length = len(sample.token_ids)
    logprobs, versions = [0.0] * length, [NOT_SAMPLED] * length
    taken = 0
    for span in sample.spans:
        size = span.end - span.start
        logprobs[span.start : span.end] = sample.logprobs[taken : taken + size]
        versions[span.start : span.end] = [span.policy_version] * size
        taken += size
    return {
        "token_ids": sample.token_ids,
        "loss_mask": sample.loss_mask(),
        "sampler_logprobs": logprobs,
        "policy_versions": versions,
    }


def chat_messages(episode: Episode) -> Iterator[Row]:
    """The conversation as the policy's template saw it, and what the user said last."""
    yield from map(_message, with_rules(episode.system))
    yield _message(Message("user", episode.opening.text))
    for turn in episode.turns:
        yield _message(turn.message)
        for call, result in zip(turn.calls, turn.results, strict=False):
            yield _message(result.as_message(call.name))
        if turn.reply is not None and turn.reply.text:
            yield _message(Message("user", turn.reply.text))


def _message(message: Message) -> Row:
    """A message in the form of OpenAI's chat completions; what does not apply is None."""
    return {
        "role": message.role,
        "content": message.content,
        "reasoning_content": message.reasoning or None,
        "tool_calls": [_call(call) for call in message.tool_calls] or None,
        "tool_call_id": message.tool_call_id,
        "name": message.name,
    }


def _call(call: ToolCall) -> Row:
    """A call; one that could not be read has no name, and its text for arguments."""
    arguments = call.raw if call.error is not None else _json(call.arguments)
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def _result(result: PredicateResult) -> Row:
    return {
        "name": result.name,
        "score": result.score,
        "reason": result.reason,
        "evidence": result.evidence,
        "caveat": result.caveat,
    }


def _change(change: Change) -> Row:
    return {
        "path": change.path,
        "kind": change.kind,
        "before": _json(change.before),
        "after": _json(change.after),
    }


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
