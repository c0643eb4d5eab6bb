"""What samples the policy: the trainer's own model, vLLM in process, or vLLM servers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from muarl.spec.base import SECRET_KEY, EnvName, OneOrName, Spec
from muarl.spec.plugged import PluggedPolicy
from muarl.spec.url import ServerUrl

PositiveFloat = Annotated[float, Field(gt=0)]


class EmbeddedSpec(Spec):
    """The trainer's own model, in this process."""


class VllmSpec(Spec):
    """vLLM in this process's care, on this machine."""

    args: dict[str, bool | int | float | str] = {}
    """Further arguments of `vllm.AsyncEngineArgs`, as they are: `tensor_parallel_size: 2`."""

    @model_validator(mode="after")
    def _no_secrets(self) -> VllmSpec:
        for name in filter(SECRET_KEY.search, self.args):
            raise ValueError(
                f"{name!r} would be recorded with the run; set the environment variable that vLLM "
                "reads it from, such as HF_TOKEN"
            )
        return self


class VllmServerSpec(Spec):
    """vLLM servers; docs/vllm.md says how they are started."""

    endpoints: Annotated[list[ServerUrl], Field(min_length=1)]
    """Base URLs, `http://127.0.0.1:8000`; a dialogue stays with one of them."""
    api_key_env: EnvName | None = None
    """Environment variable that holds the servers' key; the key itself is never written anywhere."""
    timeout_s: PositiveFloat = 100.0
    """Seconds one policy message may take, with all its tries and its wait in a server's queue; less
    than a dialogue's `deadline_s`, so that the fault says why."""
    sync: Literal["disk", "nccl"] = "disk"
    """How new weights reach the servers: safetensors that they read, or from GPU to GPU."""
    sync_timeout_s: PositiveFloat = 300.0
    """Seconds a weight sync may take."""
    weights_dir: str | None = None
    """Folder shared with the servers, for `sync: disk`; left out: in memory, on one machine."""
    trainer_address: str = "127.0.0.1"
    """Where the servers' workers reach this machine, for `sync: nccl`."""
    logprob_tolerance: PositiveFloat = 0.03
    """Largest log-prob gap to the trainer that is taken for rounding; 1e-4 if all is float32."""

    @model_validator(mode="after")
    def _different(self) -> VllmServerSpec:
        if len(set(self.endpoints)) < len(self.endpoints):
            raise ValueError("an endpoint is named twice")
        return self


class EngineSpec(OneOrName):
    """What samples the policy: one of these, or the name of one that needs no settings."""

    embedded: EmbeddedSpec | None = None
    """The trainer's own model."""
    vllm: VllmSpec | None = None
    """vLLM in process."""
    vllm_server: VllmServerSpec | None = None
    """vLLM servers."""
    plugin: PluggedPolicy | None = None
    """What an installed package samples with: `{name: options}`; see docs/plugins.md."""
