"""Is vLLM the bottleneck? Tokens per second of desk dialogues over those of vLLM by itself.

    python benchmarks/vllm_saturation.py --json

Plays held-out desk dialogues, many turns each, on a real vLLM on the CPU, and notes what the engine
was asked and how many tokens it sampled. Then the same requests, each for as many tokens, are given
to `vllm.LLM` at once: no dialogue waits for an answer there, no tool runs, nothing is rendered.

    saturation       sampled tokens/s of the dialogues over those of the one batch, medians
    saturation_http  the same for dialogues on a `vllm serve` over HTTP

Both engines have the same arguments, and so the same number of requests at once; there are several
times as many dialogues, so that the ends, when few are left, weigh little. Without `--run` a tiny
model is first trained for a minute, just enough for dialogues to have turns.
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
from quickstart import SPEC, spec_file, train

from muarl.cli._running import prepare_torch
from muarl.domain import load_domain
from muarl.evaluate.held_out import HeldOut
from muarl.http.descriptors import allow_many_connections
from muarl.kernel.model import load_model
from muarl.policy import EngineLoad, GenerateRequest, Generation, Loaded, Policy
from muarl.policy.vllm_engine import VllmPolicy
from muarl.policy.vllm_process import end, engine_environment, family, import_vllm
from muarl.record import Episode
from muarl.render import Renderer, TextTokenizer
from muarl.spec import load_run
from muarl.spec.engine import EngineSpec, VllmServerSpec, VllmSpec
from muarl.testing.vllm_serve import vllm_servers
from muarl.train.engines import open_engine, shared_prompt
from muarl.train.run_folder import versions

Workload = list[tuple[list[int], int]]
"""Prompt ids and how many tokens were sampled after them, in the order of asking."""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Nowhere:
    """A journal that keeps nothing."""

    def append(self, episode: Episode) -> None:
        del episode


class Noting:
    """A policy that notes what it was asked."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.workload: Workload = []

    @property
    def policy_version(self) -> int:
        return self._policy.policy_version

    def load(self) -> EngineLoad | None:
        return self._policy.load() if isinstance(self._policy, Loaded) else None

    async def generate(self, request: GenerateRequest) -> Generation:
        number = len(self.workload)
        self.workload.append((request.prompt_ids, 0))
        generation = await self._policy.generate(request)
        self.workload[number] = (request.prompt_ids, len(generation.token_ids))
        return generation


async def play(model: Path, engine: EngineSpec, args: argparse.Namespace) -> dict[str, Any]:
    """Dialogues: tokens/s of each round, the last round's workload, how the engine was started."""
    located = load_run(SPEC)
    spec = located.spec
    spec = spec.model_copy(
        update={
            "engine": engine,
            "eval": spec.eval.model_copy(update={"episodes": args.dialogues}),
            "rollout": spec.rollout.model_copy(update={"concurrency": args.at_once}),
        }
    )
    domain = load_domain(located.resolve(spec.domain))
    renderer = Renderer(TextTokenizer.load(model))
    rates: list[float] = []
    workload: Workload = []
    turns = 0.0
    arguments: dict[str, Any] = {}
    prompt = await shared_prompt(domain, renderer)
    async with open_engine(spec, load_model(model), model, prompt) as opened:
        if isinstance(opened.policy, VllmPolicy):
            arguments = opened.policy.engine_args
        for number in range(args.rounds + 1):  # the first warms up, on fewer dialogues
            if number == 0:
                fewer = spec.eval.model_copy(update={"episodes": args.at_once})
                run = spec.model_copy(update={"eval": fewer})
            else:
                run = spec
            noting = Noting(opened.policy)
            held_out = HeldOut(domain=domain, run=run, renderer=renderer, journal=Nowhere())
            began = time.monotonic()
            episodes = await held_out.by_policy(noting, phase=f"speed{number}", temperature=1.0)
            wall = time.monotonic() - began
            faults = sum(episode.outcome.is_fault for episode in episodes)
            if faults:
                raise SystemExit(f"{faults} of {len(episodes)} dialogues failed: {episodes[0]}")
            tokens = sum(episode.num_sampled for episode in episodes)
            assert tokens == sum(count for _, count in noting.workload)
            workload = noting.workload
            turns = statistics.fmean(len(episode.turns) for episode in episodes)
            say(f"{engine.name} round {number}: {tokens / wall:.0f} tokens/s, {turns:.1f} turns")
            rates.append(tokens / wall)
    return {
        "rates": rates[1:],
        "workload": workload,
        "turns": turns,
        "engine_args": arguments,
    }


