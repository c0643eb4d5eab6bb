"""What a package needs to provide users, tool servers, worlds, predicates, policies and sinks.

A package names a plug-in of a kind under an entry point of that kind's group, and specs name the entry
point: `user: {plugin: {patient: {patience: 3}}}`. See docs/plugins.md. Nothing here loads torch or MCP.
"""

from muarl.domain.base_world import WorldPlugin
from muarl.errors import EpisodeError, PolicyError, ToolServerError, UserError
from muarl.figures import Figures, Sink, SinkPlugin
from muarl.messages import Message, ToolCall, ToolResult, ToolSpec
from muarl.policy.plugin import PolicyPlugin, Retrainable, Seat
from muarl.policy.protocol import GenerateRequest, Generation, Policy
from muarl.record import Usage, UserReply
from muarl.reward.evidence import Evidence
from muarl.reward.own import Answer
from muarl.reward.plugin import PredicatePlugin
from muarl.spec.base import EnvName
from muarl.spec.plugin import Options, Plugin
from muarl.tools.plugin import ToolServerPlugin
from muarl.tools.protocol import ToolServer, ToolSession
from muarl.user.plugin import Scene, UserPlugin
from muarl.user.protocol import ActingUser, Device, User
from muarl.world import World

__all__ = [
    "ActingUser",
    "Answer",
    "Device",
    "EnvName",
    "EpisodeError",
    "Evidence",
    "Figures",
    "GenerateRequest",
    "Generation",
    "Message",
    "Options",
    "Plugin",
    "Policy",
    "PolicyError",
    "PolicyPlugin",
    "PredicatePlugin",
    "Retrainable",
    "Scene",
    "Seat",
    "Sink",
    "SinkPlugin",
    "ToolCall",
    "ToolResult",
    "ToolServer",
    "ToolServerError",
    "ToolServerPlugin",
    "ToolSession",
    "ToolSpec",
    "Usage",
    "User",
    "UserError",
    "UserPlugin",
    "UserReply",
    "World",
    "WorldPlugin",
]
