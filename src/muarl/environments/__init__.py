"""Environments of other libraries, in the place of a dialogue's user and tools ([bridges](docs/bridges.md))."""

from muarl.environments.build import environments_of as environments_of
from muarl.environments.protocol import Answer as Answer
from muarl.environments.protocol import Environment as Environment
from muarl.environments.protocol import Environments as Environments
from muarl.environments.protocol import Score as Score
from muarl.environments.protocol import Step as Step
from muarl.environments.protocol import whose_calls as whose_calls
from muarl.environments.sides import Sides as Sides
from muarl.environments.user import EnvironmentUser as EnvironmentUser
