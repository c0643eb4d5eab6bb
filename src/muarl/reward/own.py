"""Predicates that an author's function decides."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec import structs

from muarl.authors import RAISED, blame, let_others_pass
from muarl.errors import EpisodeError
from muarl.reward.evidence import Evidence, Finding
from muarl.spec.predicate_kinds import PythonSpec

Answer = (
    bool | float | None | tuple[bool | float | None, str] | tuple[bool | float | None, str, str]
)
"""What an author's function says: whether it holds, a score in [0, 1], None where it does not apply, or one
of these and a reason, and a caveat: what the score leaves out."""


def python(spec: PythonSpec, evidence: Evidence) -> Finding:
    """Ask a function of the domain's. It is given forks, so that looking changes nothing.

    Raises:
        EpisodeError: What it asks does not answer.
        RuntimeError: It raised something else; says what, and in which line of hers.
        TypeError: It returned nothing that can be read as a finding.
    """
    function = evidence.load(spec.function)
    with asked():
        answer = function(forked(evidence), **spec.arguments)
    return found(answer, spec.function)


def forked(evidence: Evidence) -> Evidence:
    """The same evidence over worlds that may be written."""
    return structs.replace(
        evidence, world=evidence.world.fork(), gold_world=evidence.gold_world.fork()
    )


@contextmanager
def asked() -> Iterator[None]:
    """Within the block an author's function is asked.

    Raises:
        EpisodeError: What it asks does not answer.
        RuntimeError: It raised something else; says what, and in which line of hers.
    """
    try:
        yield
    except EpisodeError:
        raise
    except RAISED as error:  # boundary: the author's function raises anything
        let_others_pass(error)
        raise RuntimeError(f"it raised {blame(error)}") from error


def found(answer: Any, who: str) -> Finding:
    """What an author's function says, read.

    Args:
        answer: What it returned.
        who: What it is called.

    Raises:
        TypeError: It cannot be read as a finding.
    """
    parts = answer if isinstance(answer, tuple) and len(answer) in (2, 3) else (answer,)
    score, reason, caveat = (*parts, "", "")[:3]
    told_in_words = isinstance(reason, str) and isinstance(caveat, str)
    if not told_in_words or not (score is None or _is_score(score)):
        kind = type(answer).__name__
        raise TypeError(
            f"it returned {answer!r:.80} ({kind}); expected true or false, a score in [0, 1], None, "
            "or one of these and a reason, and a caveat: what the score leaves out"
        )
    told = reason or f"{who} returned {score!r}"
    return Finding(None if score is None else float(score), told, caveat=caveat)


def _is_score(value: Any) -> bool:
    return isinstance(value, (bool, int, float)) and math.isfinite(value) and 0 <= value <= 1
