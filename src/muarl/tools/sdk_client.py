"""The SDK's own client, for servers beyond this process."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from mcp import Client, MCPError
from mcp_types import ListToolsResult

from muarl.tools.secrets import NO_SECRETS, Secrets
from muarl.tools.session import Answer, AnyRequest


class SdkClient:
    """A `McpClient` over one of the SDK.

    Args:
        client: Not yet entered.
        secrets: Taken out of every answer.
    """

    def __init__(self, client: Client, secrets: Secrets = NO_SECRETS) -> None:
        self._client = client
        self._secrets = secrets

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._client.__aexit__(kind, error, trace)

    async def send(self, request: AnyRequest, answer: type[Answer]) -> Answer:
        try:
            return self._told(await self._client.session.send_request(request, answer))
        except MCPError as error:
            if not self._secrets:
                raise
            raise MCPError(code=error.code, message=self._secrets.hide(error.message)) from None

    async def list_tools(self, cursor: str | None) -> ListToolsResult:
        return self._told(await self._client.list_tools(cursor=cursor))

    def _told(self, answer: Answer) -> Answer:
        if not self._secrets:
            return answer
        text = answer.model_dump_json(by_alias=True)
        return type(answer).model_validate_json(self._secrets.hide(text))
