"""The draws of one dialogue's perturbations (law L5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from muarl.seeds import generator
from muarl.spec.perturb import PerturbSpec


@dataclass(frozen=True)
class Dice:
    """Draws keyed by what they are for: no kind's draws change another's, nor do the policy's.

    Attributes:
        spec: The rates.
        seed: Of all draws.
    """

    spec: PerturbSpec
    seed: int

    def roll(self, kind: str, *about: object) -> bool:
        """Whether a kind acts, given a chance that `about` names."""
        rate = self.spec.rates.get(kind, 0.0)
        return rate > 0 and self.stream(kind, *about).random() < rate

    def one_of(self, family: str, kinds: Sequence[str], *about: object) -> str:
        """The kind of a family that acts, each at its own rate; "" for none."""
        rates = self.spec.rates
        drawn = self.stream(family, *about).random()
        for kind in kinds:
            drawn -= rates.get(kind, 0.0)
            if drawn < 0:
                return kind
        return ""

    def stream(self, *about: object) -> Random:
        """Further draws, of what `about` names."""
        return generator(self.seed, "perturb", *about)
