"""muarl trains language-model agents in conversations with simulated users and real tools."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from muarl.version import __version__ as __version__

if TYPE_CHECKING:
    from muarl.domain import Domain as Domain
    from muarl.domain import load_domain as load_domain
    from muarl.errors import EpisodeError as EpisodeError
    from muarl.errors import MuarlError as MuarlError
    from muarl.errors import SetupError as SetupError
    from muarl.errors import SpecError as SpecError
    from muarl.messages import Message as Message
    from muarl.messages import ToolCall as ToolCall
    from muarl.own_loop import AgentContext as AgentContext
    from muarl.own_loop import AgentLoop as AgentLoop
    from muarl.own_loop import DialogueOver as DialogueOver
    from muarl.record import Episode as Episode
    from muarl.record import Outcome as Outcome
    from muarl.record import Sample as Sample
    from muarl.record import Turn as Turn
    from muarl.rollouts import Rollouts as Rollouts
    from muarl.spec import DomainSpec as DomainSpec
    from muarl.spec import GrpoSpec as GrpoSpec
    from muarl.spec import RunSpec as RunSpec
    from muarl.spec import TaskSpec as TaskSpec
    from muarl.spec import load_run as load_run
    from muarl.spec.run import RolloutSpec as RolloutSpec
    from muarl.train.live_policy import LivePolicy as LivePolicy
    from muarl.train.live_policy import open_policy as open_policy
    from muarl.world import World as World

# Names are imported on first use, so that `import muarl` stays instant.
_HOME = {
    "AgentContext": "muarl.own_loop",
    "AgentLoop": "muarl.own_loop",
    "DialogueOver": "muarl.own_loop",
    "LivePolicy": "muarl.train.live_policy",
    "Rollouts": "muarl.rollouts",
    "Domain": "muarl.domain",
    "DomainSpec": "muarl.spec",
    "Episode": "muarl.record",
    "GrpoSpec": "muarl.spec",
    "RolloutSpec": "muarl.spec.run",
    "EpisodeError": "muarl.errors",
    "Message": "muarl.messages",
    "MuarlError": "muarl.errors",
    "Outcome": "muarl.record",
    "RunSpec": "muarl.spec",
    "Sample": "muarl.record",
    "SetupError": "muarl.errors",
    "SpecError": "muarl.errors",
    "TaskSpec": "muarl.spec",
    "ToolCall": "muarl.messages",
    "Turn": "muarl.record",
    "World": "muarl.world",
    "load_domain": "muarl.domain",
    "load_run": "muarl.spec",
    "open_policy": "muarl.train.live_policy",
}

__all__ = sorted([*_HOME, "__version__"])  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'muarl' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
