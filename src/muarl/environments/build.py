"""From a domain's `environment` to its environments."""

from __future__ import annotations

from typing import Any

from muarl.environments.in_gymnasium import GymnasiumEnvironments
from muarl.environments.in_verifiers import VerifiersEnvironments
from muarl.environments.protocol import Environments
from muarl.python_folder import PythonFolder
from muarl.spec import DomainSpec, Located


def environments_of(located: Located[DomainSpec], python: PythonFolder) -> Environments:
    """The environments that a domain's file names; none is made yet.

    Args:
        located: The file, which has an `environment`.
        python: Its Python.
    """
    spec = located.spec.environment
    assert spec is not None
    if spec.gymnasium is not None:
        make = spec.gymnasium.make
        loc = ("environment", "gymnasium", "make")
        return GymnasiumEnvironments(located, spec.gymnasium, lambda: python.load(make or "", loc))
    theirs = spec.verifiers
    assert theirs is not None  # an environment is of exactly one kind

    def load() -> Any:
        assert theirs.load is not None
        loc = ("environment", "verifiers", "load")
        made = python.load(theirs.load, loc)
        with python.blaming(theirs.load, loc):
            return made(**theirs.arguments)

    return VerifiersEnvironments(located, theirs, load)
