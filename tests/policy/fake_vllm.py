"""What a vLLM server answers, without vLLM: enough of it to tell right calls from wrong ones."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from muarl.policy.logprob_probe import LogprobProbe
from muarl.policy.vllm_wire import GENERATE, LOOK_PROMPT
from muarl.testing.http_server import HttpAnswer, HttpRequest, HttpServer, http_server
from muarl.testing.plan import FaultPlan

NOT_FOUND = HttpAnswer(404, b'{"detail": "Not Found"}')
METRICS = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_waiting{engine="0",model_name="m"} 2.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:num_preemptions_total{engine="0",model_name="m"} 1.0
vllm:num_preemptions_created{engine="0",model_name="m"} 1.7e+09
"""


class FakeVllm:
    """One server's state.

    Attributes:
        server: Its sockets.
        max_model_len: Tokens in one context; 0: it does not say.
        weights: What its log-probs follow from.
        label: What it calls them.
        is_paused: Between /pause and /resume.
        heeds_temperature: It was started with processed log-probs.
        has_dev_mode: Its weights can be exchanged.
        adapters: Name to what its log-probs follow from; None: the routes for adapters are shut.
        refuses: Paths that are answered with 500.
        messages: Prompts it was asked to go on from, the looks at it left out.
    """

    def __init__(self) -> None:
        self.server: HttpServer
        self.version = "0.32.0"
        self.max_model_len = 1024
        self.weights = "start"
        self.label = "default"
        self.is_paused = False
        self.heeds_temperature = True
        self.has_dev_mode = True
        self.adapters: dict[str, str] | None = None
        self.refuses: set[str] = set()
        self.messages: list[list[int]] = []
        self.headers: dict[str, str] = {}

    @property
    def url(self) -> str:
        return self.server.url

    def answer(self, request: HttpRequest) -> Any:
        path, _, query = request.path.partition("?")
        self.headers = request.headers
        if path in self.refuses:
            return HttpAnswer(500, b'{"error": "worker said no"}')
        if path == "/version":
            return {"version": self.version}
        if path == "/v1/models" and self.max_model_len:
            return {"data": [{"id": "m", "max_model_len": self.max_model_len}]}
        if path == "/metrics":
            return HttpAnswer(200, METRICS.encode())
        if path == GENERATE:
            asked = request.json()
            said = self._generate(asked)
            if isinstance(said, dict):
                said["request_id"] = f"generate-tokens-{asked['request_id']}"
            return said
        if self.adapters is not None and "lora" in path:
            return self._change_adapters(path, request.json())
        if not self.has_dev_mode:
            return NOT_FOUND
        match path:
            case "/weight_info":
                return {"weight_version": self.label}
            case "/pause":
                assert query == "mode=keep"
                self.is_paused = True
            case "/resume":
                self.is_paused = False
            case "/collective_rpc":
                asked = request.json()
                assert self.is_paused
                assert asked["method"] == "reload_weights"
                self.weights = read_weights(asked["kwargs"]["weights_path"])
            case "/reset_prefix_cache":
                assert query == "reset_running_requests=true"
            case "/update_weight_version":
                self.label = request.json()["new_version"]
            case _:
                return NOT_FOUND
        return {"status": "done"}

    def _change_adapters(self, path: str, asked: dict[str, Any]) -> Any:
        assert self.adapters is not None
        match path, asked:
            case "/v1/load_lora_adapter", {"lora_name": name, "lora_path": folder}:
                self.adapters[name] = read_weights(folder, "adapter_model.safetensors")
            case "/v1/unload_lora_adapter", {"lora_name": name} if name in self.adapters:
                del self.adapters[name]
            case _:
                return HttpAnswer(400, b'{"error": "no such adapter"}')
        return "Success"

    def _generate(self, asked: dict[str, Any]) -> Any:
        adapter = asked.get("model")
        if adapter is not None and adapter not in (self.adapters or {}):
            return HttpAnswer(404, f"The model `{adapter}` does not exist.".encode())
        weights = (self.adapters or {}).get(adapter, self.weights)
        sampling = asked["sampling_params"]
        assert sampling["ignore_eos"] is True
        prompt = asked["token_ids"]
        if "prompt_logprobs" in sampling:
            is_look = prompt[:4] == LOOK_PROMPT
            scores = [-1.0] * (len(prompt) - 1) if is_look else scores_of(weights, prompt)
            return self._reply([0], [-1.0]) | {
                "prompt_logprobs": [
                    None,
                    *({str(i): {"logprob": s}} for i, s in zip(prompt[1:], scores, strict=True)),
                ]
            }
        temperature = sampling["temperature"] if self.heeds_temperature else 1.0
        if prompt != LOOK_PROMPT:
            self.messages.append(prompt)
        count = sampling["max_tokens"]
        return self._reply(list(range(count)), [-1.0 * temperature] * count)

    def _reply(self, ids: list[int], logprobs: list[float]) -> dict[str, Any]:
        content = [
            {"token_id": i, "logprob": p, "rank": 1, "top_logprobs": []}
            for i, p in zip(ids, logprobs, strict=True)
        ]
        choice = {
            "index": 0,
            "token_ids": ids,
            "logprobs": {"content": content},
            "finish_reason": "length",
            "weight_versions": [{"version": self.label, "start": 0, "end": len(ids)}],
        }
        return {"choices": [choice], "prompt_logprobs": None}


def read_weights(folder: str, file: str = "model.safetensors") -> str:
    """Weights that a test saved: the values of a tensor, as text."""
    from pathlib import Path

    from safetensors.torch import load_file

    return str(load_file(Path(folder) / file)["w"].tolist())


def scores_of(weights: str, ids: list[int]) -> list[float]:
    """[T-1] log-probs, different for different weights."""
    digest = hashlib.sha256(weights.encode()).digest()
    return [-1.0 - digest[i % 32] / 256 for i in range(len(ids) - 1)]


def probe_of(weights: str) -> LogprobProbe:
    ids = [5, 6, 7, 8]
    return LogprobProbe(ids, scores_of(weights, ids))


@asynccontextmanager
async def fake_vllm(
    count: int = 1, plan: FaultPlan[Any] | None = None, **settings: Any
) -> AsyncIterator[list[FakeVllm]]:
    """So many servers; `plan` is the first one's."""
    async with AsyncExitStack() as stack:
        fakes = [FakeVllm() for _ in range(count)]
        for number, fake in enumerate(fakes):
            mine = plan if number == 0 else None
            fake.server = await stack.enter_async_context(
                http_server(fake.answer, mine, **settings)
            )
        yield fakes
