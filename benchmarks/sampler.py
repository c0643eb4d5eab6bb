"""Sampled tokens per second of the embedded sampler, on multi-turn dialogues.

    OMP_WAIT_POLICY=PASSIVE python benchmarks/sampler.py --json

The workload: every dialogue begins with the same 220 tokens (rules, tool schemas), then six times
5 to 40 tokens arrive and 3 to 25 are sampled (short ones are commoner: 160 in all), with the caches
kept in between. Weights are random and no token stops a message, so every run samples as much. Each figure
is the best of the repeats: other work on the machine only ever slows it.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: see docs of TorchPolicy

import argparse
import json
import platform
import random
import time
from pathlib import Path

import anyio
import torch
import transformers
from transformers import PreTrainedModel

from muarl.kernel.model import build_tiny_model
from muarl.policy import GenerateRequest
from muarl.policy.torch_sampler import TorchPolicy
from muarl.spec.model import TinyModelSpec

TURNS = 6
VOCAB = 1024
PREFIX = random.Random(0).choices(range(VOCAB), k=220)
PREFIXES = {"given": [PREFIX], "learned": None, "none": []}


async def converse(policy: TorchPolicy, number: int) -> int:
    """One dialogue; how many tokens it sampled."""
    draw = random.Random(number)
    context = list(PREFIX)
    sampled = 0
    for turn in range(TURNS):
        context += [draw.randrange(VOCAB) for _ in range(int(draw.triangular(5, 41, 5)))]
        request = GenerateRequest(
            prompt_ids=list(context),
            dialogue=str(number),
            seed=1000 * number + turn,
            max_tokens=int(draw.triangular(3, 26, 3)),
            temperature=1.0,
            stop_token_ids=(),
        )
        generation = await policy.generate(request)
        context += generation.token_ids
        sampled += len(generation.token_ids)
        await anyio.lowlevel.checkpoint()
    return sampled


async def run_once(model: PreTrainedModel, dialogues: int, prefixes: str) -> float:
    """Sampled tokens per second of `dialogues` at once, prefill included."""
    sampled: list[int] = []

    async def one(number: int) -> None:
        sampled.append(await converse(policy, number))

    async with TorchPolicy(
        model, max_len=640, slots=dialogues, prefixes=PREFIXES[prefixes]
    ) as policy:
        start = time.perf_counter()
        async with anyio.create_task_group() as tasks:
            for number in range(dialogues):
                tasks.start_soon(one, number)
        return sum(sampled) / (time.perf_counter() - start)


def cpu_name() -> str:
    """Name of the processor, as far as the system says it."""
    info = Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.exists() else []:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dialogues", type=int, nargs="+", default=[16, 64, 256])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--prefixes", choices=PREFIXES, default="given")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    # 0.72M parameters: what the quickstart trains.
    size = TinyModelSpec(vocab_size=VOCAB, num_kv_heads=2)
    model = build_tiny_model(size, seed=0, context_tokens=1024)
    figures = []
    for threads in args.threads:
        torch.set_num_threads(threads)
        for dialogues in args.dialogues:
            rate = max(
                anyio.run(run_once, model, dialogues, args.prefixes) for _ in range(args.repeats)
            )
            figures.append(
                {"threads": threads, "dialogues": dialogues, "tokens_per_s": round(rate)}
            )
            if not args.json:
                print(f"threads {threads}  dialogues {dialogues:4}  {rate:8.0f} sampled tokens/s")
    if args.json:
        result = {
            "benchmark": "sampler",
            "figures": figures,
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "prefixes": args.prefixes,
            "omp_wait_policy": os.environ["OMP_WAIT_POLICY"],
            "cpu": cpu_name(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        }
        print(json.dumps(result))


if __name__ == "__main__":
    main()
