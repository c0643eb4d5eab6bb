"""From a domain's `environment` to its environments."""

from __future__ import annotations

from muarl.environments.in_gymnasium import GymnasiumEnvironments
from muarl.environments.protocol import Environments
from muarl.python_folder import PythonFolder
from muarl.spec import DomainSpec, Located


def environments_of(located: Located[DomainSpec], python: PythonFolder) -> Environments:
    """The environments that a domain's file names; none is made yet.

    Args:
        located: The file, which has an `environment`.
        python: Its Python.
    """
    assert located.spec.environment is not None
    gymnasium = located.spec.environment.gymnasium
    assert gymnasium is not None  # an environment is of exactly one kind

    def load() -> object:
        assert gymnasium is not None
        assert gymnasium.make is not None
        return python.load(gymnasium.make, ("environment", "gymnasium", "make"))

    return GymnasiumEnvironments(located, gymnasium, load)
