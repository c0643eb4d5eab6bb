"""How an update's cost grows with the length of samples: as that of the model's body, or worse?

    python benchmarks/kernel_scaling.py --json

Two samples of 1,000 to 16,000 tokens that share nothing, 30 % sampled, through `Trainer`'s own path; and
beside it the forward and backward pass of the body alone on the same tokens. Attention is quadratic, so
both grow faster than the length; `growth_over_body` says how much faster the kernel grew than the body
from the shortest to the longest, in processor time, and `memory_growth_over_length` how much faster than
the length its memory grew.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from typing import Any

import torch
from kernel import build_model, build_samples, forget_peak, kernel_step, rss_mb, say


def measure(args: argparse.Namespace) -> dict[str, float]:
    """One length, in this process."""
    torch.set_num_threads(args.threads)
    model, samples = build_model(args, args.vocab), build_samples(args, args.vocab)
    step = kernel_step(args, model, samples)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    before = rss_mb("VmRSS")
    forget_peak()
    step()
    peak = rss_mb("VmHWM") - before

    def body() -> None:
        for sample in samples:
            ids = torch.tensor([sample.token_ids])
            model.base_model(ids, use_cache=False).last_hidden_state.sum().backward()

    return {"tokens": args.own, "cpu_s": cpu_s(step), "body_cpu_s": cpu_s(body), "peak_mb": peak}


def cpu_s(step: Any) -> float:
    """Processor time of one step, after one that warmed up."""
    began = time.process_time()
    step()
    return round(time.process_time() - began, 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="only the last line on stdout")
    parser.add_argument("--tokens", type=int, nargs="+", default=[1000, 2000, 4000, 8000, 16000])
    parser.add_argument("--vocab", type=int, default=32_000)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--sampled", type=float, default=0.3)
    parser.add_argument("--max-tokens", type=int, default=4096)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--own", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.group, args.shared = 2, 1
    if args.own:
        print(json.dumps(measure(args)))
        return
    rows = []
    for tokens in args.tokens:
        keys = ("vocab", "hidden", "layers", "sampled", "max_tokens", "threads")
        settings = [f"--{key.replace('_', '-')}={getattr(args, key)}" for key in keys]
        command = [sys.executable, __file__, f"--own={tokens}", *settings]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        say(str(rows[-1]))
    first, last = rows[0], rows[-1]
    body = last["body_cpu_s"] / first["body_cpu_s"]
    result = {
        "rows": rows,
        "growth": round(last["cpu_s"] / first["cpu_s"], 2),
        "growth_of_body": round(body, 2),
        "growth_over_body": round(last["cpu_s"] / first["cpu_s"] / body, 3),
        "memory_growth_over_length": round(
            last["peak_mb"] / first["peak_mb"] / (last["tokens"] / first["tokens"]), 3
        ),
        "threads": args.threads,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
