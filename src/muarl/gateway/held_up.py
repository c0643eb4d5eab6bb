"""An agent whose client is not async: it waits in the event loop for an answer that the loop would have to give.

Nothing goes on then, no deadline ends it, and nobody is told. So a thread looks whether the loop's own thread
sits in a read from a socket whose other end is our listener, which can never come to an end by itself, and
hangs up for it.
"""

from __future__ import annotations

import socket
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from muarl.authors import place_of
from muarl.helper_thread import helper_thread

_PERIOD_S = 0.25
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})


@contextmanager
def held_up_told(port: int, on_found: Callable[[str], None]) -> Iterator[None]:
    """Within the block, look whether the thread that entered it waits for itself.

    Args:
        port: That the loop of the entering thread answers at.
        on_found: Told, from another thread, where the code is that waits, ` (agent.py:12, in agent)`.
    """
    loop = threading.get_ident()

    def look(ended: threading.Event) -> None:
        before: tuple[socket.socket, int] | None = None
        while not ended.wait(_PERIOD_S):
            frame = sys._current_frames().get(loop)
            read = _read_in(frame, port)
            if read is not None and read == before:  # what is caught in passing has gone on by now
                on_found(place_of(_outside_of_libraries(frame)))
                _hang_up(read[0])
            before = read
            del frame  # else what it holds would live for another period

    with helper_thread(look, "muarl-held-up"):
        yield


def _read_in(frame: FrameType | None, port: int) -> tuple[socket.socket, int] | None:
    """The socket that a frame reads from, and at which instruction, if a port of ours is its other end.

    `http.client` (and so requests) and httpcore (and so httpx, openai) both read in a method of an object whose
    socket is `_sock`. So do transports of asyncio, whose sockets never wait: those have a timeout of zero.
    """
    reads = frame is not None and {"recv", "recv_into"} & {*frame.f_code.co_names}
    read = getattr(frame.f_locals.get("self"), "_sock", None) if frame and reads else None
    if frame is None or not isinstance(read, socket.socket) or read.gettimeout() == 0:
        return None
    try:
        return (read, frame.f_lasti) if read.getpeername()[1:2] == (port,) else None
    except OSError:  # it has none any more
        return None


def _hang_up(one: socket.socket) -> None:
    with suppress(OSError):  # it was closed meanwhile
        one.shutdown(socket.SHUT_RDWR)


def _outside_of_libraries(frame: FrameType | None) -> FrameType | None:
    while frame is not None and frame.f_code.co_filename.startswith(_LIBRARIES):
        frame = frame.f_back
    return frame
