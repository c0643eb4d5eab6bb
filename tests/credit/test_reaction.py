from __future__ import annotations

import pytest
from credit_kit import T, dialogue, groups, rewards_of, spec_of
from hypothesis import given

from muarl.credit import turn_advantages
from muarl.credit.reaction import polarity_of
from muarl.record import Episode


def test_turns_up_to_her_reaction_share_it() -> None:
    episodes = [
        dialogue([T(call={}), T("confirm"), T(call={})], 1.0, 0),
        dialogue([T("unclear")], 1.0, 1),
    ]
    spec = spec_of("reaction", weight=0.3)
    first, second = turn_advantages(episodes, rewards_of(episodes), spec)
    z = 1 / (2**0.5 + 1e-6)  # 1 and -1: mean 0, deviation sqrt 2
    assert first is not None
    assert second is not None
    assert first.turns == pytest.approx([0.3 * z, 0.3 * z, 0.0])  # after the last nobody spoke
    assert second.turns == pytest.approx([-0.3 * z])


def test_an_act_counts_by_its_whole_name_first() -> None:
    assert polarity_of("tell:order_id", {}) == 1
    assert polarity_of("tell:order_id", {"tell": 0}) == 0
    assert polarity_of("tell:order_id", {"tell": 0, "tell:order_id": -1}) == -1
    assert polarity_of("", {}) == 0


@given(groups())
def test_no_turn_is_moved_by_more_than_weight_times_limit(episodes: list[Episode]) -> None:
    spec = spec_of("reaction", weight=0.4, limit=0.5)
    for credited in turn_advantages(episodes, rewards_of(episodes), spec):
        if credited is not None:
            for turn in credited.turns:
                assert abs(turn - credited.outcome) <= 0.4 * 0.5 + 1e-9
