from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

import pytest
from credit_kit import T, dialogue, rewards_of, spec_of

from muarl.credit import turn_advantages
from muarl.credit.information import information_gains
from muarl.messages import Message
from muarl.record import Episode, Sample
from muarl.spec.credit import InformationCredit

NOTHING = 99
"""Stands for an empty answer, in tokens."""


def bridge(prompt: list[int], sampled: list[int], answers: Sequence[Message]) -> list[int]:
    assert all(not answer.content for answer in answers)
    return prompt + sampled + [NOTHING] * len(answers)


def heeds_answers(samples: Sequence[Sample]) -> list[list[float]]:
    """A policy that is less sure of what it says the more of its prompt is missing."""
    return [[-1.0 - s.token_ids.count(NOTHING)] * s.num_sampled for s in samples]


def heeds_nothing(samples: Sequence[Sample]) -> list[list[float]]:
    """A policy whose next message has nothing to do with what it was told."""
    return [
        [-float(token) for span in s.spans for token in s.token_ids[span.start : span.end]]
        for s in samples
    ]


EPISODES = [
    dialogue([T("tell:id"), T(call={}), T("stop")], 1.0, 0),
    dialogue([T(call={}), T("stop", tokens=4)], 1.0, 1),
]
SPEC = InformationCredit()


def gains(episodes: Sequence[Episode], score: Any, bridge_: Any = bridge) -> Any:
    return list(information_gains(episodes, SPEC, score=score, bridge=bridge_).values())


def test_the_gain_is_of_the_next_message_per_token_and_belongs_to_the_turn_that_was_answered() -> (
    None
):
    assert gains(EPISODES, heeds_answers) == [[1.0, 1.0, None], [1.0, None]]


def test_the_policy_is_asked_about_what_it_said_after_what_was_sent_and_after_nothing() -> None:
    asked: list[Sample] = []

    def score(samples: Sequence[Sample]) -> list[list[float]]:
        asked.extend(samples)
        return heeds_nothing(samples)

    gains(EPISODES[1:], score)
    ids = EPISODES[1].samples[0].token_ids
    whole, blind = asked
    assert whole == EPISODES[1].samples[0]
    assert blind.token_ids == [*ids[:5], NOTHING, *ids[7:11]]
    assert [(s.start, s.end) for s in blind.spans] == [(6, 10)]


def test_each_gain_is_taken_at_the_place_of_its_own_message() -> None:
    """Log-probs of the whole dialogue are told apart by turn."""

    def score(samples: Sequence[Sample]) -> list[list[float]]:
        whole = [[0.0, 0.0, 1.0, 1.0, 4.0, 4.0]]
        return whole + [[0.0] * s.num_sampled for s in samples[1:]]

    assert gains(EPISODES[:1], score) == [[1.0, 4.0, None]]


def test_an_answer_that_changes_nothing_has_gain_zero_and_moves_no_turn() -> None:
    found = information_gains(EPISODES, SPEC, score=heeds_nothing, bridge=bridge)
    assert list(found.values()) == [[0.0, 0.0, None], [0.0, None]]
    credited = turn_advantages(
        EPISODES, rewards_of(EPISODES), spec_of("information"), measured=found
    )
    assert all(c is not None and set(c.turns) == {c.outcome} for c in credited)


def test_where_the_template_rewrites_history_there_is_no_gain() -> None:
    assert gains(EPISODES, heeds_answers, lambda *_: None) == [[None] * 3, [None] * 2]


@pytest.mark.parametrize(("rewards", "spread"), [([0.5, 0.5], 0.0), ([1.0, 0.9], 0.1 / 2**0.5)])
def test_gains_count_where_outcomes_tell_nothing(rewards: list[float], spread: float) -> None:
    for episode, reward in zip(EPISODES, rewards, strict=True):
        episode.reward = reward
    told = [0.2, 0.6, 1.0]
    measured = {EPISODES[0].key: [told[0], told[1], None], EPISODES[1].key: [told[2], None]}
    spec = spec_of("information", weight=0.1, gate=0.05)
    first, second = turn_advantages(EPISODES, rewards, spec, measured=measured)
    assert first is not None
    assert second is not None
    gate = 1 / (1 + math.exp(spread / 0.05))
    z = [(g - 0.6) / (statistics.stdev(told) + 1e-6) for g in told]
    moved = [first.turns[0], first.turns[1], second.turns[0]]
    outcomes = [first.outcome, first.outcome, second.outcome]
    for turn, outcome, value in zip(moved, outcomes, z, strict=True):
        assert turn == pytest.approx(outcome + 0.1 * gate * value, abs=1e-9)
    assert first.turns[2] == first.outcome
    for episode in EPISODES:
        episode.reward = 1.0
