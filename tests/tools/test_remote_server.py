"""Servers over streamable HTTP, on this machine."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from tool_kit import call, no_python

from muarl.errors import SetupError, ToolServerError
from muarl.spec.tools import StateSpec, UrlToolsSpec
from muarl.tools import tool_server
from muarl.tools.carrier import Limits
from muarl.tools.remote import RemoteToolServer
from muarl.world import World, plain

pytestmark = pytest.mark.anyio

TOKEN = 'tok/en"123'


class Site:
    """An MCP server with notes for each session, and a switch that breaks it.

    Attributes:
        url: Its address.
        notes: Session to its notes.
        status: HTTP status of every further request, while it is set.
    """

    def __init__(self) -> None:
        self.notes: dict[str, list[str]] = {}
        self.status: int | None = None
        self.url = ""
        self._app = self._server().streamable_http_app()

    def _server(self) -> MCPServer:
        server = MCPServer("notes", log_level="ERROR")

        def mine(context: Context[Any, Any]) -> list[str]:
            headers = context.request_context.request.headers  # type: ignore[union-attr]
            return self.notes.setdefault(headers["mcp-session-id"], [])

        @server.tool()
        async def add(note: str, context: Context[Any, Any]) -> str:
            mine(context).append(note)
            return "ok"

        @server.tool()
        async def read(context: Context[Any, Any]) -> str:
            return json.dumps(mine(context))

        @server.tool()
        async def headers(context: Context[Any, Any]) -> str:
            request: Any = context.request_context.request
            return json.dumps(dict(request.headers))

        @server.tool()
        async def hang() -> str:
            await anyio.sleep_forever()
            return ""

        return server

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or self.status is None:
            await self._app(scope, receive, send)
            return
        headers = [(b"content-length", b"0")]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


@pytest.fixture(scope="module")
def running() -> Iterator[Site]:
    site = Site()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        site.url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        config = uvicorn.Config(site, log_level="critical", timeout_graceful_shutdown=0)
        server = uvicorn.Server(config)
        listener.listen()  # a client that comes before the server waits
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield site
        server.should_exit = True
        thread.join()


@pytest.fixture
def site(running: Site) -> Site:
    running.status = None
    running.notes.clear()
    return running


async def test_each_dialogue_is_a_session_whose_state_the_world_sees(site: Site) -> None:
    spec = UrlToolsSpec(
        url=site.url, hidden=["read", "hang"], state={"notes": StateSpec(call="read")}
    )
    server = tool_server([spec], Path(), no_python)
    worlds = [World({}), World({})]
    async with server.session(worlds[0]) as one, server.session(worlds[1]) as two:
        assert [tool.name for tool in one.tools] == ["add", "headers"]
        assert not (await one.call(call("add", note="a"))).is_error
        assert not (await two.call(call("add", note="b"))).is_error
    assert [plain(world) for world in worlds] == [{"notes": ["a"]}, {"notes": ["b"]}]
    assert len(site.notes) == 2


async def test_headers_are_sent_and_secrets_never_come_back(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", TOKEN)
    spec = UrlToolsSpec(
        url=site.url,
        headers={"X-Team": "shop"},
        secrets={"Authorization": "SHOP_TOKEN", "X-Key": "SHOP_TOKEN"},
    )
    server = tool_server([spec], Path(), no_python)
    async with server.session(World({})) as session:
        sent = json.loads((await session.call(call("headers"))).content)
    assert sent["x-team"] == "shop"
    assert sent["authorization"] == "Bearer [secret]"
    assert sent["x-key"] == "[secret]"


async def test_a_secret_that_is_not_set_names_its_variable(site: Site) -> None:
    spec = UrlToolsSpec(url=site.url, secrets={"Authorization": "NOT_SET_ANYWHERE"})
    with pytest.raises(SetupError, match=r"NOT_SET_ANYWHERE \(`tools\.secrets`\) is not set"):
        tool_server([spec], Path(), no_python)


@pytest.mark.parametrize("status", [307, 404, 500])
async def test_an_http_error_in_a_call_is_a_fault_of_the_server_L2(site: Site, status: int) -> None:
    async with RemoteToolServer(site.url).session(World({})) as session:
        site.status = status
        with pytest.raises(ToolServerError, match=r"a call of 'add'"):
            await session.call(call("add", note="a"))


@pytest.mark.parametrize("status", [401, 404, 503])
async def test_an_http_error_at_the_start_is_one_clear_error(site: Site, status: int) -> None:
    site.status = status
    with pytest.raises(ToolServerError, match=rf"tool server {site.url} did not start: [^/]+$"):
        async with RemoteToolServer(site.url).session(World({})):
            raise AssertionError("nothing answered")


async def test_an_address_where_nobody_listens_is_one_clear_error() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        server = RemoteToolServer(f"http://127.0.0.1:{free.getsockname()[1]}/mcp")
        with pytest.raises(ToolServerError, match=r"did not start: [^/]+$"):
            async with server.session(World({})):
                raise AssertionError("nobody listens")


async def test_a_call_that_hangs_is_ended_by_its_deadline(site: Site) -> None:
    server = RemoteToolServer(site.url, limits=Limits(call_timeout_s=0.2))
    with pytest.raises(ToolServerError, match=r"'hang' within 0\.2 s"):
        async with server.session(World({})) as session:
            await session.call(call("hang"))
