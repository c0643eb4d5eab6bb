"""Where one turn in ten decides, a credit that names it learns in half the updates (rank 8, T8.3).

A softmax policy with a table of its own for each turn; a step goes a fixed way along the gradient, as
under a clip of its norm, so that what other turns' chance does to it is lost for the one that decides.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from credit_kit import T, dialogue, spec_of

from muarl.credit import turn_advantages
from muarl.spec import GrpoSpec

TURNS, DECIDES, ACTIONS = 10, 6, 8
SIZE, STEP = 8, 0.5


def softmax(logits: Sequence[float]) -> list[float]:
    powers = [math.exp(value - max(logits)) for value in logits]
    return [power / sum(powers) for power in powers]


def updates_until_learned(spec: GrpoSpec, seed: int, most: int = 300) -> int:
    """Updates until the deciding turn is right nine times in ten."""
    rng = random.Random(seed)
    table = [[0.0] * ACTIONS for _ in range(TURNS)]
    for update in range(most):
        chances = [softmax(row) for row in table]
        if chances[DECIDES][0] >= 0.9:
            return update
        slope = [[0.0] * ACTIONS for _ in range(TURNS)]
        acts = [[rng.choices(range(ACTIONS), row)[0] for row in chances] for _ in range(SIZE)]
        episodes = [
            dialogue([T(act="pass")] * TURNS, float(act[DECIDES] == 0), update * SIZE + n)
            for n, act in enumerate(acts)
        ]
        measured = {
            e.key: [float(turn == DECIDES and e.reward == 1.0) for turn in range(TURNS)]
            for e in episodes
        }
        found = turn_advantages(episodes, [e.reward for e in episodes], spec, measured=measured)
        for act, credited in zip(acts, found, strict=True):
            assert credited is not None
            for turn, advantage in enumerate(credited.turns):
                for action in range(ACTIONS):
                    chosen = float(action == act[turn])
                    slope[turn][action] += advantage * (chosen - chances[turn][action])
        norm = math.sqrt(sum(value**2 for row in slope for value in row)) or 1.0
        table = [
            [logit + STEP * value / norm for logit, value in zip(row, change, strict=True)]
            for row, change in zip(table, slope, strict=True)
        ]
    return most


@pytest.mark.parametrize("seed", [10, 11, 12])  # settings were chosen on seeds 0 to 2
def test_a_credit_that_names_the_turn_learns_in_half_the_updates_and_its_control_does_not_T8_3(
    seed: int,
) -> None:
    plain = updates_until_learned(spec_of("outcome"), seed)
    named, control = (
        updates_until_learned(
            spec_of("checklist", level="turn", weight=2.0, shuffled=shuffled), seed
        )
        for shuffled in (False, True)
    )
    assert plain < 300
    assert named <= plain / 2
    assert control >= plain
