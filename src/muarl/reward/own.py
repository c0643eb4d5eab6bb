"""Predicates that a function of the domain decides."""

from __future__ import annotations

import math
from typing import Any

from msgspec import structs

from muarl.authors import RAISED, blame, let_others_pass
from muarl.reward.evidence import Evidence, Finding
from muarl.spec.predicate import PythonSpec


def python(spec: PythonSpec, evidence: Evidence) -> Finding:
    """Ask the function. It is given forks, so that looking changes nothing.

    Raises:
        RuntimeError: It raised; says what, and in which line of hers.
        TypeError: It returned nothing that can be read as a finding.
    """
    forked = structs.replace(
        evidence,
        world=evidence.world.fork(),
        gold_world=evidence.gold_world.fork(),
    )
    function = evidence.load(spec.function)
    try:
        answer = function(forked, **spec.arguments)
    except RAISED as error:  # boundary: the author's function raises anything
        let_others_pass(error)
        raise RuntimeError(f"it raised {blame(error)}") from error
    parts = answer if isinstance(answer, tuple) and len(answer) in (2, 3) else (answer,)
    score, reason, caveat = (*parts, "", "")[:3]
    told_in_words = isinstance(reason, str) and isinstance(caveat, str)
    if not told_in_words or not (score is None or _is_score(score)):
        kind = type(answer).__name__
        raise TypeError(
            f"it returned {answer!r:.80} ({kind}); expected true or false, a score in [0, 1], None, "
            "or one of these and a reason, and a caveat: what the score leaves out"
        )
    told = reason or f"{spec.function} returned {score!r}"
    return Finding(None if score is None else float(score), told, caveat=caveat)


def _is_score(value: Any) -> bool:
    return isinstance(value, (bool, int, float)) and math.isfinite(value) and 0 <= value <= 1
