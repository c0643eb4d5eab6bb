"""MCP servers that run elsewhere, over streamable HTTP: a session of its own for each dialogue."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from muarl.tools.carrier import DEFAULT_LIMITS, Carrier, Limits
from muarl.tools.sdk_client import SdkClient
from muarl.tools.sdk_logs import CrashLog
from muarl.tools.secrets import NO_SECRETS, Secrets
from muarl.tools.session import McpSession, connected
from muarl.world import World


class RemoteToolServer:
    """A `ToolServer` at a URL.

    The dialogue's world is not sent there: what the server's state is, `setup` says and `state`
    reads.

    Args:
        url: Of its MCP endpoint.
        headers: HTTP headers sent with every request.
        secrets: HTTP headers that hold secrets. An `Authorization` of one word is a bearer token.
        limits: What the domain allows it.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        secrets: Secrets = NO_SECRETS,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._url = url
        self._secrets = secrets
        self._headers = {
            **(headers or {}),
            **dict(_header(*secret) for secret in secrets.values.items()),
        }
        self._limits = limits
        self._name = f"tool server {url}"
        self._crashes = CrashLog(self._name)

    @asynccontextmanager
    async def session(self, world: World) -> AsyncIterator[McpSession]:
        carrier = Carrier(self._name, self._limits, self._crashes, secrets=self._secrets)
        # One for each dialogue: a server may know its sessions by cookies. Deadlines are the domain's.
        async with httpx2.AsyncClient(headers=self._headers, timeout=None) as http:
            transport = streamable_http_client(self._url, http_client=http)
            # The newest protocol has no sessions, and so no state that is a dialogue's own.
            client = Client(transport, cache=None, mode="legacy")
            async with connected(SdkClient(client, self._secrets), carrier) as session:
                yield session


def _header(name: str, value: str) -> tuple[str, str]:
    bearer = name.lower() == "authorization" and " " not in value
    return name, f"Bearer {value}" if bearer else value
