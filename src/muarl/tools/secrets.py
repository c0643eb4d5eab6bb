"""Secrets of tool servers: read from the environment by name, given to the server, never said."""

from __future__ import annotations

from collections.abc import Mapping

from muarl.http.key import read_secret, spellings

_SECRET_CHARS = 8
"""Shorter values are no secrets, such as `1` or `EMPTY`: words that a result may hold."""


class Secrets:
    """Values that a server gets and nobody else.

    Args:
        variables: What the server calls each to the environment variable that holds it, read now.

    Attributes:
        values: What the server calls each to its value.

    Raises:
        SetupError: A variable is not set, or cannot be sent.
    """

    def __init__(self, variables: Mapping[str, str] = {}) -> None:
        self.values = {
            name: read_secret(variable, "tools.secrets") for name, variable in variables.items()
        }
        # The longest first: one may begin with another.
        hidden = sorted((v for v in self.values.values() if len(v) >= _SECRET_CHARS), key=len)
        self._spelled = [spellings(value) for value in reversed(hidden)]

    def __repr__(self) -> str:
        return f"Secrets({', '.join(self.values)})"

    def __bool__(self) -> bool:
        return bool(self._spelled)

    def hide(self, text: str) -> str:
        """`text` without any of them, plain or escaped as in JSON; before anything is cut off."""
        for spelled in self._spelled:
            text = spelled.sub("[secret]", text)
        return text


NO_SECRETS = Secrets()
