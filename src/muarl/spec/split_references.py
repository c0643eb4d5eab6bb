"""What names of splits refer to: those of a domain's tasks, in run files, suites and wordings."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches

from muarl.spec.domain import DomainSpec, SplitPhrasings
from muarl.spec.finding import Finding, unknown
from muarl.spec.run import EvalSpec, RunSpec
from muarl.spec.suite import SuiteSpec

ANY_SPLIT = "any"

_SPLITS = ("train", EvalSpec.model_fields["split"].default)
"""Splits that a run file means if it names none."""

_ALIKE = 0.8
"""How alike two names of splits are, of 1, if one is taken for a slip of the pen."""


def misspelt_splits(used: Mapping[str, int], domain: DomainSpec) -> dict[str, str]:
    """Splits of tasks that look like another one with a slip of the pen, and which that is.

    A split is whatever a task names, so a slip would silently make one that no run plays.

    Args:
        used: Split to the number of its tasks.
        domain: Its wordings know some splits by name.
    """
    manners = (domain.user, *domain.personas.values())
    known = {*_SPLITS, *(split for m in manners if m is not None for split in m.phrasings)}
    found = {}
    for split, count in used.items():
        near = get_close_matches(split, known & used.keys(), n=1, cutoff=_ALIKE)
        # What differs in a number was meant: train, train2. Of two that are alike, the rarer is it.
        if split not in known and near and used[near[0]] >= count and _letters(split) == split:
            found[split] = near[0]
    return found


def misspelt_wordings(used: Collection[str], domain: DomainSpec) -> Iterator[Finding]:
    """Splits that users have words for and no task is of, and that look like one that tasks are of."""
    voices = domain.user.voices.items() if domain.user is not None else ()
    spoken: list[tuple[tuple[str, ...], SplitPhrasings]] = [
        *((("personas", name, "phrasings"), of.phrasings) for name, of in domain.personas.items()),
        *((("user", "voices", voice), phrasings) for voice, phrasings in voices),
    ]
    if domain.user is not None:
        spoken.append((("user", "phrasings"), domain.user.phrasings))
    for at, phrasings in spoken:
        for split in phrasings.keys() - {*used, ANY_SPLIT}:
            near = get_close_matches(split, used, n=1, cutoff=_ALIKE)
            if near and _letters(split) == split:
                message = f"no task is of split {split!r}; did you mean {near[0]!r}?"
                yield Finding((*at, split), message, at_key=True)


def _letters(name: str) -> str:
    return re.sub(r"[0-9]", "", name)


def member_findings(suite: SuiteSpec, splits: Mapping[str, Collection[str]]) -> Iterator[Finding]:
    """Splits that a suite names and that its members do not have.

    Args:
        suite: The suite.
        splits: Member to the splits of its domain.
    """
    for name, member in suite.members.items():
        for split, own in member.splits.items():
            if own not in splits[name]:
                at = ("members", name, "splits", split)
                yield Finding(at, unknown("split", own, splits[name]))


def split_findings(run: RunSpec, splits: Collection[str]) -> Iterator[Finding]:
    """Splits a run names that its domain does not have."""
    named = {part: spec.split for part, spec in run.trained_on()} | {("eval",): run.eval.split}
    if run.grpo is not None and run.grpo.validation is not None:
        named["grpo", "validation"] = run.grpo.validation.split
    for part, split in named.items():
        if split not in splits:
            yield Finding((*part, "split"), unknown("split", split, splits))
