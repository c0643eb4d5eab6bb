"""Agents behind an OpenAI-compatible chat endpoint."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from muarl.spec.base import EnvName, Spec
from muarl.spec.url import EndpointUrl

Positive = Annotated[int, Field(gt=0)]
PositiveFloat = Annotated[float, Field(gt=0)]
Price = Annotated[float, Field(ge=0)]


class LlmAgentSpec(Spec):
    """An agent played by an LLM behind an OpenAI-compatible chat endpoint, with its own tool calls."""

    base_url: EndpointUrl
    """Endpoint, `http://127.0.0.1:8000/v1`."""
    model: str
    """Model name sent to the endpoint."""
    api_key_env: EnvName | None = None
    """Environment variable that holds the key; the key itself is never written anywhere."""
    temperature: Annotated[float, Field(ge=0)] = 1.0
    """Of the agent."""
    max_tokens: Positive = 1024
    """Cap on one message."""
    timeout_s: PositiveFloat = 60.0
    """Seconds one message may take, with all its tries."""


class PriceSpec(Spec):
    """What an endpoint charges for a million tokens, in any one currency."""

    prompt: Price
    """Of what it is sent."""
    completion: Price
    """Of what it writes."""


class ChatPolicySpec(LlmAgentSpec):
    """Any model behind a chat endpoint, to be evaluated; its tokens are unknown, so it is not trained."""

    price: PriceSpec | None = None
    """Left out, tokens are counted and no cost is told."""
