"""How a scripted user words what she does: templates of the split, filled with what may be told."""

from __future__ import annotations

import random
from collections.abc import Mapping
from statistics import median

from muarl.errors import UserError
from muarl.spec import PersonaSpec, UserScriptSpec
from muarl.spec.wording import SLOT, fitting, slots, templates
from muarl.user.flow import Move


class Words:
    """One dialogue's choice of words; the same seed and the same moves, the same words."""

    def __init__(
        self, script: UserScriptSpec, persona: PersonaSpec, split: str, rng: random.Random
    ) -> None:
        self._script = script
        self._persona = persona
        self._split = split
        self._rng = rng

    def say(self, move: Move) -> str:
        """Word a move.

        Raises:
            UserError: There are no words that tell no more than may be told.
        """
        act = move.act
        if act == "accept_refusal" and not templates(act, self._split, self._script, self._persona):
            act = "next"
        template = self._choose(act, move.known)
        filling = dict(move.known)
        if "{request}" in template:
            filling["request"] = " and ".join(self._wish(ask, known) for ask, known in move.wishes)
        filling["part"] = move.part
        return _filled(template, filling)

    def _wish(self, ask: str, known: Mapping[str, str]) -> str:
        return _filled(self._choose(f"ask:{ask}", known), known)

    def _choose(self, act: str, known: Mapping[str, str]) -> str:
        """One of the templates that need only known facts, tell most of them, and suit her."""
        usable = fitting(act, known.keys(), self._split, self._script, self._persona)
        if act.startswith("ask:"):
            usable = [template for template in usable if "{request}" not in template]
        if not usable:
            raise UserError(
                f"no phrasing for act {act!r} in split {self._split!r} that needs no more than "
                f"{sorted(known)}; add one under user.phrasings"
            )
        most = max(len(slots(template)) for template in usable)
        telling = list(dict.fromkeys(t for t in usable if len(slots(t)) == most))
        return self._rng.choice(self._of_her_length(telling))

    def _of_her_length(self, found: list[str]) -> list[str]:
        if self._persona.verbosity == "usual":
            return found
        lengths = {template: len(template.split()) for template in found}
        middle = median(lengths.values())
        terse = self._persona.verbosity == "terse"
        return [t for t, n in lengths.items() if (n <= middle if terse else n >= middle)]


def _filled(template: str, values: Mapping[str, str]) -> str:
    """A template with its slots filled; braces in what fills them are left alone."""
    return SLOT.sub(lambda slot: values[slot[1]], template)
