"""What is to be said of a tool's crash, where its traceback would not tell."""

from __future__ import annotations

from collections.abc import Iterator
from traceback import walk_tb

from pydantic import ValidationError

from muarl.world.sql import RowError

_SHOWN = 80


def said_of(error: BaseException) -> str | None:
    """What a crash comes of, and what to do; None where the line that raised it says more."""
    if isinstance(error, RowError):
        return f"its SQL wrote what no world holds ({error}); let it write text, finite numbers or NULL"
    return _wrong_return(error)


def _wrong_return(error: BaseException) -> str | None:
    """What to say of an error by which the SDK refuses what a tool returned; None of any other.

    Example:
        "it returned 3, which is not what its annotation says (input should be a valid string); ..."
    """
    for cause in _causes(error):
        frames = [frame.f_code.co_name for frame, _ in walk_tb(cause.__traceback__)]
        if isinstance(cause, ValidationError) and "convert_result" in frames:
            first = cause.errors(include_url=False)[0]
            _, *below = map(str, first["loc"] or ("result",))
            at = f" at {'.'.join(below)}" if below else ""
            what = repr(first["input"])
            shown = what if len(what) <= _SHOWN else f"{what[:_SHOWN]}..."
            said = first["msg"][:1].lower() + first["msg"][1:]
            return (
                f"it returned {shown}{at}, which is not what its annotation says ({said}); let it "
                "return that, or correct what stands after `->`"
            )
    return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
