"""What a cold start learns from, for how long, and what is held out of it."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muarl.errors import TrainError
from muarl.record import Sample, Span
from muarl.spec.model import ColdStartSpec
from muarl.train.cold_start import (
    Dialogue,
    cold_start,
    hold_out,
    total_epochs,
    total_steps,
)


def dialogues(count: int, own: int = 4) -> list[Dialogue]:
    """Each of a prompt of 2 tokens and `own` of its own; the number of the dialogue is the first."""
    return [[Sample([n, 0, *[1] * own], [Span(2, 2 + own, 0)])] for n in range(count)]


class Watched:
    """Stands for a trainer: notes what it is given."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.rates: list[float] = []

    def sft_step(self, samples: list[Sample], lr: float) -> Any:
        self.batches.append([sample.token_ids[0] for sample in samples])
        self.rates.append(lr)
        return SimpleNamespace()


def learn(spec: ColdStartSpec, found: list[Dialogue], first_step: int = 0) -> Watched:
    trainer = Watched()
    cold_start(
        trainer,  # type: ignore[arg-type]
        found,
        spec,
        random.Random(0),
        after_step=lambda _step, _metrics: True,
        first_step=first_step,
    )
    return trainer


def by_dialogues(epochs: float, size: int) -> ColdStartSpec:
    return ColdStartSpec(
        steps=None, epochs=epochs, tokens_per_step=None, dialogues_per_step=size, lr=1.0
    )


@given(st.integers(1, 30), st.integers(1, 8), st.integers(1, 4))
def test_epochs_of_dialogues_show_each_so_often(count: int, size: int, epochs: int) -> None:
    seen = learn(by_dialogues(epochs, size), dialogues(count)).batches
    assert {len(batch) for batch in seen} == {size}
    shown = [number for batch in seen for number in batch]
    assert set(shown[: epochs * count]) == set(range(count))
    assert all(shown[: epochs * count].count(number) == epochs for number in range(count))
    assert len(shown) - epochs * count < size


def test_steps_and_tokens_count_as_they_did() -> None:
    spec = ColdStartSpec(steps=6, tokens_per_step=8)
    seen = learn(spec, dialogues(4)).batches
    assert [len(batch) for batch in seen] == [2] * 6
    assert total_steps(spec, dialogues(4)) == 6
    assert total_epochs(spec, dialogues(4)) == 3


def test_what_is_taken_up_again_goes_on_as_it_would_have() -> None:
    spec = by_dialogues(3, 2)
    whole, rest = learn(spec, dialogues(5)), learn(spec, dialogues(5), first_step=3)
    assert rest.batches == whole.batches[3:]
    assert rest.rates == whole.rates[3:]


def test_all_samples_of_a_dialogue_are_learned_from_together() -> None:
    forked = [*dialogues(2), [*dialogues(1)[0], *dialogues(1)[0]]]
    seen = learn(by_dialogues(1, 3), forked).batches
    assert sorted(seen[0]) == [0, 0, 0, 1]


def test_nothing_to_learn_from_is_said() -> None:
    with pytest.raises(TrainError, match="no message of the policy"):
        learn(ColdStartSpec(), [])


def episodes(tasks: int, each: int) -> list[Any]:
    return [
        SimpleNamespace(key=SimpleNamespace(task_id=f"t{n % tasks}")) for n in range(tasks * each)
    ]


@given(st.integers(1, 12), st.integers(1, 3), st.floats(0, 1), st.integers(0, 99))
def test_held_out_are_whole_tasks_and_something_is_left(
    tasks: int, each: int, share: float, seed: int
) -> None:
    given_episodes = episodes(tasks, each)
    learned, apart = hold_out(given_episodes, share, random.Random(seed))
    sides = [{episode.key.task_id for episode in side} for side in (learned, apart)]
    assert not sides[0] & sides[1]
    assert len(learned) + len(apart) == len(given_episodes)
    assert learned
    assert bool(apart) == (share > 0 and tasks > 1)


@pytest.mark.parametrize(
    "keys",
    [
        {"epochs": 2},
        {"steps": None},
        {"dialogues_per_step": 8},
        {"tokens_per_step": None},
    ],
)
def test_length_and_size_are_said_once_each(keys: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"give either .* and null for the one"):
        ColdStartSpec(**keys)
