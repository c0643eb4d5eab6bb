from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measure_kit import said, value

from muarl.measure.variance import Cell, Split, split, squares


def planted(
    share: float, *, crossed: bool, seed: int, tasks: int = 200, users: int = 5, policies: int = 5
) -> float | None:
    """The user's share that is found where `share` of a variance of 1 was planted."""
    rng = random.Random(seed)
    found = []
    for _ in range(tasks):
        of_task = rng.gauss(0, 3)
        by_policy = [rng.gauss(0, ((1 - share) / 2) ** 0.5) for _ in range(policies)]
        cells = []
        for user in range(users):
            by_user = rng.gauss(0, share**0.5)
            for policy in range(policies):
                rest = rng.gauss(0, ((1 - share) / 2) ** 0.5)
                own = by_policy[policy] if crossed else rng.gauss(0, ((1 - share) / 2) ** 0.5)
                label = str(policy) if crossed else ""
                cells.append(Cell(str(user), label, of_task + by_user + own + rest))
        of_task_squares = squares(cells)
        assert of_task_squares is not None
        found.append(of_task_squares)
    components = split(found)
    assert components is not None
    return components.user_share


@pytest.mark.parametrize("crossed", [False, True])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_planted_user_share_is_found(share: float, crossed: bool) -> None:
    assert planted(share, crossed=crossed, seed=1) == pytest.approx(share, abs=0.07)


def test_by_hand() -> None:
    # Two users, two dialogues each: means 1 and 0.5, within 0 and 0.5.
    found = squares([Cell("a", "", 1), Cell("a", "", 1), Cell("b", "", 0), Cell("b", "", 1)])
    assert found is not None
    assert (found.user, found.user_df, found.rest, found.rest_df) == (0.25, 1, 0.5, 2)
    assert found.per_user == 2
    # MSB 0.25, MSW 0.25: nothing of it is the user's.
    assert split([found]) == Split(0.0, 0.25)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 1)), min_size=1, max_size=12),
    st.floats(-5, 5),
)
def test_a_split_does_not_see_how_hard_a_task_is(
    cells: list[tuple[str, float]], harder: float
) -> None:
    before = squares([Cell(user, "", reward) for user, reward in cells])
    after = squares([Cell(user, "", reward + harder) for user, reward in cells])
    assert (before is None) == (after is None)
    if before is not None and after is not None:
        assert after.user == pytest.approx(before.user, abs=1e-9)
        assert after.rest == pytest.approx(before.rest, abs=1e-9)


def test_nothing_is_said_of_one_user_or_of_one_dialogue_each() -> None:
    assert squares([Cell("a", "", 1), Cell("a", "", 0)]) is None
    assert squares([Cell("a", "", 1), Cell("b", "", 0)]) is None
    assert split([]) is None


def test_the_figure_takes_draws_or_else_personas() -> None:
    by_persona = [
        said("Hi.", persona=persona, reward=float(persona == "kind"), number=number)
        for number, persona in enumerate(("kind", "kind", "rude", "rude"))
    ]
    assert value("user_variance_share", *by_persona) == 1
    by_draw = [
        said("Hi.", user_draw=draw, persona="x", reward=float(draw == "1"), number=number)
        for number, draw in enumerate("1122")
    ]
    assert value("user_variance_share", *by_draw) == 1
    assert value("user_variance_share", *by_persona[:2]) is None
