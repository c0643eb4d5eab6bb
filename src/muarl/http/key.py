"""The key of an endpoint: read from the environment, sent in one header, never said."""

from __future__ import annotations

import os
import re

from muarl.errors import SetupError

_SPELLED_CHARS = 8 * 13
"""At most that many stand for one of a key's: a backslash of its for eight, each `\\\\\\\\u005c`."""

_SECRET_CHARS = 8
"""Shorter keys are placeholders for servers that want none, such as `EMPTY`: words of a language."""


class ApiKey:
    """A key, or none.

    Args:
        variable: Environment variable that holds it, read now; None sends none.

    Raises:
        SetupError: The variable is not set, or cannot be sent.
    """

    def __init__(self, variable: str | None) -> None:
        self._variable = variable
        self._key = read_secret(variable, "api_key_env") if variable else None
        self._spelled = spellings(self._key) if self._key else None
        self._longest = _SPELLED_CHARS * len(self._key or "")

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
        """`words` without the key, plain or escaped as in JSON; before anything is cut from them."""
        return self._spelled.sub("[key]", words) if self._spelled else words

    def hide_in_beginning(self, words: str, chars: int) -> str:
        """The beginning of `words`, of about so many characters, without the key.

        What is cut may end with a part of the key, which nobody would recognise: as much as a key
        may fill is left out there.
        """
        if len(words) <= chars + self._longest:
            return self.hide(words)
        hidden = self.hide(words[: chars + self._longest])
        return hidden[: len(hidden) - self._longest]

    def hide_in_speech(self, words: str) -> str:
        """What a model said, without the key if it is a secret; a placeholder is a word like any."""
        return self.hide(words) if self._key and len(self._key) >= _SECRET_CHARS else words


def read_secret(variable: str, setting: str) -> str:
    """The value of an environment variable that a setting names.

    Raises:
        SetupError: It is not set, or cannot be sent.
    """
    key = os.environ.get(variable, "").strip()
    if not key:
        raise SetupError(
            f"the environment variable {variable} (`{setting}`) is not set: "
            f"export {variable}=<the endpoint's key>"
        )
    if not key.isascii() or not key.isprintable():
        raise SetupError(f"the value of the environment variable {variable} cannot be a key")
    return key


def spellings(key: str) -> re.Pattern[str]:
    r"""Matches a key in plain text, in JSON and in JSON in JSON.

    Example:
        The key `a/"` is also matched in `a\/\"`, in `a\\/\\\"` and in `\u0061/\u0022`.
    """
    return re.compile("".join(map(_spelling, re.findall(r"\\+|[^\\]", key))))


def _spelling(part: str) -> str:
    """Of one character, or of backslashes in a row; bounded, as a hostile body is all backslashes."""
    if part[0] == "\\":
        return rf"(?:\\{{1,8}}u00(?i:5c)|\\){{{len(part)},{8 * len(part)}}}"
    return rf"(?:\\{{1,8}}u00(?i:{ord(part):02x})|\\{{0,8}}{re.escape(part)})"
