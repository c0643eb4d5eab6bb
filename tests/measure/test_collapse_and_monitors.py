from __future__ import annotations

import math

import pytest
from measure_kit import items, said, value

from muarl.measure.collapse import act_entropy, coverage
from muarl.measure.monitors import RULES, Monitor, Monitors, Rule, watch, watched


def test_users_of_a_group_are_compared_where_their_dialogues_are_the_same() -> None:
    a = said("Hi.", "Which order?", "W41.", "Shall I go ahead?", "Yes.")
    b = said("Hi.", "Which order?", "It is W41.", "Shall I go ahead?", "Sure.", number=1)
    # The opening is the same text; the answers differ; then their pasts differ.
    assert items("repeats_text", a, b) == [1.0, 0.5]
    assert items("repeats_act", a, b) == [1.0]
    assert items("repeats_text", a) == []
    other_persona = said("Hi.", persona="x", number=2)
    assert items("repeats_text", a, other_persona) == []


def test_entropy_is_that_of_acts_given_the_state() -> None:
    half = [("confirm", "yes"), ("confirm", "no")]
    assert act_entropy(half) == pytest.approx(math.log(2))
    assert act_entropy([*half, ("done", "stop"), ("done", "stop")]) == pytest.approx(
        math.log(2) / 2
    )
    assert act_entropy([]) is None


def test_coverage_is_the_chance_to_see_a_behaviour_in_a_group() -> None:
    acts = [frozenset({"stop"}), frozenset({"stop", "ask"})]
    assert coverage(acts, 2) == pytest.approx((1 + 0.75) / 2)
    assert coverage([]) is None


def test_groups_are_flat_failing_or_passing() -> None:
    def group(name: str, *rewards: float) -> list[float | None]:
        talks = [said("Hi.", group=name, reward=r, number=i) for i, r in enumerate(rewards)]
        return [value(f"{kind}_groups", *talks) for kind in ("flat", "all_fail", "all_pass")]

    assert group("g", 0, 0) == [1, 1, 0]
    assert group("g", 1, 1) == [1, 0, 1]
    assert group("g", 0.5, 0.5) == [1, 0, 0]
    assert group("g", 0, 1) == [0, 0, 0]
    assert group("g", 1) == [None, None, None]
    assert group("", 1, 1) == [None, None, None]


RULE = Rule("flat_groups", "above", 0.7, "nothing is learnt")


def test_a_monitor_fires_once_after_its_patience_and_again_only_after_it_was_back() -> None:
    monitor = Monitor(RULE, patience=2)
    values = [0.8, 0.6, 0.8, 0.9, 0.9, 0.9, 0.1, None, 0.8, 0.8]
    fired = [at for at, v in enumerate(values) if monitor.observe(at, v)]
    assert fired == [3, 9]


def test_an_alarm_says_what_where_and_why() -> None:
    (alarm,) = Monitors([RULE], patience=1).observe(7, {"flat_groups": 0.9})
    assert str(alarm) == (
        "iteration 7: flat_groups is 0.9, above 0.7 for 1 iterations: nothing is learnt"
    )
    assert (alarm.value, alarm.threshold, alarm.figure, alarm.at) == (0.9, 0.7, "flat_groups", 7)


def test_a_relative_rule_is_measured_by_the_first_value() -> None:
    monitor = Monitor(Rule("act_entropy", "below", 0.5, "narrow", relative=True), patience=1)
    assert [bool(monitor.observe(at, v)) for at, v in enumerate([1.8, 1.0, 0.8])] == [
        False, False, True,
    ]  # fmt: skip


def test_a_user_who_collapses_is_seen_although_reward_rises() -> None:
    def iteration(at: int) -> tuple[int, dict[str, float | None]]:
        repeats = at > 2
        talks = [
            said(
                "Cancel W41." if repeats else f"Cancel W41, {'please ' * i}now.",
                "Shall I go ahead?",
                "Yes." if repeats or i % 2 else "Why?",
                task=f"t{task}",
                group=f"g{task}",
                reward=float(i % 2 or repeats),
                number=i,
            )
            for task in range(3)
            for i in range(4)
        ]
        return at, watched(talks)

    alarms = watch([iteration(at) for at in range(7)])
    assert {alarm.figure for alarm in alarms} == {
        "repeats_text", "repeats_act", "act_entropy", "flat_groups", "all_pass_groups",
    }  # fmt: skip
    assert {alarm.at for alarm in alarms} == {5}
    assert watch([iteration(0)] * 6) == []


def test_every_rule_watches_a_figure() -> None:
    assert {rule.figure for rule in RULES} <= set(watched([]))
