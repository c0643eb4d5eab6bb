"""Predicates that an installed package provides."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from muarl.errors import RewardError
from muarl.reward.evidence import Evidence, Finding
from muarl.reward.own import Answer, asked, forked, found
from muarl.spec.plugged import PluggedPredicate
from muarl.spec.plugin import O, Plugin


def _nothing(options: object) -> Sequence[str]:
    del options
    return ()


@dataclass(frozen=True)
class PredicatePlugin(Plugin[O]):
    """A predicate, registered in the group `muarl.predicates`.

    Attributes:
        options: The model of what a spec may say to it.
        check: Decides, of options and evidence; a plain function, or an `async def` where it waits for
            something, as a model behind an endpoint. It is given forks: looking changes nothing.
        says: Texts that it wants said to the user, as far as it does. `muarl check` says them where it
            makes the gold calls; dialogues are scored by `check` alone.
    """

    check: Callable[[O, Evidence], Answer | Awaitable[Answer]]
    says: Callable[[O], Sequence[str]] = _nothing

    group = "muarl.predicates"


async def plugged(spec: PluggedPredicate, evidence: Evidence) -> Finding:
    """Ask it.

    Raises:
        PluginError: It cannot be had.
        EpisodeError: What it asks does not answer.
        RuntimeError: It raised something else; says what, and in which line of its own.
        TypeError: It returned nothing that can be read as a finding.
    """
    plugin = spec.registered(PredicatePlugin)
    with asked():
        answer = plugin.check(spec.options, forked(evidence))
        if inspect.isawaitable(answer):
            answer = await answer
    return found(answer, str(spec.provided))


def wants_said(spec: PluggedPredicate) -> list[str]:
    """Texts that it wants said to the user.

    Raises:
        RewardError: It raised; says what, and in which line of its own.
    """
    try:
        with asked():
            texts = spec.registered(PredicatePlugin).says(spec.options)
            if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
                raise TypeError(f"`says` returned {texts!r:.80}; expected a list of texts")
            return list(texts)
    except RuntimeError as error:
        raise RewardError(f"{spec.provided}: what it wants said: {error}") from error
