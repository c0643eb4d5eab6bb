"""Episodes and keys with sane defaults, consistent in their tokens."""

from __future__ import annotations

from typing import Any

from muarl.messages import Message
from muarl.record import Episode, EpisodeKey, Outcome, Sample, Span, Turn, UserReply

_PROMPT_TOKENS = 12
_SAMPLED_TOKENS = 5
_ANSWER_TOKENS = 3


def build_key(
    task_id: str = "task-1",
    sample: int = 0,
    *,
    run_seed: int = 0,
    phase: str = "train",
    iteration: int = 0,
) -> EpisodeKey:
    """A key; equal arguments give equal keys."""
    return EpisodeKey(run_seed, phase, iteration, task_id, sample)


def build_episode(
    key: EpisodeKey | None = None,
    *,
    outcome: Outcome = Outcome.COMPLETED,
    reward: float | None = 1.0,
    num_turns: int = 2,
    num_answer_tokens: int = _ANSWER_TOKENS,
    **fields: Any,
) -> Episode:
    """An episode of `num_turns` messages, each answered by the user; the last reply stops.

    Its one sample holds a prompt of 12 ids, then per turn 5 sampled ids and the answer's, of which
    the last turn has none:

        P P ... P  A A A A A  E E E  A A A A A

    Args:
        key: Default: `build_key()`.
        outcome: A fault leaves the episode without reward, and with an error.
        reward: For outcomes that are scored.
        num_turns: Policy messages.
        num_answer_tokens: Ids per answer.
        **fields: Any other field of Episode, as it is.
    """
    ids = list(range(_PROMPT_TOKENS))
    spans: list[Span] = []
    turns: list[Turn] = []
    for i in range(num_turns):
        is_last = i == num_turns - 1
        start = len(ids)
        end = start + _SAMPLED_TOKENS
        ids += range(100 + start, 100 + end)
        spans.append(Span(start, end, policy_version=0))
        turns.append(
            Turn(
                message=Message("assistant", f"message {i}"),
                sample=0,
                start=start,
                end=end,
                finish_reason="stop",
                policy_version=0,
                reply=UserReply(f"reply {i}", stop=is_last),
            )
        )
        if not is_last:
            ids += range(200, 200 + num_answer_tokens)
    logprobs = [-0.001 * (i + 1) for i in range(num_turns * _SAMPLED_TOKENS)]
    defaults: dict[str, Any] = {
        "key": key or build_key(),
        "domain": "desk",
        "persona": "plain",
        "split": "train",
        "task_hash": "0123456789abcdef",
        "system": "Help the customer.",
        "opening": UserReply("Hello."),
        "turns": turns,
        "samples": [Sample(ids, spans, logprobs)],
        "outcome": outcome,
        "fault": "PolicyError" if outcome.is_fault else None,
        "error": "the endpoint is down" if outcome.is_fault else None,
        "reward": None if outcome.is_fault else reward,
    }
    return Episode(**(defaults | fields))
