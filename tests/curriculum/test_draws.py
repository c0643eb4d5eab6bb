"""No task starves, draws follow from seed and record, and mass goes where a curriculum wants it."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from curriculum_kit import curriculum, played, tasks
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.record import Episode

KINDS: list[dict[str, Any]] = [
    {"half": {}},
    {"half": {"by": "kind"}},
    {"failures": {}},
    {"failures": {"by": "task"}},
    {"horizon": {"iterations": 5}},
]


@pytest.mark.parametrize("kind", KINDS)
@given(
    count=st.integers(1, 14),
    share=st.floats(0.01, 1.0),
    seed=st.integers(0, 5),
    data=st.data(),
)
@settings(max_examples=15)
def test_no_task_waits_longer_than_the_bound_whatever_happens(
    kind: dict[str, Any], count: int, share: float, seed: int, data: st.DataObject
) -> None:
    wanted = data.draw(st.integers(1, count))
    ((name, keys),) = kind.items()
    pool = tasks(count, gold=lambda n: n % 4)
    drawn_by = curriculum(pool, wanted, seed, **{name: keys | {"waiting": share}})
    rewards = random.Random(seed)
    rounds: list[set[str]] = []
    for iteration in range(2 * drawn_by.longest_wait + 3):
        order = drawn_by.order(iteration)
        assert sorted(t.id for t in order) == sorted(t.id for t in pool)
        chosen = [task.id for task in order[:wanted]]
        rounds.append(set(chosen))
        drawn_by.note(
            iteration,
            [
                episode
                for task in chosen
                for episode in played(task, iteration, [rewards.choice([0, 1, None])] * 2)
            ],
        )
        figures = drawn_by.metrics(iteration)
        assert figures["longest_wait"] <= figures["longest_wait_allowed"]
    for first in range(len(rounds) - drawn_by.longest_wait + 1):
        window = rounds[first : first + drawn_by.longest_wait]
        assert set().union(*window) == {task.id for task in pool}


def bandit(wanted: int, iterations: int, seed: int, **keys: float) -> Counter[str]:
    """How often each of 50 tasks of known success is drawn, after a warm-up."""
    pool = tasks(50)
    chance = {task.id: n / 49 for n, task in enumerate(pool)}
    drawn_by = curriculum(pool, wanted, seed, half=keys)
    rng = random.Random(seed)
    drawn: Counter[str] = Counter()
    for iteration in range(iterations):
        chosen = [task.id for task in drawn_by.order(iteration)[:wanted]]
        if iteration >= iterations // 3:
            drawn.update(chosen)
        drawn_by.note(
            iteration,
            [
                e
                for task in chosen
                for e in played(task, iteration, [rng.random() < chance[task] for _ in range(8)])
            ],
        )
    return drawn


def test_mass_goes_to_tasks_near_one_half_and_none_starves_T14_1() -> None:
    for seed in (10, 11, 12):  # others than those that the defaults were chosen on
        drawn = bandit(8, 120, seed)
        assert len(drawn) == 50
        middle = sum(
            count for task, count in drawn.items() if 0.2 <= int(task.split("-")[1]) / 49 <= 0.8
        )
        assert middle / drawn.total() >= 0.7


def test_the_seed_draws_and_nothing_else() -> None:
    pool = tasks(40)

    def ids(seed: int, iteration: int) -> list[str]:
        return [task.id for task in curriculum(pool, 8, seed, half={}).order(iteration)]

    assert ids(1, 3) == ids(1, 3)
    assert ids(1, 3) != ids(2, 3)
    assert ids(1, 3) != ids(1, 4)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_from_a_journal_draws_as_what_was_seen_live_L9(kind: dict[str, Any]) -> None:
    pool = tasks(30, gold=lambda n: n % 3)
    live = curriculum(pool, 6, **kind)
    rng = random.Random(4)
    journal: list[Episode] = []
    for iteration in range(7):
        episodes = [
            episode
            for task in live.order(iteration)[:6]
            for episode in played(
                task.id, iteration, [rng.choice([0.1, 0.2, 0.7, 1.0, None]) for _ in range(4)]
            )
        ]
        live.note(iteration, episodes)
        journal += episodes
    rng.shuffle(journal)
    resumed = curriculum(pool, 6, **kind)
    for iteration in range(7):
        resumed.note(iteration, [e for e in journal if e.key.iteration == iteration])
    assert [t.id for t in resumed.order(7)] == [t.id for t in live.order(7)]


def test_tasks_too_long_for_an_iteration_are_not_drawn_but_in_their_turn() -> None:
    pool = tasks(40, gold=lambda n: 1 + n // 20)
    drawn_by = curriculum(pool, 8, horizon={"begin": 1, "iterations": 10})
    early = drawn_by.order(0)[:8]
    assert drawn_by.places == 2
    assert all(len(task.gold) == 1 for task in early[2:])
    late = drawn_by.order(10)[2:30]
    assert {len(task.gold) for task in late} == {1, 2}
