"""Things under numbers: upstream's keys are integers, ours JSON's."""

from __future__ import annotations

from typing import Any


def key_of(number: Any) -> str | None:
    """The JSON key of what upstream finds under `number`; None where it finds nothing.

    As in a dict, `True` and `1.0` are 1, and `"1"` is not.

    Raises:
        TypeError: `number` can be no key of a dict.
    """
    hash(number)
    if isinstance(number, (int, float)) and number == number // 1:
        return str(int(number))
    return None
