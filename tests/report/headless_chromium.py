"""Drive a headless Chromium over its DevTools protocol: enough to open a page and ask it things."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from subprocess import DEVNULL
from typing import Any

import aiohttp
import anyio
import pytest
from anyio.abc import Process

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",  # inside a container there is none to be had
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--remote-debugging-port=0",
)


def require_chromium() -> str:
    """Path of the browser; without one the test is skipped, or fails where CI demands it."""
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found:
        return found
    reason = f"no headless browser: none of {', '.join(_NAMES)} is on the PATH"
    if os.environ.get("MUARL_REQUIRE_BROWSER") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


class Page:
    """One open page, and everything it did that a report must not do.

    Attributes:
        complaints: Console errors and warnings, uncaught exceptions, policy violations.
        requests: Addresses the page asked for.
    """

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._session = ""
        self._next_id = 0
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._loaded = False

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol; events that arrive meanwhile are noted."""
        self._next_id += 1
        call: dict[str, Any] = {"id": self._next_id, "method": method, "params": params}
        if self._session:
            call["sessionId"] = self._session
        await self._socket.send_json(call)
        while True:
            message = await self._socket.receive_json()
            if message.get("id") == self._next_id:
                assert "error" not in message, message["error"]
                return message["result"]
            self._note(message)

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        match event.get("method"):
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                self.complaints.append(f"console: {params['args']}")
            case "Runtime.exceptionThrown":
                self.complaints.append(f"exception: {params['exceptionDetails']}")
            case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                self.complaints.append(f"log: {params['entry']['text']}")
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Page.loadEventFired":
                self._loaded = True

    async def prefer(self, theme: str) -> None:
        """Have the system prefer "light" or "dark"."""
        features = [{"name": "prefers-color-scheme", "value": theme}]
        await self.send("Emulation.setEmulatedMedia", features=features)

    async def resize(self, width: int, height: int) -> None:
        """Make the window so large."""
        await self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    async def open(self, url: str) -> None:
        """Open an address in a new tab and wait until it has loaded."""
        target = await self.send("Target.createTarget", url="about:blank")
        attached = await self.send(
            "Target.attachToTarget", targetId=target["targetId"], flatten=True
        )
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.send(f"{domain}.enable")
        await self.send("Page.navigate", url=url)
        while not self._loaded:
            self._note(await self._socket.receive_json())
        self.requests = [request for request in self.requests if request != "about:blank"]

    async def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        result = await self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    async def press(self, key: str, modifiers: int = 0, text: str = "") -> None:
        """Press and release one named key; `text` is what it types, for Enter a carriage return."""
        for kind in ("keyDown", "keyUp"):
            more = {"text": text} if text and kind == "keyDown" else {}
            await self.send(
                "Input.dispatchKeyEvent", type=kind, key=key, modifiers=modifiers, **more
            )


@asynccontextmanager
async def chromium_page(url: str) -> AsyncIterator[Page]:
    """Start a browser, open `url`, and stop the browser in the end."""
    program = require_chromium()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
        process = await anyio.open_process(command, stdout=DEVNULL, stderr=DEVNULL)
        try:
            address = await _debugging_address(anyio.Path(profile), process)
            async with (
                aiohttp.ClientSession() as session,
                session.ws_connect(address, max_msg_size=0) as socket,
            ):
                page = Page(socket)
                await page.open(url)
                yield page
        finally:
            process.terminate()
            await process.wait()


async def _debugging_address(profile: anyio.Path, process: Process) -> str:
    """Chromium writes its port and path to a file in its profile once it listens."""
    file = profile / "DevToolsActivePort"
    with anyio.fail_after(60):
        while True:
            lines = (await file.read_text()).split("\n") if await file.exists() else []
            if len(lines) > 1:
                return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
            assert process.returncode is None, "the browser ended before it listened"
            await anyio.sleep(0.05)
