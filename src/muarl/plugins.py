"""What a package needs to provide users, tool servers, worlds, predicates, policies and sinks.

A package names a plug-in of a kind under an entry point of that kind's group, and specs name the entry
point: `user: {plugin: {patient: {patience: 3}}}`. See docs/plugins.md. Nothing here loads torch or MCP.
"""

from muarl.errors import EpisodeError, UserError
from muarl.record import UserReply
from muarl.reward.evidence import Evidence
from muarl.reward.own import Answer
from muarl.reward.plugin import PredicatePlugin
from muarl.spec.plugged import Options, Plugin
from muarl.user.plugin import Scene, UserPlugin
from muarl.user.protocol import ActingUser, Device, User

__all__ = [
    "ActingUser",
    "Answer",
    "Device",
    "EpisodeError",
    "Evidence",
    "Options",
    "Plugin",
    "PredicatePlugin",
    "Scene",
    "User",
    "UserError",
    "UserPlugin",
    "UserReply",
]
