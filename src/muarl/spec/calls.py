"""Who makes a call."""

from typing import Literal

Who = Literal["agent", "user"]
"""The agent, or the user on her own device."""
