"""How a dialogue failed, from its record; no judge is asked.

The first that applies, of the classes of FAMA (arXiv 2604.25135) as far as a record shows them:

    truncated       a cap ended it
    abandoned       the user lost patience
    rules_broken    a `never_called`, `never_said`, `confirmed`, `preceded` or `not` of the reward does
                    not hold
    invented        a call failed, and one of its arguments had been said by nobody
    failed_call     a call failed otherwise: a result misread, a tool misused
    stopped_early   something was to be changed, and nothing was
    wrong_result    anything else
"""

from __future__ import annotations

from muarl.credit.provenance import unheard
from muarl.record import Episode, Outcome
from muarl.spec import TaskSpec
from muarl.spec.curriculum import FailureClass

_FORBIDDING = ("never_called", "never_said", "confirmed", "preceded", "not")
_SOLVED = 1 - 1e-9


def failure_of(episode: Episode, task: TaskSpec) -> FailureClass | None:
    """The class of a scored dialogue's failure; None if it earned the whole reward, or is a fault."""
    if episode.reward is None or episode.reward >= _SOLVED:
        return None
    if episode.outcome.is_truncated:
        return "truncated"
    if episode.outcome is Outcome.ABANDONED:
        return "abandoned"
    broken = [r.name.split()[0] for r in episode.rewards if r.score is not None and r.score < 1]
    if any(kind in _FORBIDDING for kind in broken):
        return "rules_broken"
    failed = [result for turn in episode.turns for result in turn.results if result.is_error]
    if failed:
        return "invented" if unheard(episode) else "failed_call"
    if task.gold and not episode.changes:
        return "stopped_early"
    return "wrong_result"
