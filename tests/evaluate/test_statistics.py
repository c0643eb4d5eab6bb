from __future__ import annotations

import random
from statistics import fmean
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.evaluate.statistics import (
    bootstrap_mean,
    effective_trials,
    mean,
    mean_share,
    success_rate,
    t_quantile,
    too_few,
    wilson,
)

trials = st.lists(st.booleans(), min_size=1, max_size=8)
trials_by_task = st.dictionaries(st.text(max_size=3), trials, min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [  # Newcombe (1998), Statistics in Medicine 17, 857-872, table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_gives_the_published_intervals(successes, n, low, high):
    interval = wilson(successes, n)
    assert interval.value == successes / n
    assert (interval.low, interval.high) == (
        pytest.approx(low, abs=5e-5),
        pytest.approx(high, abs=5e-5),
    )


def test_a_wider_level_gives_a_wider_interval():
    narrow, wide = wilson(30, 50, level=0.8), wilson(30, 50, level=0.99)
    assert wide.low < narrow.low < 0.6 < narrow.high < wide.high


@pytest.mark.parametrize(("successes", "n"), [(5, 4), (-1, 4)])
def test_impossible_counts_are_refused(successes, n):
    with pytest.raises(ValueError, match="successes of"):
        wilson(successes, n)


@given(n=st.integers(1, 5000), data=st.data())
def test_wilson_stays_in_range_holds_the_share_and_mirrors(n, data):
    successes = data.draw(st.integers(0, n))
    interval, mirrored = wilson(successes, n), wilson(n - successes, n)
    assert 0 <= interval.low <= interval.value <= interval.high <= 1
    assert interval.low < interval.high
    assert interval.low == pytest.approx(1 - mirrored.high, abs=1e-12)


def test_nothing_to_estimate_from_is_none_and_not_zero():
    for interval in (wilson(0, 0), bootstrap_mean({}), bootstrap_mean({"a": []}), mean([])):
        assert (interval.value, interval.low, interval.high, interval.n) == (None, None, None, 0)
    assert success_rate({"a": []}).value is None


@given(
    st.dictionaries(st.text(max_size=3), st.lists(st.floats(0, 1), max_size=4), max_size=6),
    st.integers(0, 3),
)
def test_the_bootstrap_is_repeatable_and_holds_the_mean_of_all_values(values, seed):
    interval = bootstrap_mean(values, resamples=40, seed=seed)
    assert interval == bootstrap_mean(values, resamples=40, seed=seed)
    flat = [value for of_task in values.values() for value in of_task]
    assert interval.n == len(flat)
    if flat:
        assert interval.value == pytest.approx(fmean(flat))
    if len([task for task in values.values() if task]) > 1:
        assert min(flat) - 1e-9 <= interval.low <= interval.value <= interval.high
        assert interval.high <= max(flat) + 1e-9


def test_repeating_every_episode_adds_no_certainty():
    rng = random.Random(1)
    once = {str(task): [float(rng.random() < 0.5)] for task in range(60)}
    eightfold = {task: values * 8 for task, values in once.items()}
    assert bootstrap_mean(eightfold).low == pytest.approx(bootstrap_mean(once).low)
    counted_as_independent = wilson(round(sum(map(sum, eightfold.values()))), 480)
    width = bootstrap_mean(eightfold).high - bootstrap_mean(eightfold).low
    assert counted_as_independent.high - counted_as_independent.low < width / 2


def test_the_bootstrap_covers_the_truth_where_tasks_differ():
    rng = random.Random(7)
    runs, covered, covered_by_wilson = 150, 0, 0
    for _ in range(runs):
        chances = [rng.choice((0.2, 0.8)) for _ in range(40)]  # the mean over tasks is 0.5
        values = {str(i): [rng.random() < p for _ in range(6)] for i, p in enumerate(chances)}
        clustered = bootstrap_mean(values, resamples=300, seed=rng.randrange(10**9))
        flat = [value for of_task in values.values() for value in of_task]
        naive = wilson(sum(flat), len(flat))
        covered += clustered.low <= 0.5 <= clustered.high
        covered_by_wilson += naive.low <= 0.5 <= naive.high
    assert covered / runs > 0.9  # nominal 0.95; the standard error of this share is 0.02
    assert covered_by_wilson / runs < 0.85


def test_ten_times_as_many_episodes_take_no_more_than_ten_times_as_long():
    def least_s(num_tasks: int) -> float:
        values = {str(i): [float(i % 3 == 0)] for i in range(num_tasks)}
        seconds = []
        for _ in range(3):
            start = process_time()
            bootstrap_mean(values)
            seconds.append(process_time() - start)
        return min(seconds)

    assert least_s(1000) < 30 * least_s(100), "squared, it would be a hundred times"


def test_one_episode_a_task_is_wilson_and_several_have_an_effective_number():
    assert success_rate({"a": [True], "b": [False]}) == wilson(1, 2)
    clustered = success_rate({"a": [True, True], "b": [False, False], "c": [True, False]})
    assert (clustered.value, clustered.method) == (0.5, "wilson by task")
    as_one_each = {str(i): [float(i % 3 == 0)] for i in range(60)}
    assert mean_share(as_one_each).low == pytest.approx(wilson(20, 60).low)


@pytest.mark.parametrize(
    ("sums", "counts_as"),
    [
        ([8, 0] * 30, 60),  # trials of a task end alike: as many as there are tasks
        ([8] * 60, 60),  # nothing is seen of how tasks differ: the least that there can be
        ([0] * 60, 60),
        ([4] * 60, 60),
        ([1, 7] * 30, 60 / 0.5625),  # s = 9/16 of p (1 - p)
    ],
)
def test_trials_that_end_alike_count_once(sums, counts_as):
    # With 30 tasks or more on either side the data's own word counts for all but 1 %.
    assert effective_trials(sums, [8] * 60) == pytest.approx(counts_as, rel=5e-3)


def test_trials_that_are_independent_all_count():
    rng = random.Random(3)
    sums = [sum(rng.random() < 0.5 for _ in range(8)) for _ in range(4000)]
    assert effective_trials(sums, [8] * 4000) == pytest.approx(32_000, rel=0.05)


def test_the_fewer_tasks_succeed_the_more_a_task_counts_as_one_trial():
    one, many = [3] + [0] * 29, [1] * 15 + [0] * 15
    assert effective_trials(one, [8] * 30) < 1.3 * 30 < effective_trials(many, [8] * 30)


@given(st.lists(st.tuples(st.integers(1, 8), st.integers(0, 8)), min_size=2, max_size=30))
def test_an_interval_of_failures_mirrors_that_of_successes(drawn):
    by_task = {str(i): [j < c for j in range(n)] for i, (n, c) in enumerate(drawn)}
    won, lost = mean_share(by_task), mean_share({t: [not x for x in v] for t, v in by_task.items()})
    assert won.low == pytest.approx(1 - lost.high, abs=1e-9)


def test_when_every_task_scores_alike_the_interval_still_has_a_width():
    alike = success_rate({"a": [True, True], "b": [True]})
    assert (alike.value, alike.high, alike.n) == (1, 1, 3)
    # One is tried twice as often, so that they weigh as 3 * 3 / (4 + 1) tasks.
    assert wilson(1, 1).low < alike.low < wilson(2, 2).low
    halves = success_rate({str(i): [True, False] for i in range(30)})
    assert halves.low == pytest.approx(wilson(15, 30).low)


@given(trials_by_task)
def test_success_rates_stay_in_range_and_hold_the_share(by_task):
    interval = success_rate(by_task)
    flat = [trial for of_task in by_task.values() for trial in of_task]
    assert interval.n == len(flat)
    assert interval.value == pytest.approx(fmean(flat))
    if len([trials for trials in by_task.values() if trials]) == 1 and len(flat) > 1:
        assert (interval.low, interval.high) == (None, None)
    else:
        assert 0 <= interval.low <= interval.value <= interval.high <= 1


@pytest.mark.parametrize(
    ("n", "quantile"), [(2, 12.706), (3, 4.303), (4, 3.182), (11, 2.228), (31, 2.042), (101, 1.984)]
)
def test_the_interval_of_a_mean_uses_students_quantiles(n, quantile):
    values = [float(i) for i in range(n)]
    interval = mean(values)
    centre = (n - 1) / 2
    deviation = (sum((v - centre) ** 2 for v in values) / (n - 1)) ** 0.5
    assert interval.value == pytest.approx(centre)
    assert (interval.high - centre) * n**0.5 / deviation == pytest.approx(quantile, rel=2e-3)
    assert interval.high - centre == pytest.approx(centre - interval.low)


@pytest.mark.parametrize(
    ("level", "df", "quantile"),
    [
        # Of published tables, two-sided.
        (0.95, 3, 3.182446),
        (0.99, 3, 5.840909),
        (0.998, 3, 10.214532),
        (0.999, 3, 12.923979),
        (0.999, 4, 8.610302),
        (0.998, 7, 4.785290),
        (0.95, 30, 2.042272),
        (0.999, 30, 3.645959),
        (0.999, 60, 3.460200),
        (0.6, 3, 0.978472),
    ],
)
def test_quantiles_of_student_hold_at_every_level(level: float, df: int, quantile: float) -> None:
    """Many comparisons ask for levels near 1, and few tasks for few degrees of freedom."""
    assert t_quantile(level, df) == pytest.approx(quantile, rel=2e-6)


@pytest.mark.parametrize(
    ("failed", "tasks", "says"),
    [
        (0, 30, "none of 30 tasks ever failed, too few for an interval of 95 %"),
        (4, 30, "4 of 30 tasks ever failed, too few"),
        (27, 30, "3 of 30 tasks ever succeeded, too few"),
        (5, 30, ""),
        (25, 30, ""),
        (1, 1, ""),
        (0, 0, ""),
    ],
)
def test_what_too_few_tasks_decide_is_said(failed: int, tasks: int, says: str) -> None:
    said = too_few({str(i): [i >= failed] * 3 for i in range(tasks)})
    assert said.startswith(says)
    assert bool(said) == bool(says)


def test_one_value_has_a_mean_and_no_interval():
    assert (mean([4.0]).value, mean([4.0]).low, mean([4.0]).high) == (4, None, None)


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("trials", [1, 8])
def test_a_mean_on_which_all_tasks_agree_is_not_certain(value: float, trials: int) -> None:
    interval = mean_share({f"t{i}": [value] * trials for i in range(10)})
    assert interval.value == value
    assert interval.n == 10 * trials
    assert (interval.low, interval.high) == (
        wilson(int(value * 10), 10).low,
        wilson(int(value * 10), 10).high,
    )
    assert interval.high - interval.low > 0.2
    one = mean_share({"t": [value]})
    assert one.high - one.low > interval.high - interval.low
    unequal = {"a": [0.0, 1.0], "b": [1.0, 1.0]}
    assert mean_share(unequal).value == bootstrap_mean(unequal).value
    assert mean_share({}).value is None


def test_one_task_tried_several_times_has_no_interval_and_says_so():
    for interval in (
        success_rate({"a": [True, True, False, True]}),
        mean_share({"a": [0.5, 1.0]}),
        bootstrap_mean({"a": [3.0, 4.0]}),
    ):
        assert (interval.low, interval.high) == (None, None)
        assert str(interval) == f"{interval.value:.3f} (no interval: it is of one task)"
    assert success_rate({"a": [True]}).low > 0, "one trial of one task is a trial like any other"
    assert str(success_rate({})) == "unknown"
