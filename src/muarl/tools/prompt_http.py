"""HTTP connections whose clients are given so long to send the head of a request.

uvicorn waits for the rest of a head for ever, so that clients who never send it would take up all the
connections that a process may have.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


def heads_within(seconds: float) -> type[H11Protocol]:
    """The protocol of a uvicorn server (`Config(http=...)`) that ends connections whose client is late.

    Args:
        seconds: From the connection, or from the first byte of a further request, to the end of the
            request's head.
    """

    class Prompt(H11Protocol):
        _late: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._expect_a_head()

        def connection_lost(self, exc: Exception | None) -> None:
            self._expect_no_more()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.conn.their_state is h11.IDLE:
                self._expect_a_head()
            else:
                self._expect_no_more()

        def _expect_a_head(self) -> None:
            if self._late is None:
                self._late = self.loop.call_later(seconds, self._end)

        def _expect_no_more(self) -> None:
            if self._late is not None:
                self._late.cancel()
                self._late = None

        def _end(self) -> None:
            if self.transport.is_closing():
                return
            if self.conn.our_state is h11.IDLE:
                said = [(b"connection", b"close"), (b"content-length", b"0")]
                late = h11.Response(status_code=408, headers=said, reason=b"Request Timeout")
                for event in (late, h11.EndOfMessage()):
                    self.transport.write(self.conn.send(event) or b"")
            self.transport.close()

    return Prompt
