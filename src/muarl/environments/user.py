"""The user of a dialogue with an environment: says what the environment says, word by word."""

from __future__ import annotations

from typing import Any

import msgspec

from muarl.environments.sides import OPEN, TELL
from muarl.messages import ToolCall
from muarl.record import UserReply
from muarl.user.protocol import Device


class _Said(msgspec.Struct):
    text: str
    over: bool


class EnvironmentUser:
    """A `User` who asks her device, which is the environment, what to say."""

    def __init__(self) -> None:
        self._asked = 0
        self._device: Device

    def take(self, device: Device) -> None:
        self._device = device

    async def open(self) -> UserReply:
        return await self._says(OPEN, {}, "open")

    async def reply(self, agent_text: str) -> UserReply:
        return await self._says(TELL, {"text": agent_text}, "next")

    async def _says(self, tool: str, arguments: dict[str, Any], act: str) -> UserReply:
        call = ToolCall(f"environment_{self._asked}", tool, arguments)
        self._asked += 1
        result = await self._device.call(call)
        said = msgspec.json.decode(result.content, type=_Said)
        return UserReply(said.text, stop=said.over, act="stop" if said.over else act)
