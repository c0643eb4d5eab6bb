"""BFCL's rules for a multi-turn entry: states and responses, turn by turn, beside the gold calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from muarl.compat.bfcl.sandbox import Sandbox

Turns = Sequence[Sequence[Sequence[str]]]
"""By turn, by step of the model, its calls."""


class Verdict(msgspec.Struct, frozen=True):
    """What the checker says.

    Attributes:
        valid: Whether the entry counts as solved.
        error: Why not, as upstream names it; None if it is.
        turn: In which turn; None unless it is a turn's fault.
        acted_without_need: Whether the model called something in a turn in which gold calls nothing.
            Upstream once failed such an entry, and no longer does.
    """

    valid: bool
    error: str | None = None
    turn: int | None = None
    acted_without_need: bool = False


def judged(model: Turns, gold: Sequence[Sequence[str]], fresh: Callable[[], Sandbox]) -> Verdict:
    """Run the model's and the gold calls side by side, and compare after each turn.

    Turns in which gold calls nothing are run, and not compared. A turn's state must be equal in all
    that is public; its gold responses must be among the model's of this turn or an earlier one.

    Args:
        model: What the model called. Fewer or more turns than gold's are those of a dialogue that was
            aborted.
        gold: The published calls, by turn.
        fresh: Makes the entry's classes as they are before the first turn.
    """
    if len(model) != len(gold):
        return Verdict(valid=False, error="multi_turn:force_terminated")
    ours, theirs = fresh(), fresh()
    acted = any(not wanted and any(steps) for steps, wanted in zip(model, gold, strict=True))
    said: list[str] = []
    for turn, (steps, wanted) in enumerate(zip(model, gold, strict=True)):
        said += [ours.call(call).text for step in steps for call in step]
        responses = [theirs.call(call).text for call in wanted]
        if not wanted:
            continue
        if error := _wrong(steps, ours, theirs, said, responses):
            return Verdict(False, f"multi_turn:{error}", turn, acted)
    return Verdict(valid=True, acted_without_need=acted)


def _wrong(
    steps: Sequence[Sequence[str]],
    ours: Sandbox,
    theirs: Sandbox,
    said: Sequence[str],
    responses: Sequence[str],
) -> str:
    if not any(steps):
        return "empty_turn_model_response"
    if ours.public() != theirs.public():
        return "instance_state_mismatch"
    if Counter(responses) - Counter(said):
        return "execution_response_mismatch"
    return ""
