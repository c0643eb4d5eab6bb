"""Regular expressions that hostile text cannot slow down.

Patterns are an author's, but what they are matched against is a model's. Python's `re` can take
exponential time; the engine inside pydantic takes time linear in the text, whatever the pattern, and
in exchange knows no look-around and no back-references.
"""

from __future__ import annotations

from functools import lru_cache

from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

MAX_PATTERN = 1000
"""Characters of a pattern; what is longer is a program, and belongs into Python."""


def pattern_problem(pattern: str) -> str | None:
    """Why a text is no pattern; None if it is one."""
    if len(pattern) > MAX_PATTERN:
        return f"a pattern has at most {MAX_PATTERN} characters, this one has {len(pattern)}"
    try:
        _compiled(pattern)
    except SchemaError as error:
        lines = [line.strip() for line in str(error).splitlines()]
        reason = lines[-1].removeprefix("error: ") if lines else "unreadable"
        return f"{pattern!r} is no pattern: {reason} (look-around and back-references are unknown)"
    return None


def found_in(pattern: str, text: str) -> bool:
    """Whether a pattern matches somewhere in a text; `^` and `$` are the text's ends."""
    try:
        _compiled(pattern).validate_python(text)
    except ValidationError:
        return False
    return True


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> SchemaValidator:
    return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))
