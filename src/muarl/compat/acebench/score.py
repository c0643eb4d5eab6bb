"""End-to-end and process accuracy, with upstream's leniencies and, beside them, without.

Upstream's: a class of the answer that no instance has (there are four, misspelt) is not compared and
takes the verdict of the class before it; of a dict the expected keys count and others may be there;
milestones are compared as texts, though some could never be run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from muarl.compat.acebench.calls import Call, parsed
from muarl.compat.acebench.entries import ByClass
from muarl.compat.python_calls import NotCalls
from muarl.world import equal, plain

_SAVED = {
    "BaseApi": ("wifi", "logged_in"),
    "MessageApi": ("inbox",),
    "ReminderApi": ("reminder_list",),
    "FoodPlatform": ("users", "logged_in_users", "orders"),
    "Travel": ("users", "reservations"),
}
_QUOTED = re.compile(r"'(.*?)'(?=\s*[,)}\]:])")
"""A text in single quotes up to a quote after which something else can follow."""


class Check(msgspec.Struct, frozen=True):
    """One item of the answer.

    Attributes:
        classes: Its classes (there is one).
        compared: Whether there was something to compare it with.
        errors: What is wrong, in upstream's words; of the item before it if it was not compared.
    """

    classes: frozenset[str]
    compared: bool
    errors: tuple[str, ...]


class Verdict(msgspec.Struct, frozen=True):
    """Whether the final state is that of the answer.

    Attributes:
        valid: Whether it is.
        checks: Item by item; none if there are more or fewer classes than expected.
    """

    valid: bool
    checks: tuple[Check, ...] = ()


def saved(world: Mapping[str, Any]) -> list[ByClass]:
    """What upstream saves of the final state, one class an item."""
    return [
        {name: {attribute: plain(state[attribute]) for attribute in _SAVED[name]}}
        for name, state in world.items()
    ]


def end_to_end(result: Sequence[ByClass], gold: Sequence[ByClass]) -> Verdict:
    """Compare as upstream does.

    Args:
        result: As `saved` gives it; nothing where no message ran.
        gold: The published answer.
    """
    if len(result) != len(gold):
        return Verdict(valid=False)
    checks: list[Check] = []
    errors: tuple[str, ...] = ()
    for expected in gold:
        found = next((item for item in result if item.keys() == expected.keys()), None)
        if found is not None:
            errors = tuple(_errors(found, expected))
        checks.append(Check(frozenset(expected), found is not None, errors))
    return Verdict(not any(check.errors for check in checks), tuple(checks))


def strictly_end_to_end(result: Sequence[ByClass], gold: Sequence[ByClass]) -> bool:
    """Compare every class of the answer, and all that each holds.

    A class of the answer that there is not stands for the one instance that the answer does not
    name, if it is one.
    """
    ours = {name: attributes for item in result for name, attributes in item.items()}
    theirs = {name: attributes for item in gold for name, attributes in item.items()}
    unnamed, unknown = ours.keys() - theirs.keys(), theirs.keys() - ours.keys()
    if len(unnamed) == len(unknown) == 1:
        theirs[unnamed.pop()] = theirs.pop(unknown.pop())
    return equal(ours, theirs)


def process_accuracy(
    said: Sequence[str],
    milestones: Sequence[Sequence[str]],
    *,
    correct: bool,
    strict: bool = False,
) -> float:
    """The share of milestones that were said in order; 1 if the end is right.

    After a milestone that was not said none counts. The best of several alternatives counts,
    rounded to three decimals as upstream does there.

    Args:
        said: The agent's messages that went to the tools, in order.
        milestones: Alternatives.
        correct: Whether the end is right.
        strict: Compare calls and not texts, with milestones mended so that they are calls.

    Example:
        >>> process_accuracy(["[f()]", "[g()]"], [["[f()]", "[h()]", "[g()]"]], correct=False)
        0.3333333333333333
    """
    if correct:
        return 1.0
    read = _as_calls if strict else str.strip
    messages = [read(message) for message in said]
    shares = [_share(messages, [read(stone) for stone in stones]) for stones in milestones]
    return shares[0] if len(shares) == 1 else max(round(share, 3) for share in shares)


def mended(text: str) -> str:
    """A milestone without blanks around it, its quotes within quotes such that it can be parsed.

    Example:
        >>> print(mended("[f(shop='Domino's', n=1)] "))
        [f(shop="Domino's", n=1)]
    """
    text = text.strip()
    try:
        parsed(text)
    except NotCalls:
        return _QUOTED.sub(lambda quoted: repr(quoted[1].replace("\\'", "'")), text)
    return text


def _as_calls(text: str) -> list[Call] | str:
    text = mended(text)
    try:
        return parsed(text)
    except NotCalls:
        return text


def _share(messages: Sequence[Any], stones: Sequence[Any]) -> float:
    if not stones:
        return 1.0
    left = iter(messages)
    return sum(any(message == stone for message in left) for stone in stones) / len(stones)


def _errors(found: ByClass, expected: ByClass) -> Iterator[str]:
    name, wanted = next(iter(expected.items()))
    for attribute, value in found[name].items():
        at = f"class({name}) attributes({attribute}"
        if attribute not in wanted:
            yield f"{at}) missing in possible_answer."
            continue
        right = wanted[attribute]
        if not isinstance(right, dict):
            if right != value:
                yield f"{at}) wrong, [expected: {right}, real: {value}]"
            continue
        for key, part in right.items():
            if key not in value:
                yield f"{at}) wrong, [expected: {right}, real: {value}]"
            elif part != value[key]:
                yield f"{at}.{key}) wrong, [expected: {part}, real: {value[key]}]"
