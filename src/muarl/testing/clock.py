"""Virtual time: tests that wait for minutes in milliseconds, in the same order every time.

Trio's mock clock jumps to the next deadline as soon as every task waits. Needs trio, which comes
with `muarl[test]`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, TypeVarTuple

import anyio

T = TypeVar("T")
Args = TypeVarTuple("Args")


def virtual_time() -> tuple[str, dict[str, Any]]:
    """Backend and options of a fresh virtual clock.

    Example:
        >>> @pytest.fixture
        ... def anyio_backend():
        ...     return virtual_time()
    """
    from trio.testing import MockClock

    return "trio", {"clock": MockClock(autojump_threshold=0)}


def run_in_virtual_time(main: Callable[[*Args], Awaitable[T]], *args: *Args) -> T:
    """Run `main(*args)` under a fresh virtual clock; for property tests, which are not async.

    `anyio.current_time()` starts at 0.

    Example:
        >>> run_in_virtual_time(anyio.sleep, 3600.0)
    """
    backend, options = virtual_time()
    return anyio.run(main, *args, backend=backend, backend_options=options)
