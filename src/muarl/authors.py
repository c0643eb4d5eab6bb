"""What an author's own code raises: whether it is her fault, and where in her files it came from.

Python that a domain names runs in the middle of muarl: generators, worlds, experts, tools. It may
raise anything, and whatever it is has to be said of it, not of muarl.
"""

from __future__ import annotations

import asyncio
import dis
import functools
import math
import os
import signal
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import FrameSummary, extract_tb, walk_tb
from types import FrameType, TracebackType
from typing import Any

PACKAGES = "muarl_domain_"
"""What the names of packages begin with that stand for the folders of domains."""

_installed: set[str] = set()
"""Installed packages that are an author's as well: those that provide plug-ins."""

RAISED = BaseException
"""What a boundary around an author's code catches: anything; see `let_others_pass`."""

MAX_CHARS = 2000
"""Of what an error says; beyond it nobody reads, and a journal would grow by all of it."""

_OURS = str(Path(__file__).parent) + os.sep
_LIBRARIES = tuple({path + os.sep for path in sysconfig.get_paths().values()})
"""Where Python's own modules lie, and installed ones."""


def let_others_pass(error: BaseException) -> None:
    """Raise again what no code of hers raised, of a group its part.

    A person at the keyboard did, or whoever cancelled the task or closed the coroutine. Hers is what
    only claims to be that, such as a `KeyboardInterrupt` that a `raise` of hers gave.

    Example:
        >>> try:
        ...     made()
        ... except RAISED as error:
        ...     let_others_pass(error)
        ...     raise SpecError(...) from error
    """
    others = list(_not_hers(error))
    if len(others) == 1:
        raise others[0]
    if others:
        raise BaseExceptionGroup("not of the author's code", others)


