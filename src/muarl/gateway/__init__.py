"""A local OpenAI-compatible endpoint between agents and the policy, with a key for each episode."""

from muarl.gateway.line import Line as Line
from muarl.gateway.line import WireError as WireError
