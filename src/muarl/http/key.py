"""The key of an endpoint: read from the environment, sent in one header, never said."""

from __future__ import annotations

import os

from muarl.errors import SetupError


class ApiKey:
    """A key, or none.

    Args:
        variable: Environment variable that holds it, read now; None sends none.

    Raises:
        SetupError: The variable is not set, or cannot be sent.
    """

    def __init__(self, variable: str | None) -> None:
        self._variable = variable
        self._key = _read(variable) if variable else None

    def __repr__(self) -> str:
        return f"ApiKey({self._variable!r})"

    @property
    def headers(self) -> dict[str, str]:
        """What to send along."""
        return {"Authorization": f"Bearer {self._key}"} if self._key else {}

    @property
    def origin(self) -> str:
        """Where it comes from, for messages about a refusal."""
        return f"the key in ${self._variable}" if self._variable else "no api_key_env is set"

    def hide(self, words: str) -> str:
        """`words` without the key."""
        return words.replace(self._key, "[key]") if self._key else words


def _read(variable: str) -> str:
    key = os.environ.get(variable, "").strip()
    if not key:
        raise SetupError(
            f"the environment variable {variable} (`api_key_env`) is not set: "
            f"export {variable}=<the endpoint's key>"
        )
    if not key.isascii() or not key.isprintable():
        raise SetupError(f"the value of the environment variable {variable} cannot be a key")
    return key
