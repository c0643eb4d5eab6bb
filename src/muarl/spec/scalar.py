"""What a plain YAML 1.2 scalar means: the core schema, and nothing else.

`12:30`, `yes` and `2024-01-01` are text; `012` is twelve. Quoted scalars are always text.
"""

from __future__ import annotations

import math
import re

_CONSTANTS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INT = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")

# Records are encoded with 64-bit integers; anything longer than this many digits cannot be one.
_MAX_INT, _MAX_INT_CHARS = 2**63 - 1, 66


class ScalarError(ValueError):
    """The scalar has a meaning in YAML that a spec cannot hold; the message says which."""


def resolve(text: str) -> bool | int | float | str | None:
    """The value of a plain scalar.

    Raises:
        ScalarError: It is not finite, or an integer beyond 64 bits.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INT.fullmatch(text):
        return _integer(text, 10)
    if _BASED.fullmatch(text):
        return _integer(text, 0)
    if _FLOAT.fullmatch(text):
        value = float(text)
        if math.isfinite(value):
            return value
    elif not _NOT_FINITE.fullmatch(text):
        return text
    raise ScalarError(
        f"{text[:40]} is not a finite number; write a finite one, or quote it as text"
    )


def _integer(text: str, base: int) -> int:
    if len(text) <= _MAX_INT_CHARS and abs(value := int(text, base)) <= _MAX_INT:
        return value
    raise ScalarError(f"{text[:40]} does not fit into 64 bits; quote it if it is text")
