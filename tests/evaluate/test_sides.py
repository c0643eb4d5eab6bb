"""Stored runs side by side: what they share counts, and what they do not is told or refused."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from muarl.errors import RecordError
from muarl.evaluate.sides import Kind, Side, Task, differences_of, scores


def side(
    name: str,
    won: Sequence[bool],
    *,
    trials: int = 1,
    users: Sequence[str] = ("",),
    domain: str = "desk",
    situation: str = "s",
    content: str = "c",
    first: int = 0,
    seed: int | None = None,
) -> Side:
    tasks = {str(i + first): Task(domain, situation, content) for i in range(len(won))}
    tries = {
        (task, user): [success] * trials
        for task, success in zip(tasks, won, strict=True)
        for user in users
    }
    return Side(name, tries, tasks, seed)


def kind(*sides: Side) -> Kind:
    return Kind(sides[0].name, sides)


def test_runs_are_compared_on_the_tasks_that_both_played() -> None:
    one, other = side("a", [False] * 12), side("b", [True] * 10, first=4)
    (found,) = differences_of([kind(one), kind(other)])
    assert (found.of, found.minus, found.success.value, found.success.n) == ("b", "a", 1.0, 8)
    assert (found.found, found.p) == ("higher", 2 / 2**8)
    assert found.left_out == {"not played by all": 6}


def test_tasks_are_clusters_and_users_are_strata_within_them() -> None:
    """With more of the dialogues with an easy user, a run is not the better for it."""
    hard = {("t", "hard"): [False, False], ("t", "easy"): [True]}
    many = {("t", "hard"): [False], ("t", "easy"): [True, True, True]}
    tasks = {"t": Task("desk", "s", "c")}
    (found,) = differences_of([kind(Side("a", hard, tasks)), kind(Side("b", many, tasks))])
    assert (found.success.value, found.differ, found.success.n) == (0.0, 0, 1)
    assert found.why.startswith("not supported by the sample")


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (side("b", [True] * 3, domain="shop"), "played in 'desk', b in 'shop'"),
        (
            side("b", [True] * 3, first=7),
            "share no task: of the one are '0', '1', '2', of the other",
        ),
        (side("b", [True] * 3, users=["u"]), "were played with other users"),
        (side("b", [True] * 3, situation="x"), "are other tasks: goal, personas"),
        (
            side("b", [True] * 3, content="x"),
            "('0', '1', '2') was not the same for both: rules changed",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused_with_its_reason(other: Side, said: str) -> None:
    one = side("a", [False] * 3)
    with pytest.raises(RecordError) as refused:
        differences_of([kind(one), kind(other)], what_changed=lambda _a, _b: "rules changed")
    assert said in str(refused.value)


def test_a_changed_domain_can_be_accepted_and_another_task_cannot() -> None:
    one, changed = side("a", [False] * 9), side("b", [True] * 9, content="x")
    (found,) = differences_of([kind(one), kind(changed)], accept_changes=True)
    assert found.success.value == 1.0
    other = side("b", [True] * 9, situation="x")
    with pytest.raises(RecordError):
        differences_of([kind(one), kind(other)], accept_changes=True)


def test_trainings_of_one_kind_are_taken_together_and_told_apart() -> None:
    cold = kind(*(side(f"a-{s}", [s > 1] * 8 + [False] * 8, seed=s) for s in range(3)))
    best = kind(*(side(f"b-{s}", [True] * (12 + s) + [False] * (4 - s), seed=s) for s in range(3)))
    first, _ = scores([cold, best])
    assert (first.runs, first.seeds) == (["a-0", "a-1", "a-2"], [0, 1, 2])
    assert first.success.n == 48
    assert first.trainings is not None
    assert first.trainings.mean.n == 3
    (found,) = differences_of([cold, best])
    assert found.success.n == 16  # tasks, however many trainings
    assert found.trainings is not None
    assert found.trainings.mean.n == 3
    assert found.trainings.mean.value == pytest.approx(found.success.value)


def test_where_no_training_is_known_none_is_told() -> None:
    assert scores([kind(side("a", [True]))])[0].trainings is None
    (found,) = differences_of([kind(side("a", [True])), kind(side("b", [True]))])
    assert found.trainings is None