def one_batch(
    workload: Workload, arguments: dict[str, Any], threads: int, rounds: int
) -> list[float]:
    """Tokens/s of vLLM's own offline engine on the same requests, all given at once."""
    before = set(multiprocessing.active_children())
    with engine_environment(threads):
        vllm = import_vllm()
        llm = vllm.LLM(**arguments)
    prompts = [vllm.TokensPrompt(prompt_token_ids=ids) for ids, _ in workload]
    sampling = [
        vllm.SamplingParams(
            temperature=1.0,
            seed=number,
            max_tokens=count,
            ignore_eos=True,
            logprobs=0,
            flat_logprobs=True,
            detokenize=False,
        )
        for number, (_, count) in enumerate(workload)
    ]
    tokens = sum(count for _, count in workload)
    rates = []
    for number in range(rounds + 1):  # the first warms up
        few = len(workload) // 4 if number == 0 else len(workload)
        llm.reset_prefix_cache()
        began = time.monotonic()
        outputs = llm.generate(prompts[:few], sampling[:few], use_tqdm=False)
        wall = time.monotonic() - began
        sampled = sum(len(output.outputs[0].token_ids) for output in outputs)
        assert number == 0 or sampled == tokens
        say(f"one batch, round {number}: {sampled / wall:.0f} tokens/s")
        rates.append(sampled / wall)
    started = family(set(multiprocessing.active_children()) - before)
    del llm
    end(started)
    return rates[1:]


def quick_model(folder: Path) -> Path:
    """A tiny model that has seen just enough dialogues to take turns."""
    spec = load_run(SPEC).spec
    assert spec.cold_start is not None
    changes = {
        "cold_start": spec.cold_start.model_copy(update={"episodes": 600, "steps": 250}),
        "grpo": None,
        "eval": spec.eval.model_copy(update={"episodes": 16, "temperatures": [1.0]}),
    }
    run = folder / "run"
    train(spec_file(folder, "quick", **changes), run)
    return run


def timed(work: Callable[..., Any], *args: Any) -> Any:
    began = time.monotonic()
    result = anyio.run(functools.partial(work, *args), backend="asyncio")
    say(f"{time.monotonic() - began:.0f} s")
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="only the last line on stdout")
    parser.add_argument("--run", type=Path, help="folder of a finished run, for its model")
    parser.add_argument("--dialogues", type=int, default=1536)
    parser.add_argument("--at-once", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--skip-http", action="store_true")
    args = parser.parse_args()
    allow_many_connections()
    threads = load_run(SPEC).spec.threads
    with tempfile.TemporaryDirectory() as name:
        model = (args.run or quick_model(Path(name))) / "model"
        prepare_torch(threads)
        online = timed(play, model, EngineSpec(vllm=VllmSpec()), args)
        offline = one_batch(online["workload"], online["engine_args"], threads, args.rounds)
        result: dict[str, Any] = {
            "saturation": round(statistics.median(online["rates"]) / statistics.median(offline), 3),
            "dialogues_tokens_per_s": [round(rate) for rate in online["rates"]],
            "one_batch_tokens_per_s": [round(rate) for rate in offline],
            "dialogues": args.dialogues,
            "at_once": args.at_once,
            "turns": round(online["turns"], 1),
            "messages": len(online["workload"]),
            "sampled_tokens": sum(count for _, count in online["workload"]),
            "prompt_tokens": sum(len(ids) for ids, _ in online["workload"]),
        }
        if not args.skip_http:
            arguments = ["--max-num-seqs", str(args.at_once)]
            length = load_run(SPEC).spec.rollout.context_tokens
            with vllm_servers(
                model, max_model_len=length, threads=threads, arguments=arguments
            ) as urls:
                server = VllmServerSpec(endpoints=urls, logprob_tolerance=1e-3)
                over_http = timed(play, model, EngineSpec(vllm_server=server), args)
            rate = statistics.median(over_http["rates"])
            result["saturation_http"] = round(rate / statistics.median(offline), 3)
            result["http_tokens_per_s"] = [round(rate) for rate in over_http["rates"]]
    result["machine"] = {"cores": os.cpu_count(), "cpu": platform.processor(), **versions()}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
