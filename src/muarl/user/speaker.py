"""Who words an LLM user's messages: an endpoint, or a model that is sampled here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from muarl.errors import UserError

if TYPE_CHECKING:
    from muarl.http.chat_client import ChatMessage, ChatReply


class Speaker(Protocol):
    """A chat model. `muarl.http.chat_client.ChatClient` is one."""

    @property
    def model(self) -> str:
        """Its name."""
        ...

    async def complete(
        self,
        messages: Sequence[ChatMessage],
        *,
        seed: int,
        temperature: float,
        max_tokens: int,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> ChatReply:
        """Its next message.

        Raises:
            EpisodeError: There is none.
        """
        ...


class Mute:
    """Says nothing: of a user who is made to see whether she can be."""

    model = "none"

    async def complete(self, messages: Sequence[ChatMessage], **_how: Any) -> ChatReply:
        raise UserError(f"no model was given that could answer {len(messages)} messages")
