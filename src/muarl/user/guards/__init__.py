"""Guards: deterministic checks of what an LLM user is about to say against her contract.

A message that fails one is thrown away and sampled again; one that still fails after all tries is the
user's fault (law L2), recorded by its kind. Each check says what is wrong, or nothing. They look at
words and values, never at meaning: what they find is so, and what they miss a judge may find.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from muarl.spec.user import GuardName
from muarl.user.guards.ends import change_of_mind, early_stop, late_stop
from muarl.user.guards.facts import forbidden, invented_fact, leak, premature_disclosure
from muarl.user.guards.roles import role_flip, unexecuted_action
from muarl.user.guards.said import Said as Said

GUARDS: Mapping[GuardName, Callable[[Said], str]] = {
    "role_flip": role_flip,
    "leak": leak,
    "premature_disclosure": premature_disclosure,
    "invented_fact": invented_fact,
    "forbidden": forbidden,
    "unexecuted_action": unexecuted_action,
    "change_of_mind": change_of_mind,
    "early_stop": early_stop,
    "late_stop": late_stop,
}
"""Kind of breach to the check that finds it, in the order in which they are asked."""


def breach_of(said: Said, guards: Iterable[GuardName]) -> tuple[str, str]:
    """The first breach of a message: its kind, and what is wrong; two empty texts for none."""
    wanted = set(guards)
    for name, check in GUARDS.items():
        if name in wanted and (why := check(said)):
            return name, why
    return "", ""