def _not_hers(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _not_hers(one)
    elif isinstance(error, (KeyboardInterrupt, GeneratorExit)):
        if not _was_raised_in_code(error):
            yield error
    elif isinstance(error, asyncio.CancelledError):
        if _asyncio_cancels():
            yield error
    elif "trio" in sys.modules and isinstance(error, sys.modules["trio"].Cancelled):
        yield error  # nobody but trio can make one


def _asyncio_cancels() -> bool:
    """Whether the current task was told to end, by a scope around it or by asyncio itself."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no asyncio here
        return False
    return task is None or bool(task.cancelling()) or is_cancelled_around()


def is_cancelled_around() -> bool:
    """Whether a scope around what runs was cancelled; True where nobody can say."""
    anyio = sys.modules.get("anyio")
    return anyio is None or bool(anyio.current_effective_deadline() == -math.inf)


@contextmanager
def as_exceptions() -> Iterator[None]:
    """Make an `Exception` of what her code raises in the block and is none; `blame` finds it again."""
    try:
        yield
    except Exception:
        raise
    except RAISED as error:
        let_others_pass(error)
        raise RuntimeError("raised what is no Exception") from error


def blame(error: BaseException) -> str:
    """One line on what an author's code raised, and the line of hers that it came from.

    Example:
        "KeyError: 'x' (domains/desk/tasks.py:76, in generate)"
    """
    told = list(_down_to_what_is_said(error))
    error = told[-1]
    text = _text_of(error)
    kind = type(error).__name__
    if isinstance(error, SyntaxError) and error.filename:
        return f"{kind}: {error.msg} ({shown_file(error.filename)}:{error.lineno})"
    where = next(filter(None, map(place, reversed(told))), "") or _place_elsewhere(error)
    return f"{kind}: {text}{where}" if text else f"{kind}{where}"


def _text_of(error: BaseException) -> str:
    """Its message on one line, no longer than a person reads."""
    try:
        text = str(error)
    except RAISED as odd:  # boundary: also how it is said is the author's
        let_others_pass(odd)
        return f"(its message cannot be had: {type(odd).__name__})"
    cut = text[:MAX_CHARS] + "…" if len(text) > MAX_CHARS else text
    return " ".join(cut.split())


def place(error: BaseException) -> str:
    """The line of a domain's Python that an error came from, ` (tasks.py:76, in generate)`, or ""."""
    hers = [frame for frame, is_hers in _frames(error.__traceback__) if is_hers]
    return (
        f" ({shown_file(hers[-1].filename)}:{hers[-1].lineno}, in {hers[-1].name})" if hers else ""
    )


def frames_of_hers(frame: FrameType | None) -> Iterator[FrameType]:
    """Frames of a domain's code, or a plug-in's, in a stack that runs, from the innermost on."""
    while frame is not None:
        if _is_hers(frame):
            yield frame
        frame = frame.f_back


def place_of(frame: FrameType | None) -> str:
    """The line at which a frame is, ` (tasks.py:76, in generate)`; "" of None."""
    if frame is None:
        return ""
    code = frame.f_code
    return f" ({shown_file(code.co_filename)}:{frame.f_lineno}, in {code.co_name})"


def _is_hers(frame: FrameType) -> bool:
    name = str(frame.f_globals.get("__name__", ""))
    return name.startswith(PACKAGES) or name.partition(".")[0] in _installed


def _place_elsewhere(error: BaseException) -> str:
    """The same for code that no domain names, such as a server that a test builds."""
    frames = [frame for frame, _ in _frames(error.__traceback__) if not is_ours(frame.filename)]
    frames = [frame for frame in frames if not is_of_a_library(frame.filename)] or frames
    return f" ({frames[-1].filename}:{frames[-1].lineno}, in {frames[-1].name})" if frames else ""


def is_ours(filename: str) -> bool:
    """Whether a file is muarl's, or none at all."""
    return filename.startswith((_OURS, "<frozen"))


def is_of_a_library(filename: str) -> bool:
    """Whether a file is Python's own, or of an installed package."""
    return filename.startswith(_LIBRARIES)


def _down_to_what_is_said(error: BaseException) -> Iterator[BaseException]:
    """An error and its causes, down to the first that her code raised itself, or to the root of all.

    A task group wraps the one error of its tasks; that is meant then. A library that she called may have
    wrapped what another one raised, outside of any code of hers.
    """
    while True:
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        yield error
        raised_by_her = [is_hers for _, is_hers in _frames(error.__traceback__)][-1:]
        if error.__cause__ is None or True in raised_by_her:
            return
        error = error.__cause__


def _frames(trace: TracebackType | None) -> Iterator[tuple[FrameSummary, bool]]:
    """Frames from the outermost on, and whether each is in a file of a domain or a plug-in."""
    for summary, (frame, _) in zip(extract_tb(trace), walk_tb(trace), strict=True):
        yield summary, _is_hers(frame)


def is_written_by_an_author(module: str) -> None:
    """Take an installed package, by one of its modules, for an author's code like a domain's own."""
    _installed.add(module.partition(".")[0])


def shown_file(filename: str) -> str:
    """A file as a person in the working folder would name it."""
    path = Path(filename)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else filename


def _was_raised_in_code(error: BaseException) -> bool:
    """Whether a `raise` gave it, and not a signal, nor the end of a coroutine.

    Python raises for a signal between any two instructions, or lets a handler raise; a coroutine is
    ended where it waits. Only what the innermost frame raised by a statement of its own, being no
    such handler, is code's doing.
    """
    trace = error.__traceback__
    if trace is None:  # nobody raised it: code put it into a group
        return True
    handler = _code_of(signal.getsignal(signal.SIGINT)), _code_of(signal.getsignal(signal.SIGTERM))
    while True:
        if trace.tb_frame.f_code in handler:
            return False
        if trace.tb_next is None:
            break
        trace = trace.tb_next
    code = trace.tb_frame.f_code.co_code
    return trace.tb_lasti >= 0 and dis.opname[code[trace.tb_lasti]] == "RAISE_VARARGS"


def _code_of(handler: Any) -> Any:
    while isinstance(handler, functools.partial):
        handler = handler.func
    return getattr(handler, "__code__", None)
