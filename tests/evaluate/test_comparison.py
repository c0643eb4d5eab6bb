"""What a sample shows is found, and what it cannot show is said."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.evaluate.comparison import compared, compared_together, detectable, holm
from muarl.evaluate.permutation import sign_flip_p


def won(tasks: int, lost: int = 0, alike: int = 20) -> tuple[dict[str, list[bool]], ...]:
    n = tasks + lost + alike
    first = {str(i): [i < tasks] * 2 for i in range(n)}
    second = {str(i): [tasks <= i < tasks + lost] * 2 for i in range(n)}
    return first, second


@pytest.mark.parametrize(
    ("tasks", "lost", "found", "why"),
    [
        (9, 0, "higher", "p = 0.0039, on 9 tasks that differ"),
        (0, 9, "lower", "p = 0.0039, on 9 tasks that differ"),
        (5, 0, "undecided", "not supported by the sample: they differ on 5 tasks, and 6 that all"),
        (0, 0, "undecided", "not supported by the sample: they differ on 0 tasks"),
        (6, 4, "undecided", "not shown by the sample: p = 0.75; below 0."),
    ],
)
def test_what_the_sample_says_and_what_it_cannot(
    tasks: int, lost: int, found: str, why: str
) -> None:
    one = compared(*won(tasks, lost))
    assert (one.found, one.differ) == (found, tasks + lost)
    assert one.why.startswith(why)
    assert one.success.low <= one.success.value <= one.success.high  # type: ignore[operator]


def test_without_a_task_in_both_nothing_is_said() -> None:
    apart = compared({"a": [True]}, {"b": [True], "a": []})
    assert (apart.p, apart.found, apart.why) == (None, "undecided", "no task was scored in both")


def test_a_true_difference_of_the_detectable_size_is_found_four_times_in_five() -> None:
    rng = random.Random(2)
    n, trials, base = 60, 2, 0.4

    def play(chance: float) -> dict[str, list[bool]]:
        return {str(i): [rng.random() < chance for _ in range(trials)] for i in range(n)}

    pilot = compared(play(base), play(base))
    assert pilot.detectable is not None
    least = pilot.detectable
    shown = sum(compared(play(base + least), play(base)).found == "higher" for _ in range(150))
    assert 0.7 <= shown / 150 <= 0.9, (least, shown)


def test_the_detectable_difference_halves_with_four_times_the_tasks() -> None:
    few, many = [0.5, -0.5, 0.0] * 40, [0.5, -0.5, 0.0] * 160
    assert detectable(few) == pytest.approx(2 * (detectable(many) or 0), rel=0.03)
    assert detectable([0.5]) is None


def test_several_comparisons_are_adjusted_by_holm() -> None:
    assert holm([0.04, 0.01, None, 0.03]) == pytest.approx([0.06, 0.03, None, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_what_one_comparison_shows_many_may_not() -> None:
    shown, nothing = won(7), won(3, 3)
    assert compared(*shown).found == "higher"
    first, *_ = compared_together([shown, *[nothing] * 5])
    assert (first.found, first.together) == ("undecided", 6)
    assert first.p == pytest.approx(2 / 2**7)
    assert first.adjusted == pytest.approx(6 * 2 / 2**7)
    # Six times 2 / 2 ** 7 is more than 0.05, so seven tasks cannot show it, however they fall out.
    assert first.why == (
        "not supported by the sample: p = 0.016 (0.094 as one of 6), on 7 tasks that differ, and 8 that "
        "all agree are the fewest that could show anything beside the others"
    )
    alone = compared(*shown).detectable
    assert alone is not None
    assert first.detectable is not None
    assert first.detectable > alone


def test_beside_others_that_are_shown_fewer_tasks_are_enough() -> None:
    """Holm multiplies the last of six by one, so that the six that are the fewest alone are enough."""
    *_, last = compared_together([*[won(20)] * 5, won(6)])
    assert (last.found, last.adjusted) == ("higher", pytest.approx(2 / 2**6))
    *_, last = compared_together([*[won(20)] * 5, won(5)])
    assert "6 that all agree are the fewest" in last.why


def test_what_differs_by_rounding_alone_does_not_differ() -> None:
    sums, threes = ({str(i): [rate] for i in range(9)} for rate in (0.1 + 0.2, 0.3))
    one = compared(sums, threes)
    assert (one.differ, one.p) == (0, 1.0)
    assert one.why.startswith("not supported by the sample: they differ on 0 tasks")


@given(st.lists(st.integers(-999, 999).map(lambda n: n / 999), min_size=1, max_size=6))
def test_p_is_never_below_that_of_all_signs_alike(of_tasks: list[float]) -> None:
    p = sign_flip_p(of_tasks)
    assert p is not None
    assert p >= 2 ** (1 - len(of_tasks))


def test_none_of_many_comparisons_without_a_difference_is_called_one_too_often() -> None:
    rng = random.Random(8)

    def play() -> dict[str, list[bool]]:
        return {str(i): [rng.random() < 0.5 for _ in range(2)] for i in range(30)}

    alarms = 0
    for _ in range(200):
        first = play()
        alarms += any(
            one.found != "undecided"
            for one in compared_together([(play(), first) for _ in range(6)])
        )
    assert alarms / 200 <= 0.09  # 0.05, and two deviations of 200 draws


def test_tasks_that_were_tried_unequally_are_not_counted_as_signs() -> None:
    first = {"0": [True] * 8, "1": [True] * 8}
    second = {"0": [False] * 7, "1": [False] * 8}
    found = compared(first, second)
    assert (found.found, found.differ) == ("higher", 2)
    assert "on 2 tasks that differ" in found.why
