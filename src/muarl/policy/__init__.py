"""Policies: what samples the agent's tokens, behind one protocol."""

from muarl.policy.protocol import EngineLoad as EngineLoad
from muarl.policy.protocol import GenerateRequest as GenerateRequest
from muarl.policy.protocol import Generation as Generation
from muarl.policy.protocol import Loaded as Loaded
from muarl.policy.protocol import Policy as Policy
from muarl.policy.protocol import VersionSwitch as VersionSwitch
