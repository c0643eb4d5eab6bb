"""Where the process of a tool server lives: a folder of its own, and what it said outside MCP."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TextIO

import anyio
from mcp.client.session import IncomingMessage
from pydantic import ValidationError

from muarl.errors import ToolServerError
from muarl.own_folder import own_folder
from muarl.tools.secrets import Secrets
from muarl.world import World, plain

_HEADING = re.compile(r"Traceback \(most recent call last\)")
_MESSAGE = re.compile(r'\s*\{.*"jsonrpc"', re.DOTALL)
_LAST_LINES = 3
_LAST_BYTES = 4_000
_RUBBISH_CHARS = 80


class Home:
    """A server's files, and what it said outside the protocol.

    Attributes:
        folder: Its HOME.
        world: The dialogue's world as a JSON file.
        stderr: Takes its stderr.
    """

    def __init__(self, around: Path, stderr: TextIO, secrets: Secrets) -> None:
        self.folder = around / "home"
        self.world = around / "world.json"
        self.stderr = stderr
        self._secrets = secrets
        self._rubbish: str | None = None
        self._waiting: anyio.CancelScope | None = None

    def wait_in(self, scope: anyio.CancelScope) -> None:
        """Cancel this scope when a message comes that cannot be read: it may be the answer."""
        self._waiting = scope

    async def hear(self, message: IncomingMessage) -> None:
        """Keep the first line of its output that is not a message; end waiting for a broken one."""
        if not isinstance(message, Exception):
            return
        line = str(message)
        if isinstance(message, ValidationError):
            line = str(message.errors(include_url=False)[0]["input"])
        meant_as_message = _MESSAGE.match(line) is not None
        if self._rubbish is None or meant_as_message:
            line = self._secrets.hide(line.encode("utf-8", "backslashreplace").decode())
            self._rubbish = line[:_RUBBISH_CHARS]
        if meant_as_message and self._waiting is not None:
            self._waiting.cancel()

    def last_words(self) -> str:
        """What it said last: rubbish on stdout, the end of its stderr; "" if nothing."""
        words = ""
        if self._rubbish is not None:
            words += f"; it printed {self._rubbish!r} to stdout, where only MCP messages belong"
        # Not by its name, which whoever cleans up temporary files may have taken away.
        said = self.stderr.fileno()
        start = max(0, os.fstat(said).st_size - _LAST_BYTES)
        lines = os.pread(said, _LAST_BYTES, start).decode("utf-8", "replace").splitlines()
        if start and self._secrets:
            del lines[:1]  # it may hold half a secret, which nobody would recognise
        last = [line.strip() for line in lines if line.strip(" ^~") and not _HEADING.match(line)]
        return words + (f"; its stderr ends: {' | '.join(last[-_LAST_LINES:])}" if last else "")


@contextmanager
def home(world: World | None, files: Path | None, secrets: Secrets) -> Iterator[Home]:
    """A home for one server, with the dialogue's world beside it.

    Args:
        world: The dialogue's; None for a server that serves many.
        files: A folder whose content is copied into it.
        secrets: Taken out of what the server says.

    Raises:
        ToolServerError: The disk has no room for it, or the files cannot be read.
    """
    with ExitStack() as held:
        try:
            around = held.enter_context(own_folder())
            stderr = held.enter_context((around / "stderr").open("w+", encoding="utf-8"))
            made = Home(around, stderr, secrets)
            if files is None:
                made.folder.mkdir()
            else:
                shutil.copytree(files, made.folder)
            if world is not None:
                made.world.write_text(json.dumps(plain(world)), encoding="utf-8")
        except OSError as error:  # shutil's own error is one too, and has no strerror
            raise ToolServerError(
                f"no folder for a tool server in {tempfile.gettempdir()}: "
                f"{error.strerror or error}. Make room there, or set TMPDIR"
            ) from error
        yield made
