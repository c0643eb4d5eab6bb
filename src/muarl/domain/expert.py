"""A domain's expert: the rule-based agent that its Python names."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Protocol

from muarl.errors import SpecError
from muarl.messages import Message
from muarl.python_folder import PythonFolder
from muarl.spec import DomainSpec, Located, TaskSpec


class Agent(Protocol):
    """A rule-based agent, such as a domain's expert; lives for one dialogue."""

    def act(self, history: Sequence[Message]) -> Message:
        """The next assistant message, given the conversation so far."""
        ...


def expert_of(
    located: Located[DomainSpec],
    python: PythonFolder,
    task: TaskSpec,
    imperfections: Mapping[str, float],
    rng: random.Random,
) -> Agent:
    """The expert for one dialogue.

    Args:
        located: The domain's file.
        python: Its Python.
        task: What the dialogue is about.
        imperfections: Bad habits, to the rates at which it falls into them, from 0 to 1.
        rng: Of its draws.

    Raises:
        SpecError: The domain has none, or it does not know a habit.
    """
    if located.spec.expert is None:
        message = (
            "expert dialogues are needed (for a cold start, for the tokenizer of a tiny model), "
            "and the domain names no expert; name one under `expert`"
        )
        raise SpecError([located.problem((), message)])
    agent: Agent = python.call(located.spec.expert, ("expert",), task, dict(imperfections), rng)
    return agent
