"""Random draws that depend on what they are for, never on what runs beside them (law L5)."""

from __future__ import annotations

import hashlib
import random


def derive_seed(*parts: object) -> int:
    """A 63-bit seed from the parts' text; equal parts give equal seeds on every machine.

    Example:
        >>> derive_seed(0, "user", "cancel-1") == derive_seed(0, "user", "cancel-1")
        True
        >>> derive_seed(0, "user", "cancel-1") == derive_seed(1, "user", "cancel-1")
        False
    """
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def generator(*parts: object) -> random.Random:
    """A generator seeded with `derive_seed(*parts)`."""
    return random.Random(derive_seed(*parts))
