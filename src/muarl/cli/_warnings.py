"""Warnings, and what libraries log, on a screen: one line each, as everything else that muarl says."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from muarl.cli._telling import remark
from muarl.errors import OldVersionWarning


@contextmanager
def warnings_in_lines() -> Iterator[None]:
    """Within the block, warnings of muarl come without the line of code that gave them.

    What is logged and has no handler is said in the same way; Python would print it raw.
    """
    last_resort, logging.lastResort = logging.lastResort, _Remarks()
    try:
        with _warnings_in_lines():
            yield
    finally:
        logging.lastResort = last_resort


class _Remarks(logging.StreamHandler[TextIO]):
    def __init__(self) -> None:
        super().__init__()
        self.setLevel(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        remark(f"{record.name}: {record.getMessage()}")


@contextmanager
def _warnings_in_lines() -> Iterator[None]:
    with warnings.catch_warnings():
        show_others = warnings.showwarning

        def show(message: Any, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, OldVersionWarning):
                remark(f"muarl: {message}")
            else:
                show_others(message, category, *where, **more)

        warnings.showwarning = show
        yield
