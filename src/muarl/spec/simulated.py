"""Tools that an LLM simulates, with the dialogue's world for a memory."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from muarl.spec.base import EnvName, Spec
from muarl.spec.sql import ParameterName, SqlParameterSpec
from muarl.spec.url import EndpointUrl


class SimulatedToolSpec(Spec):
    """One tool."""

    description: str
    """For the policy, and for whoever simulates it: what it tells, does and refuses."""
    parameters: dict[ParameterName, SqlParameterSpec] = {}
    """What a call gives, in order."""
    writes: bool = False
    """Whether it may change the memory; one that may not and does contradicts itself."""


class SimulatorLlmSpec(Spec):
    """Who simulates: an LLM behind an OpenAI-compatible chat endpoint, and its tools."""

    base_url: EndpointUrl
    """Endpoint, `http://127.0.0.1:8000/v1`."""
    model: str
    """Model name sent to the endpoint."""
    api_key_env: EnvName | None = None
    """Environment variable that holds the key; the key itself is never written anywhere."""
    max_tokens: Annotated[int, Field(gt=0)] = 1024
    """Cap on one answer."""
    timeout_s: Annotated[float, Field(gt=0)] = 60.0
    """Seconds one answer may take."""
    tries: Annotated[int, Field(ge=1, le=10)] = 3
    """How often an answer that contradicts the memory is asked for again; after that the dialogue ends in
    a fault."""
    tools: Annotated[dict[ParameterName, SimulatedToolSpec], Field(min_length=1)]
    """Tool name to tool."""
