"""Tasks that are nearly the same are found, and no others."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest

from muarl.overlap import NEAR, Traits, near_duplicates
from muarl.spec import (
    FactSpec,
    GoldCallSpec,
    PredicateSpec,
    RequestSpec,
    TaskSpec,
    TurnSpec,
    UserGoalSpec,
)
from muarl.spec.predicate_kinds import Said

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
    "goal", ["", "I live at number 12 now.", GOAL.replace("firmly", "clearly"), GOAL.upper()]
)
def test_the_same_to_be_done_is_the_same_task_however_its_goal_is_worded(goal: str) -> None:
    (pair,) = near_duplicates([task("a", GOAL), task("b", goal, split="test")])
    assert (pair.first.id, pair.second.id, pair.exact) == ("a", "b", True)


@pytest.mark.parametrize(
    "goal", [GOAL.replace("firmly", "clearly"), GOAL.upper(), GOAL.replace("house", "flat")]
)
def test_other_words_are_nearly_the_same_where_only_they_say_what_to_do(goal: str) -> None:
    bare: dict[str, Any] = {"user": None, "gold": []}
    assert pairs(task("a", GOAL, **bare), task("b", goal, **bare)) == [("a", "b")]


def ledger(*values: str) -> dict[str, Any]:
    """A user's facts and a call, with these values."""
    facts = [FactSpec(id=f"fact{i}", value=value) for i, value in enumerate(values)]
    arguments = {f"fact{i}": value for i, value in enumerate(values)}
    return {
        "user": UserGoalSpec(requests=[RequestSpec(ask="book", facts=facts)]),
        "gold": [GoldCallSpec(tool="book", arguments=arguments)],
    }


def test_nearly_the_same_to_be_done_is_found_in_whatever_words() -> None:
    values = [f"V{i}" for i in range(9)]
    one, other = ledger(*values), ledger(*values[:-1], "V99")
    assert pairs(task("a", GOAL, **one), task("b", "Quite otherwise.", **other)) == [("a", "b")]
    assert pairs(task("a", GOAL, **one), task("c", GOAL, **ledger("V0", "V1", "x"))) == []


def test_values_within_lists_are_compared_one_by_one() -> None:
    def listed(*names: str) -> dict[str, Any]:
        deletions = [{"entityName": name, "observations": [f"phone of {name}"]} for name in names]
        call = GoldCallSpec(tool="forget", arguments={"deletions": deletions})
        return {"user": None, "gold": [call]}

    names = [f"Person {i}" for i in range(9)]
    assert pairs(task("a", "x", **listed(*names)), task("b", "y", **listed(*names[:-1]))) == [
        ("a", "b")
    ]
    assert pairs(task("a", "x", **listed("Ada")), task("b", "x", **listed("Tom"))) == []


def test_another_question_about_the_same_thing_is_another_task() -> None:
    """Only the reward tells them apart."""

    def question(name: str, goal: str, answer: str) -> TaskSpec:
        reward = [PredicateSpec(said=Said(text=answer))]
        looked = [GoldCallSpec(tool="look", arguments={"order_id": "W1"})]
        return task(name, goal, user=None, gold=looked, reward=reward)

    when, what = question("a", "When does W1 come?", "May 3"), question("b", "Its weight?", "2 kg")
    assert pairs(when, what) == []
    assert pairs(when, question("c", "Tell the day of W1.", "May 3")) == [("a", "c")]


def test_where_nothing_else_tells_what_is_wanted_goals_do() -> None:
    listing: dict[str, Any] = {"user": None, "gold": [GoldCallSpec(tool="list_orders")]}
    one, other = "How many orders are there?", "Which of them is the newest one?"
    assert pairs(task("a", one, **listing), task("b", other, **listing)) == []
    assert pairs(task("a", one, **listing), task("b", one.upper(), **listing)) == [("a", "b")]


def test_the_same_values_in_other_places_are_not_called_the_same() -> None:
    def sent(*pairs: tuple[str, str]) -> dict[str, Any]:
        gold = [GoldCallSpec(tool="send", arguments={"order": o, "city": c}) for o, c in pairs]
        return {"user": None, "gold": gold}

    one, other = sent(("W1", "rome"), ("W2", "oslo")), sent(("W1", "oslo"), ("W2", "rome"))
    assert [p.exact for p in near_duplicates([task("a", **one), task("b", **other)])] == [False]


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


def goal_only(name: str, words: list[str]) -> TaskSpec:
    return task(name, " ".join(words), user=None, gold=[])


def ledger_only(name: str, words: list[str]) -> TaskSpec:
    """Its goal is in words of its own."""
    return task(name, f"goal {name}", **ledger(*words))


@pytest.mark.parametrize("made", [goal_only, ledger_only])
def test_as_many_pairs_are_found_as_comparing_all_with_all_finds(
    made: Callable[[str, list[str]], TaskSpec],
) -> None:
    rng = random.Random(0)
    tasks = []
    for index in range(150):
        words = rng.sample(WORDS, 24)
        tasks.append(made(f"t{index}", words))
        if index % 3 == 0:
            for _ in range(index % 4):
                words[rng.randrange(24)] = rng.choice(WORDS)
            tasks.append(made(f"twin{index}", words))
    traits = {t.id: Traits.of(t) for t in tasks}
    wanted = {
        (one.id, other.id)
        for one, other in combinations(tasks, 2)
        if traits[one.id].similarity(traits[other.id]) >= NEAR
    }
    assert len(wanted) >= 20
    assert set(pairs(*tasks)) == wanted


def test_what_a_user_says_in_fixed_messages_are_the_words_that_count() -> None:
    """Goals are for readers there: other goals make no other task, nor does one goal make the same."""

    def fixed(name: str, goal: str, *says: str) -> TaskSpec:
        turns = [TurnSpec(says=text) for text in says]
        return task(name, goal, user=None, gold=[], turns=turns)

    said = ("Hello, what can you do?", "Then sing me a song about the sea.")
    assert pairs(fixed("a", "One.", *said), fixed("b", "Quite another.", *said)) == [("a", "b")]
    weather = ("Is it going to rain?", "And tomorrow in Rome?")
    assert pairs(fixed("a", GOAL, *said), fixed("b", GOAL, *weather)) == []


def test_a_gold_call_more_or_less_makes_no_other_task() -> None:
    """One author lets the agent look first, another does not: the user wants the same of the same world."""
    look = GoldCallSpec(tool="look", arguments={"order_id": "W1"})
    do = GoldCallSpec(tool="redirect", arguments={"order_id": "W1", "city": "rome"})
    one, other = task("a", GOAL, gold=[look, do]), task("b", "Quite otherwise.", gold=[do])
    assert pairs(one, other) == [("a", "b")]
    keep = GoldCallSpec(tool="keep", arguments={"order_id": "W1"})
    assert pairs(one, task("b", "Quite otherwise.", gold=[keep, do])) == []
    elsewhere = {"orders": {"W1": {"status": "sent"}}}
    assert pairs(one, task("b", "Quite otherwise.", gold=[do], world=elsewhere)) == []
