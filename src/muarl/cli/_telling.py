"""Lines of progress on stderr, from before the first slow import on."""

from __future__ import annotations

import sys
import time

_BEGUN = time.monotonic()


def tell(text: str) -> None:
    """What is done now, and how long it took to come to it."""
    print(f"[{time.monotonic() - _BEGUN:6.1f} s] {text}", file=sys.stderr, flush=True)
