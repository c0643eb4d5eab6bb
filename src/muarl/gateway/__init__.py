"""A local OpenAI-compatible endpoint in front of a policy."""

from muarl.gateway.server import Gateway as Gateway
from muarl.gateway.server import open_gateway as open_gateway
