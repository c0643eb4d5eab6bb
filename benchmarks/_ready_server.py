"""A server of ready answers, in a process of its own, as cheap as asyncio allows: what is measured is the client."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from muarl.http.descriptors import allow_many_connections

_BACKLOG = 4096


def answer(body: object) -> bytes:
    """A whole HTTP response with JSON in it."""
    data = json.dumps(body).encode()
    head = (
        f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


class Connection(asyncio.Protocol, ABC):
    """Reads requests by their content-length, one after the other."""

    def __init__(self) -> None:
        self._data = b""

    @abstractmethod
    def asked(self, head: bytes, body: bytes) -> None:
        """One request is here. Is to `write` what it is answered, now or later."""

    def write(self, response: bytes) -> None:
        """Answer, unless the client has hung up."""
        if not self._transport.is_closing():
            self._transport.write(response)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, end, body = self._data.partition(b"\r\n\r\n")
        _, _, rest = head.lower().partition(b"content-length:")
        if not end or len(body) < int(rest.partition(b"\r\n")[0] or 0):
            return
        self._data = b""
        self.asked(head, body)


def serve(connection: Callable[[], Connection]) -> None:
    """Be the server, until whoever started this process is done."""
    asyncio.run(_serve(connection))


async def _serve(connection: Callable[[], Connection]) -> None:
    allow_many_connections()
    server = await asyncio.get_running_loop().create_server(
        connection, "127.0.0.1", 0, backlog=_BACKLOG
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


@contextmanager
def started(program: str, *arguments: object) -> Iterator[str]:
    """Run a program beside this one that is such a server, while the block is open; its URL."""
    command = [sys.executable, str(Path(__file__).with_name(program)), *map(str, arguments)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()
