"""Tasks that are nearly the same are found, and no others."""

from __future__ import annotations

import random
from itertools import combinations
from typing import Any

import pytest

from muarl.data.overlap import NEAR, Traits, near_duplicates
from muarl.spec import FactSpec, GoldCallSpec, RequestSpec, TaskSpec, UserGoalSpec

WORDS = [f"word{chr(97 + i)}{chr(97 + j)}" for i in range(8) for j in range(8)]


def task(name: str, goal: str = "", order: str = "W1", **changes: Any) -> TaskSpec:
    facts = [FactSpec(id="order_id", value=order), FactSpec(id="city", value="rome")]
    given: dict[str, Any] = {
        "id": name,
        "goal": goal,
        "personas": ["plain"],
        "user": UserGoalSpec(requests=[RequestSpec(ask="redirect", facts=facts)]),
        "gold": [GoldCallSpec(tool="redirect", arguments={"order_id": order, "city": "rome"})],
    }
    return TaskSpec(**{**given, **changes})


def pairs(*tasks: TaskSpec) -> list[tuple[str, str]]:
    return [(pair.first.id, pair.second.id) for pair in near_duplicates(tasks)]


GOAL = "You moved house last week and want your order to be sent to Rome now, politely but firmly."


def test_the_same_task_by_another_name_is_found_and_is_exact() -> None:
    (pair,) = near_duplicates([task("a", GOAL), task("b", GOAL, personas=["terse"], split="test")])
    assert (pair.first.id, pair.second.id, pair.similarity) == ("a", "b", 1.0)
    assert pair.exact


@pytest.mark.parametrize(
    "goal", [GOAL.replace("firmly", "clearly"), GOAL.upper(), GOAL.replace("house", "flat")]
)
def test_other_words_for_the_same_are_nearly_the_same(goal: str) -> None:
    assert pairs(task("a", GOAL), task("b", goal)) == [("a", "b")]


def test_tasks_of_one_template_are_not() -> None:
    assert pairs(*(task(f"t{i}", f"Send W{i} to Rome, please.", f"W{i}") for i in range(20))) == []


def test_another_thing_to_do_is_another_task() -> None:
    assert pairs(task("a", GOAL), task("b", GOAL, gold=[])) == []
    sent = [GoldCallSpec(tool="cancel", arguments={"order_id": "W1", "city": "rome"})]
    assert pairs(task("a", GOAL), task("b", GOAL, gold=sent)) == []


def test_a_world_of_its_own_counts() -> None:
    worlds = [{"orders": {"W1": {str(i): value for i in range(30)}}} for value in "xy"]
    assert pairs(*(task(str(i), GOAL, world=world) for i, world in enumerate(worlds))) == []


def test_where_only_the_goal_says_what_to_do_its_figures_are_entities() -> None:
    def bare(name: str, goal: str) -> TaskSpec:
        return task(name, goal, user=None, gold=[])

    long = f"{GOAL} Your order is #W123."
    assert pairs(bare("a", long), bare("b", f"{long} Thanks.")) == [("a", "b")]
    assert pairs(bare("a", long), bare("b", long.replace("W123", "W124"))) == []
    assert pairs(bare("a", ""), bare("b", "")) == [], "of which nothing is known"


def test_as_many_pairs_are_found_as_comparing_all_with_all_finds() -> None:
    rng = random.Random(0)
    tasks = []
    for index in range(150):
        words = rng.sample(WORDS, 24)
        tasks.append(task(f"t{index}", " ".join(words)))
        if index % 3 == 0:
            for _ in range(index % 4):
                words[rng.randrange(24)] = rng.choice(WORDS)
            tasks.append(task(f"twin{index}", " ".join(words)))
    traits = {t.id: Traits.of(t) for t in tasks}
    wanted = {
        (one.id, other.id)
        for one, other in combinations(tasks, 2)
        if traits[one.id].similarity(traits[other.id]) >= NEAR
    }
    assert len(wanted) >= 20
    assert set(pairs(*tasks)) == wanted
