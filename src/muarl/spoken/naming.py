"""What a text names that can be checked, written so that the same thing is the same text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from muarl.spoken import MAX_CHARS, tokens

_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+")


@lru_cache(maxsize=4096)
def entities(text: str) -> frozenset[str]:
    """What a text names that can be checked: ids, numbers of two digits or more, dates, e-mails.

    Written so that the same thing is the same text: `$1,234.50` and `1234.5` are one.

    Example:
        >>> sorted(entities("2 lamps for $1,234.50, order W41, by March 3rd"))
        ['03-03', '1234.5', 'w41']
    """
    return frozenset(_entities(text))


def _entities(text: str) -> Iterator[str]:
    yield from _EMAIL.findall(text[:MAX_CHARS].casefold())
    for kind, *parts in tokens(_EMAIL.sub(" ", text[:MAX_CHARS])):
        if kind == "date":
            yield f"{parts[1]}-{parts[2]}"
        elif (kind == "number" and len(parts[0]) > 1) or (
            kind == "word" and any(c.isdecimal() for c in parts[0]) and len(parts[0]) > 1
        ):
            yield parts[0]
