"""Past users: first in, first out, and each drawn as often as another."""

from __future__ import annotations

import sys
from collections import Counter, deque
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.append(str(Path(__file__).parents[1] / "dialogue"))

from dialogue_kit import Sampler, ids_of, renderer
from seeded_desk import desk

from muarl.kernel.model import (
    build_tiny_model,
    copy_weights,
    load_model,
    save_model,
    weights_checksum,
)
from muarl.model_user import UserModel
from muarl.record import EpisodeKey
from muarl.scheduler import EpisodePlan
from muarl.scheduler.dialogues import DialogueRunner
from muarl.spec.model import TinyModelSpec
from muarl.spec.run import RolloutSpec
from muarl.spec.user import ModelUserSpec, UserSpec
from muarl.spec.user_model import PastUsersSpec
from muarl.train.past_users import open_past_users, past_users


@given(st.integers(0, 40), st.integers(1, 6), st.integers(1, 5))
def test_the_oldest_leaves_first(iteration: int, size: int, every: int) -> None:
    queue: deque[int] = deque(maxlen=size)
    for number in range(iteration):
        if number % every == 0:
            queue.append(number)
    assert past_users(iteration, PastUsersSpec(size=size, every=every)) == list(queue)


class Named(Sampler):
    """A user's weights, by number."""

    def __init__(self, number: int) -> None:
        super().__init__(lambda _request: (ids_of("bye\n###STOP###"), True))
        self.policy_version = number


def met(seed: int, vary: str, tasks: int, samples: int, users: int = 4) -> list[int]:
    """Whom the dialogues of a round meet, by number, in the order of their keys."""
    plays = UserModel(renderer(), 8_000, [Named(number) for number in range(users)])
    chosen = desk().tasks("train")[:tasks]
    runner = DialogueRunner(
        domain=desk(),
        tasks=chosen,
        renderer=renderer(),
        limits=RolloutSpec(vary=vary, max_tokens=400, context_tokens=20_000),
        user=UserSpec(model=ModelUserSpec(guards=[])),
        policy_for=lambda _task, _key: Named(9),
        user_model=plays,
    )

    async def main() -> list[int]:
        found = []
        for task in chosen:
            for number in range(samples):
                key = EpisodeKey(seed, "train", 3, task.id, number)
                episode = await runner(EpisodePlan(key, 1))
                found.append(episode.user_samples[0].spans[0].policy_version)
        return found

    return anyio.run(main)


def test_each_is_drawn_as_often_as_another_and_by_the_seed_L5() -> None:
    once = met(5, "persona", 15, 8)
    counts = Counter(once)
    expected = 15 * 8 / 4
    chi2 = sum((counts[number] - expected) ** 2 / expected for number in range(4))
    assert chi2 < 16.27, f"p < 0.001 under an even draw: {counts}"
    assert met(5, "persona", 3, 8) == once[:24], "same seed, same users"
    assert met(6, "persona", 3, 8) != once[:24]


def test_a_group_shares_the_user_it_drew_unless_who_she_is_varies() -> None:
    of_groups = met(5, "seed", 6, 3)
    assert all(len(set(of_groups[i : i + 3])) == 1 for i in range(0, 18, 3))
    assert len(set(of_groups)) > 1


SMALL = TinyModelSpec(vocab_size=300, hidden_size=16, num_layers=1, num_heads=1, num_kv_heads=1)


@pytest.mark.parametrize("again", [False, True])
def test_a_past_user_is_who_she_was_also_in_a_resumed_run_L9(again: bool, tmp_path: Path) -> None:
    """With two past users, one every second iteration: 5 meets 2 and 4."""
    spec, present = PastUsersSpec(size=2, every=2), build_tiny_model(SMALL, seed=0)
    save_model(present, tmp_path / "model")

    async def main() -> None:
        async def to(first: int, last: int) -> None:
            opened = open_past_users(
                *(spec, tmp_path / "past", tmp_path / "model"),
                device=present.device,
                context_tokens=64,
                slots=4,
            )
            async with opened as past:
                for iteration in range(first, last + 1):
                    copy_weights(build_tiny_model(SMALL, seed=iteration), present)
                    found[iteration] = [
                        (policy.policy_version, weights_checksum(policy._engine._model))
                        for policy in await past.at(iteration, present)
                    ]
                    past.forget(iteration)

        if again:  # killed in iteration 3, and once more in 5
            await to(0, 3)
            await to(3, 5)
            await to(5, 5)
        else:
            await to(0, 5)

    found: dict[int, list[tuple[int, str]]] = {}
    anyio.run(main)
    was = {number: weights_checksum(build_tiny_model(SMALL, seed=number)) for number in range(6)}
    assert found[0] == []
    assert found[1] == [(0, was[0])]
    assert found[3] == [(0, was[0]), (2, was[2])]
    assert found[5] == [(2, was[2]), (4, was[4])]
    assert sorted(path.name for path in (tmp_path / "past").iterdir()) == ["000002", "000004"]
    assert weights_checksum(load_model(tmp_path / "past" / "000004")) == was[4]
