"""A vault with four levers, in Gymnasium's form, and somebody who knows how to open it.

A `gymnasium.Env` is as good: what counts is `reset` and `step`, and that observations are text. All that is
drawn is drawn from the seed, so that a dialogue can be played again.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from muarl.messages import Message
from muarl.spec import TaskSpec

LEVERS = ("brass", "iron", "copper", "silver")
PULLS = 3


class Vault:
    """Opens when the right lever is pulled three times in a row."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        """Begin: gives what is observed, and a mapping of whatever else."""
        self.rng = random.Random(seed)
        self.pulled = 0
        return self.sign(), {}

    def step(self, action: int) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Gives observation, reward, whether it is over, whether it is cut, and a mapping."""
        if LEVERS[action] != self.wanted:
            return "The levers lock, and an alarm rings.", 0.0, True, False, {}
        self.pulled += 1
        if self.pulled == PULLS:
            return "The vault opens.", 1 / PULLS, True, False, {}
        return self.sign(), 1 / PULLS, False, False, {}

    def sign(self) -> str:
        """What is read on the door now; it says which lever is next."""
        self.wanted, other = self.rng.sample(LEVERS, 2)
        wording = self.rng.choice(
            ["Pull {wanted}, not {other}.", "Leave {other} alone and pull {wanted}."]
        )
        return wording.format(wanted=self.wanted, other=other)


class Expert:
    """Pulls the right lever; with the bad habit `slip` any of them, that often."""

    def __init__(
        self, task: TaskSpec, imperfections: Mapping[str, float], rng: random.Random
    ) -> None:
        self.slip = imperfections.get("slip", 0.0)
        self.rng = rng

    def act(self, history: Sequence[Message]) -> Message:
        """The next message, given the conversation so far."""
        if self.rng.random() < self.slip:
            return Message("assistant", self.rng.choice(LEVERS))
        words = history[-1].content.lower().replace(",", " ").replace(".", " ").split()
        return Message("assistant", words[words.index("pull") + 1])
