"""Is vLLM the bottleneck? Tokens per second of desk dialogues over those of vLLM by itself.

    python benchmarks/vllm_saturation.py --json

Plays held-out desk dialogues, many turns each, on a real vLLM on the CPU, and notes what the engine
was asked and how many tokens it sampled. Then the same requests, each for as many tokens, are given
to `vllm.LLM` at once: no dialogue waits for an answer there, no tool runs, nothing is rendered. The
two take turns, so that what else the machine does meets both.

    saturation       sampled tokens/s of the dialogues over those of the one batch, median of rounds
    saturation_http  the same for dialogues on a `vllm serve` over HTTP
    rounds           of each: messages that ran and waited in the engine (medians of readings ten times
                     a second), the fewest dialogues that admission let live, and processor time that a
                     message took here, in the engine, in an HTTP server before it, and in the one batch's
                     engine

Both engines have the same arguments, and so sample the same number of messages at once (`--rows`).
Twice as many dialogues may live (`--at-once`), as the one batch too has always more to give: a
message whose turn was answered is back in the engine one or two steps later, and of messages of
seven tokens that leaves two rows in seven empty unless others wait. There are several times as many
dialogues in all, so that the ends, when few are left, weigh little. Without `--run` a tiny model is
first trained for a minute, just enough for dialogues to have turns.
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
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import msgspec
import psutil
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
from muarl.scheduler import Observer
from muarl.spec import load_run
from muarl.spec.engine import EngineSpec, VllmServerSpec, VllmSpec
from muarl.testing.vllm_serve import vllm_servers
from muarl.train.engines import open_engine, shared_prompts
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


class Watching(Observer):
    """Notes how busy the engine was and how many dialogues might live, ten times a second."""

    def __init__(self) -> None:
        self.running: list[int] = []
        self.waiting: list[int] = []
        self.windows: list[int] = []

    def window_set(self, load: EngineLoad, window: int) -> None:
        self.running.append(load.running)
        self.waiting.append(load.waiting)
        self.windows.append(window)

    def seen(self) -> dict[str, float | None]:
        """The figures; None each where dialogues were over before there was a reading."""
        if not self.windows:
            return {"running": None, "waiting": None, "least_window": None}
        return {
            "running": statistics.median(self.running),
            "waiting": statistics.median(self.waiting),
            "least_window": min(self.windows),
        }


class Processors:
    """Seconds of processor time that this process and others use."""

    def __init__(self, others: Sequence[psutil.Process]) -> None:
        self._engines = [process for process in others if _is_engine(process)]
        self._servers = [process for process in others if process not in self._engines]
        self._before = self._now()

    def used(self) -> tuple[float, float, float]:
        """Since the beginning: by this process, by what samples, by HTTP servers before that."""
        mine, engines, servers = (
            now - before for now, before in zip(self._now(), self._before, strict=True)
        )
        return mine, engines, servers

    def _now(self) -> tuple[float, float, float]:
        return time.process_time(), _seconds(self._engines), _seconds(self._servers)


def _is_engine(process: psutil.Process) -> bool:
    """Whether a process of vLLM samples: it gives itself a title (`VLLM::EngineCore`)."""
    return any("VLLM::" in part for part in process.cmdline())


def _seconds(processes: Sequence[psutil.Process]) -> float:
    times = [process.cpu_times() for process in processes]
    return sum(t.user + t.system for t in times)


class OneBatch:
    """vLLM's own offline engine, given all requests at once."""

    def __init__(self, arguments: dict[str, Any], threads: int) -> None:
        before = set(multiprocessing.active_children())
        with engine_environment(threads):
            self._vllm = import_vllm()
            self._llm = self._vllm.LLM(**arguments)
        self._started = family(set(multiprocessing.active_children()) - before)

    def sample(self, workload: Workload) -> tuple[float, float]:
        """Each prompt, for as many tokens as were sampled after it.

        Returns:
            Tokens/s, and seconds of processor time of the engine.
        """
        prompts = [self._vllm.TokensPrompt(prompt_token_ids=ids) for ids, _ in workload]
        sampling = [
            self._vllm.SamplingParams(
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
        self._llm.reset_prefix_cache()
        processors = Processors(self._started)
        began = time.monotonic()
        outputs = self._llm.generate(prompts, sampling, use_tqdm=False)
        wall = time.monotonic() - began
        sampled = sum(len(output.outputs[0].token_ids) for output in outputs)
        assert sampled == sum(count for _, count in workload)
        return sampled / wall, processors.used()[1]

    def close(self) -> None:
        """End its processes."""
        del self._llm
        end(self._started)


class Rounds(msgspec.Struct):
    """What was measured with one engine, round by round.

    Attributes:
        dialogues: Tokens/s of dialogues.
        one_batch: Tokens/s of the same requests in one batch, right after.
        notes: What else was seen while dialogues ran.
        workload: Of the last round.
        turns: Of a dialogue, on average, in the last round.
    """

    dialogues: list[float] = []
    one_batch: list[float] = []
    notes: list[dict[str, float | None]] = []
    workload: Workload = []
    turns: float = 0.0

    @property
    def saturation(self) -> float:
        """Median over the rounds: what else the machine does meets both halves of a round alike."""
        pairs = zip(self.dialogues, self.one_batch, strict=True)
        return round(statistics.median(mine / theirs for mine, theirs in pairs), 3)


async def measure(
    model: Path, engine: EngineSpec, args: argparse.Namespace, arguments: dict[str, Any]
) -> Rounds:
    """Dialogues and the same requests in one batch, in turns, so that both meet the same machine."""
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
    found = Rounds()
    prompts = await shared_prompts(domain, renderer)
    async with open_engine(spec, load_model(model), model, prompts) as opened:
        if isinstance(opened.policy, VllmPolicy):
            arguments.update(opened.policy.engine_args)
        engine_processes = psutil.Process().children(recursive=True)
        one_batch = await anyio.to_thread.run_sync(OneBatch, arguments, spec.threads)
        try:
            for number in range(args.rounds + 1):  # the first warms up, on fewer dialogues
                if number == 0:
                    fewer = spec.eval.model_copy(update={"episodes": args.at_once})
                    run = spec.model_copy(update={"eval": fewer})
                else:
                    run = spec
                noting, watching = Noting(opened.policy), Watching()
                held_out = HeldOut(
                    domain=domain,
                    run=run,
                    renderer=renderer,
                    journal=Nowhere(),
                    observer=watching,
                )
                processors = Processors(engine_processes)
                began = time.monotonic()
                episodes = await held_out.by_policy(noting, phase=f"speed{number}", temperature=1.0)
                wall = time.monotonic() - began
                used = processors.used()
                faults = sum(episode.outcome.is_fault for episode in episodes)
                if faults:
                    raise SystemExit(f"{faults} of {len(episodes)} dialogues failed: {episodes[0]}")
                tokens = sum(episode.num_sampled for episode in episodes)
                assert tokens == sum(count for _, count in noting.workload)
                alone, alone_cpu_s = await anyio.to_thread.run_sync(
                    one_batch.sample, noting.workload
                )
                messages = len(noting.workload)
                note = {
                    **watching.seen(),
                    "cpu_ms_per_message": round(1000 * used[0] / messages, 2),
                    "engine_cpu_ms_per_message": round(1000 * used[1] / messages, 2),
                    "server_cpu_ms_per_message": round(1000 * used[2] / messages, 2),
                    "one_batch_cpu_ms_per_message": round(1000 * alone_cpu_s / messages, 2),
                }
                say(
                    f"{engine.name} round {number}: {tokens / wall:.0f} tokens/s in dialogues, "
                    f"{alone:.0f} in one batch, {note}"
                )
                if number:
                    found.dialogues.append(tokens / wall)
                    found.one_batch.append(alone)
                    found.notes.append(note)
                found.workload = noting.workload
                found.turns = statistics.fmean(len(episode.turns) for episode in episodes)
        finally:
            await anyio.to_thread.run_sync(one_batch.close)
    return found


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


def run(work: Callable[..., Awaitable[Rounds]], *args: Any) -> Rounds:
    return anyio.run(functools.partial(work, *args), backend="asyncio")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="only the last line on stdout")
    parser.add_argument("--run", type=Path, help="folder of a finished run, for its model")
    parser.add_argument("--dialogues", type=int, default=2048)
    parser.add_argument("--at-once", type=int, default=512)
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--skip-http", action="store_true")
    args = parser.parse_args()
    allow_many_connections()
    threads = load_run(SPEC).spec.threads
    with tempfile.TemporaryDirectory() as name:
        model = (args.run or quick_model(Path(name))) / "model"
        prepare_torch(threads)
        arguments: dict[str, Any] = {}
        found = run(
            measure,
            model,
            EngineSpec(vllm=VllmSpec(args={"max_num_seqs": args.rows})),
            args,
            arguments,
        )
        result: dict[str, Any] = {
            "saturation": found.saturation,
            "dialogues_tokens_per_s": [round(rate) for rate in found.dialogues],
            "one_batch_tokens_per_s": [round(rate) for rate in found.one_batch],
            "rounds": found.notes,
            "dialogues": args.dialogues,
            "at_once": args.at_once,
            "rows": args.rows,
            "turns": round(found.turns, 1),
            "messages": len(found.workload),
            "sampled_tokens": sum(count for _, count in found.workload),
            "prompt_tokens": sum(len(ids) for ids, _ in found.workload),
        }
        if not args.skip_http:
            more = ["--max-num-seqs", str(args.rows)]
            length = load_run(SPEC).spec.rollout.context_tokens
            with vllm_servers(model, max_model_len=length, threads=threads, arguments=more) as urls:
                server = VllmServerSpec(endpoints=urls, logprob_tolerance=1e-3)
                over_http = run(measure, model, EngineSpec(vllm_server=server), args, arguments)
            result["saturation_http"] = over_http.saturation
            result["http_tokens_per_s"] = [round(rate) for rate in over_http.dialogues]
            result["http_one_batch_tokens_per_s"] = [round(rate) for rate in over_http.one_batch]
            result["http_rounds"] = over_http.notes
    result["machine"] = {"cores": os.cpu_count(), "cpu": platform.processor(), **versions()}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
