import pytest
from acebench_kit import begun
from hypothesis import given
from hypothesis import strategies as st

from muarl.compat.acebench.calls import parsed
from muarl.compat.acebench.score import (
    end_to_end,
    mended,
    process_accuracy,
    saved,
    strictly_end_to_end,
)

DEVICE = {"BaseApi": {"wifi": True, "logged_in": True}}


def food(balance):
    return {"FoodPlatform": {"users": {"Eve": {"balance": balance}}, "logged_in_users": []}}


def test_only_what_upstream_saves_is_compared():
    assert {
        name: tuple(state) for item in saved(begun().world) for name, state in item.items()
    } == {
        "BaseApi": ("wifi", "logged_in"),
        "MessageApi": ("inbox",),
        "ReminderApi": ("reminder_list",),
        "FoodPlatform": ("users", "logged_in_users", "orders"),
        "Travel": ("users", "reservations"),
    }


def test_a_difference_is_named_in_upstreams_words():
    verdict = end_to_end([DEVICE, food(1.0)], [DEVICE, food(2.0)])
    assert not verdict.valid
    (error,) = verdict.checks[1].errors
    assert error == (
        "class(FoodPlatform) attributes(users.Eve) wrong, "
        "[expected: {'balance': 2.0}, real: {'balance': 1.0}]"
    )


def test_another_number_of_classes_fails_and_so_does_a_dialogue_in_which_nothing_ran():
    assert not end_to_end([DEVICE], [DEVICE, food(1.0)]).valid
    assert not end_to_end([], [DEVICE]).valid


@pytest.mark.parametrize("balance", [1.0, 2.0])
def test_a_misspelt_class_takes_the_verdict_before_it_and_is_compared_in_strict_mode(balance):
    gold = [DEVICE, {"Foodplatfrom": food(1.0)["FoodPlatform"]}]
    verdict = end_to_end([DEVICE, food(balance)], gold)
    assert verdict.valid
    assert [check.compared for check in verdict.checks] == [True, False]
    assert strictly_end_to_end([DEVICE, food(balance)], gold) is (balance == 1.0)
    after_a_failure = end_to_end([food(balance), DEVICE], [food(3.0), {"BaseAPI": {}}])
    assert after_a_failure.checks[0].errors == after_a_failure.checks[1].errors != ()


def test_more_in_a_dict_than_expected_passes_but_not_in_strict_mode():
    more = {"MessageApi": {"inbox": {"1": "a", "2": "b"}}}
    gold = {"MessageApi": {"inbox": {"1": "a"}}}
    assert end_to_end([more], [gold]).valid
    assert not strictly_end_to_end([more], [gold])
    assert strictly_end_to_end([gold], [gold])


def test_milestones_count_in_order_until_one_was_not_said():
    stones = ["[a()]", "[b()]", "[c()]", "[d()]"]
    assert process_accuracy(stones, [stones], correct=False) == 1.0
    assert process_accuracy(["[a()]", "[x()]", "[b()]", "[d()]"], [stones], correct=False) == 0.5
    assert process_accuracy([], [stones], correct=True) == 1.0
    assert process_accuracy([], [[]], correct=False) == 1.0


def test_of_alternatives_the_best_counts_rounded():
    alternatives = [["[a()]", "[b()]", "[c()]"], ["[a()]", "[c()]", "[d()]"]]
    assert process_accuracy(["[a()]", "[b()]"], alternatives, correct=False) == 0.667


BROKEN = "[add_reminder(title='Eve's list', description='Don't wait, it's Bob's', time='9:30')] "
CALL = """[add_reminder(title="Eve's list", description="Don't wait, it's Bob's",time='9:30')]"""


def test_strict_mode_mends_milestones_and_compares_calls():
    (stone,), (call,) = parsed(mended(BROKEN)), parsed(CALL)
    assert stone == call
    assert process_accuracy([CALL], [[BROKEN]], correct=False) == 0.0
    assert process_accuracy([CALL], [[BROKEN]], correct=False, strict=True) == 1.0


@given(st.text(max_size=30))
def test_mending_leaves_alone_what_can_be_parsed_and_crashes_on_nothing(text):
    mended(text)
    sound = f"[f(a={text!r})]"
    assert mended(f" {sound} ") == sound
