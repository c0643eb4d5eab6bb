from __future__ import annotations

import math

import pytest
from credit_kit import T, dialogue, groups, rewards_of, spec_of
from hypothesis import given

from muarl.credit import turn_advantages
from muarl.credit.provenance import Use, uses
from muarl.kernel.advantage import group_advantages
from muarl.record import Episode

ASKED = T("tell:order_id", says="The order is A17.")
LOOKED_UP = T(call={"order": "a17"}, answer="A17 goes to Rome")
THANKED = T("stop")


def test_a_value_comes_from_the_first_turn_in_whose_answer_it_stands() -> None:
    assert uses(dialogue([ASKED, LOOKED_UP, LOOKED_UP])) == [Use(0, 1, False), Use(0, 2, False)]


def test_what_the_user_said_at_first_is_no_turns_doing() -> None:
    assert uses(dialogue([ASKED, LOOKED_UP], opening="about A17, please")) == []


def test_a_failed_call_makes_its_use_a_failed_one() -> None:
    failing = LOOKED_UP._replace(fails=True, call={"orders": [{"id": "A17", "city": "Oslo"}]})
    assert uses(dialogue([ASKED, failing])) == [Use(0, 1, True)]


def test_truths_and_what_was_made_up_come_from_nowhere() -> None:
    made_up = T(call={"id": "Z9", "sure": True, "none": None, "text": "..."})
    assert uses(dialogue([T("tell:x", says="True, none of that"), made_up])) == []


def shares(episode: Episode, reward: float, **keys: float) -> list[float]:
    """What the turns' advantages are of that of their episode."""
    episode.reward = reward
    other = dialogue([THANKED], 0.5, 1)
    credited = turn_advantages([episode, other], [reward, 0.5], spec_of("influence", **keys))[0]
    assert credited is not None
    return [turn / credited.outcome for turn in credited.turns]


def test_the_worked_example() -> None:
    found = shares(dialogue([ASKED, LOOKED_UP, THANKED]), 1.0)
    high, low = math.exp(0.25), math.exp(-0.25)
    mean = (2 * high + low) / 3
    assert found == pytest.approx([high / mean, high / mean, low / mean])


def test_blame_goes_to_what_failed_and_praise_away_from_it() -> None:
    failing = LOOKED_UP._replace(fails=True)
    blamed = shares(dialogue([ASKED, failing, THANKED]), 0.0)
    assert blamed[0] == pytest.approx(blamed[1])
    assert blamed[1] > blamed[2]
    right = LOOKED_UP._replace(call={"order": "A17"})
    praised = shares(dialogue([ASKED, failing, right]), 1.0, penalty=0.5)
    assert praised[1] < praised[2]


def test_a_dialogue_in_which_nothing_tells_turns_apart_is_left_alone() -> None:
    assert shares(dialogue([THANKED, THANKED]), 0.0) == [1.0, 1.0]


@given(groups(faults=False))
def test_mass_and_sign_are_conserved_and_no_weight_is_extreme(episodes: list[Episode]) -> None:
    plain = group_advantages(rewards_of(episodes))
    found = turn_advantages(episodes, rewards_of(episodes), spec_of("influence"))
    for episode, outcome, credited in zip(episodes, plain, found, strict=True):
        assert credited is not None
        assert outcome is not None
        tokens = [turn.end - turn.start for turn in episode.turns]
        total = sum(a * n for a, n in zip(credited.turns, tokens, strict=True))
        assert total == pytest.approx(outcome * sum(tokens), abs=1e-9)
        for turn in credited.turns:
            assert turn * outcome >= 0
            assert 0.5 * abs(outcome) <= abs(turn) <= 1.9 * abs(outcome)
