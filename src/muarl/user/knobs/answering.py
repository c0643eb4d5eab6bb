"""`partial`, `unsure`, `refuse`: the first time she is asked for a fact, she does not quite tell it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muarl.user.flow import Flow, Heard, Move


def evade(flow: Flow, heard: Heard) -> Move | None:
    """Tell a part, or nothing yet."""
    if not heard.act.startswith("ask:"):
        return None
    fact = flow.fact(heard.act.removeprefix("ask:"))
    if fact is None or (fact.id, fact.value) in flow.asked:
        return None
    flow.asked.add((fact.id, fact.value))
    part = part_of(fact.value)
    match flow.dice.roll(*(["partial"] if part else []), "unsure", "refuse"):
        case "partial":
            return flow.move(f"partly:{fact.id}", part=part)
        case "unsure":
            return flow.move("unknown")
        case "refuse":
            return flow.move("refuse")
    return None


def part_of(value: str) -> str:
    """The first half of a value, of its words or of its signs; "" if it is one sign.

    Example:
        >>> part_of("Ada Byron"), part_of("A10"), part_of("7")
        ('Ada', 'A1', '')
    """
    words = value.split()
    if len(words) > 1:
        return " ".join(words[: (len(words) + 1) // 2])
    return value[: (len(value) + 1) // 2] if len(value) > 1 else ""
