"""Draws for a user's knobs, and the record of them."""

from __future__ import annotations

from random import Random

from muarl.seeds import generator
from muarl.spec import KnobsSpec


class Dice:
    """One dialogue's draws. Each knob has draws of its own, so that one does not change another's.

    Attributes:
        rates: The knobs that are given.
        abandon_after: Replies that she stays for at least.
    """

    def __init__(self, knobs: KnobsSpec, seed: int) -> None:
        self.rates = knobs.rates
        self.abandon_after = knobs.abandon_after
        self._seed = seed
        self._streams: dict[str, Random] = {}
        self._acted: list[str] = []
        self._chances: list[str] = []

    def roll(self, *names: str) -> str:
        """Give each of these knobs a chance; one of them acts at most, each at its own rate.

        Returns:
            Its name, or "".
        """
        given = [name for name in names if name in self.rates]
        if not given:
            return ""
        self._chances += given
        drawn = self.stream(names[0]).random()
        for name in given:
            drawn -= self.rates[name]
            if drawn < 0:
                self._acted.append(name)
                return name
        return ""

    def draw(self, name: str) -> bool:
        """Whether a knob acts at a chance that is still to come; `mark` it then."""
        return name in self.rates and self.stream(name).random() < self.rates[name]

    def mark(self, name: str, acted: bool) -> None:
        """Record the chance of a knob whose act was drawn before."""
        if name in self.rates:
            self._chances.append(name)
            if acted:
                self._acted.append(name)

    def stream(self, name: str) -> Random:
        """What a knob draws from."""
        if name not in self._streams:
            self._streams[name] = generator(self._seed, "knob", name)
        return self._streams[name]

    def taken(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What acted since this was last asked, and what could have."""
        taken = tuple(self._acted), tuple(self._chances)
        self._acted, self._chances = [], []
        return taken
