"""No two tasks are nearly the same, least of all one to train on and one to evaluate on (L10)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from muarl.data.proof.finding import Check, ProofFinding, Subject
from muarl.overlap import Pair, near_duplicates

_NAMED = 50
"""Pairs that are named; a generator that repeats itself makes millions."""


def duplicate_findings(subject: Subject) -> Iterator[ProofFinding]:
    """Pairs of tasks that are nearly the same."""
    pairs = near_duplicates(list(subject.all_tasks()))
    for pair in islice(pairs, _NAMED):
        yield subject.about_task(Check.DUPLICATES, pair.second, (), _in_words(pair))
    if next(pairs, None) is not None:
        message = f"more than {_NAMED} pairs of tasks are nearly the same; the first are named"
        yield subject.about(Check.DUPLICATES, ("tasks",), message)


def _in_words(pair: Pair) -> str:
    alike = "the same as" if pair.exact else f"nearly the same ({pair.similarity:.2f}) as"
    if pair.exact and pair.first.goal != pair.second.goal:
        alike = "but for the words of its goal the same as"
    if pair.first.split == pair.second.split:
        return f"{alike} task {pair.first.id!r}; a task given twice counts twice"
    return (
        f"{alike} task {pair.first.id!r} of split {pair.first.split!r}; an evaluation on one would "
        "repeat the training on the other"
    )
