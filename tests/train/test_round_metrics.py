from __future__ import annotations

import pytest

from muarl.record import Episode, EpisodeKey, Outcome, Sample, Span, UserReply
from muarl.train.grpo import distinct_ngrams


def said(*messages: list[int]) -> Episode:
    """An episode whose policy sampled these messages, with a token of somebody else before each."""
    ids: list[int] = []
    spans = []
    for message in messages:
        ids.append(99)
        spans.append(Span(len(ids), len(ids) + len(message), 0))
        ids += message
    logprobs = [0.0] * sum(map(len, messages))
    key = EpisodeKey(0, "train", 0, "t", 0)
    return Episode(
        key, "desk", "plain", "train", "", "rules", UserReply("hi"), Outcome.COMPLETED,
        samples=[Sample(ids, spans, logprobs)], reward=1.0,
    )  # fmt: skip


def test_ngrams_lie_within_one_message_and_prompts_are_not_counted():
    found = distinct_ngrams([said([5, 6, 5], [5, 6])])
    assert found == {"1": 2 / 5, "2": 2 / 3, "3": 1.0}


def test_a_policy_that_says_one_thing_only_has_few():
    assert distinct_ngrams([said([1, 2, 3])] * 50)["3"] == pytest.approx(1 / 50)


def test_where_nothing_was_said_there_are_none():
    assert distinct_ngrams([]) == {}
