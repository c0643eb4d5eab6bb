"""The words of an error, fit to be shown and kept: one line, printable, without secrets."""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_CHARS = 300
_HIDDEN = "***"
_LOOKED_AT = 10 * MAX_CHARS
_SECRETS = (
    (re.compile(r"(?<=://)[^/\s@]+(?=@)"), _HIDDEN),  # user and password of a URL
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}"), rf"\1 {_HIDDEN}"),
    (
        re.compile(
            r"(?i)((?:api|access|secret|private|auth)[-_ ]?(?:key|token)|password|passwd|secret|"
            r"authorization|x-api-key)(['\"]?\s*[=:]\s*['\"]?)(?!bearer|basic)[^\s'\"&,;]+"
        ),
        rf"\1\2{_HIDDEN}",
    ),
    (re.compile(r"\b(?:sk|hf|ghp|xox[bp])[-_][\w-]{8,}"), _HIDDEN),
)


def plain_words(text: str, secrets: Iterable[str] = ()) -> str:
    r"""What may be said aloud of `text`.

    What is known to be secret is taken out, and what looks like a key, a token or a password. Text
    may come from a model or a server: nothing is left in it that a terminal would obey.

    Args:
        text: Any text.
        secrets: Strings that must not appear; empty ones are ignored.

    Example:
        >>> plain_words("401 from https://me:pw@host/v1,\n Authorization: Bearer abcdef123")
        '401 from https://***@host/v1, Authorization: Bearer ***'
    """
    for secret in secrets:
        if secret:
            text = text.replace(secret, _HIDDEN)
    if len(text) > _LOOKED_AT:  # patterns over megabytes would hold up everything else
        # Without the last word: half a key looks like none.
        text = text[:_LOOKED_AT].rpartition(" ")[0]
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 1] + "…"
