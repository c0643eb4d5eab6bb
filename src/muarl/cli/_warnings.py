"""Warnings about spec files on a screen: one line each, as everything else that muarl says."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from muarl.errors import OldVersionWarning


@contextmanager
def warnings_in_lines() -> Iterator[None]:
    """Within the block, warnings of muarl come without the line of code that gave them."""
    with warnings.catch_warnings():
        show_others = warnings.showwarning

        def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, OldVersionWarning):
                print(f"muarl: {message}", file=sys.stderr)
            else:
                show_others(message, category, *where, **more)

        warnings.showwarning = show
        yield
