"""What a tau2 retail dialogue costs beside the models, and what it costs in the official environment.

    python benchmarks/paper_overhead.py --json
    python benchmarks/paper_overhead.py --json --official-python VENV/bin/python

Official retail tasks as the paper had them (v0.2.0), imported from `--data`; a scripted policy makes the
published calls, one a message, then says what must be said; a scripted user tells her goal and ends the
dialogue at the first message to her. Nothing waits for a model. All dialogues that are at once have
begun before the first of them goes on, so that their memory is really held together. Ours run over
in-memory MCP, with tokens, journal on disk, and the official reward; the official ones (`tau2` in this
Python, or in the one named) in as many threads, scored by the official evaluator. Each size runs in a
process of its own. Sizes of the official ones that memory is too small for are left out, and it says so.

    per_minute       Dialogues a minute, from the first start to the last reward.
    kib_per_dialogue Most memory resident at a time less that before, over the dialogues at once; at 1 it
                     holds what the process keeps once, and says little.
    cpu_ms           Processor time of a dialogue.
    solved           Share with reward 1; those that upstream's own calls do not solve are the rest.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
from _meters import metered, rss_bytes

from muarl.cli._running import calm_collector
from muarl.compat.tau.importer import imported_tau2
from muarl.compat.tau.writing import write
from muarl.domain import load_domain
from muarl.messages import Message, ToolCall
from muarl.policy import GenerateRequest, Generation
from muarl.record import EpisodeKey, JournalWriter
from muarl.render import Renderer, train_tokenizer
from muarl.scheduler import EpisodePlan, Limits, run_groups
from muarl.scheduler.dialogues import DialogueRunner
from muarl.spec import TaskSpec
from muarl.spec.run import RolloutSpec
from muarl.spec.user import TellerUserSpec, UserSpec

DATA = Path(__file__).parents[2] / "shared" / "fixtures" / "data"
OFFICIAL = Path(__file__).with_name("_official_tau2.py")
SIZES = (1, 64, 1024)
LIMITS = RolloutSpec(max_turns=100, max_tokens=4096, context_tokens=65_536, deadline_s=3600)
LEAST = 114
"""Dialogues of the smallest sizes: each task once."""


def script(task: TaskSpec, said: Sequence[str]) -> list[dict[str, Any]]:
    """What the policy does: the published calls, one after another, then what must be said."""
    calls = [{"calls": [{"name": c.tool, "arguments": c.arguments}]} for c in task.gold]
    return [*calls, {"text": " ".join(["Done.", *said])}]


def _message(said: dict[str, Any], number: int) -> Message:
    calls = tuple(
        ToolCall(f"call_{number}", call["name"], call["arguments"])
        for call in said.get("calls", ())
    )
    return Message("assistant", said.get("text", ""), tool_calls=calls)


class Together:
    """Lets nobody go on before so many are there."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._open = anyio.Event()

    async def wait(self) -> None:
        self._left -= 1
        if self._left <= 0:
            self._open.set()
        await self._open.wait()


class ScriptedPolicy:
    """Speaks for one dialogue."""

    policy_version = 0

    def __init__(self, messages: list[list[int]], together: Together) -> None:
        self._messages = iter(messages)
        self._together: Together | None = together

    async def generate(self, request: GenerateRequest) -> Generation:
        del request
        if self._together is not None:
            await self._together.wait()
            self._together = None
        await anyio.lowlevel.checkpoint()
        ids = next(self._messages)
        return Generation(ids, [-0.01] * len(ids), "stop", 0)


class Retail:
    """The imported domain and its scripts."""

    def __init__(self, data: Path, folder: Path) -> None:
        (made,) = imported_tau2(data, domains=["retail"], version="v0.2.0")
        self.domain = load_domain(write(made, folder))
        splits = self.domain.splits  # which share no task
        self.tasks = [task for split in splits for task in self.domain.tasks(split)]
        published = json.loads((self.domain.folder / "published.json").read_text())
        self.published = {task.id: published[task.id] for task in self.tasks}

    def said(self, task: TaskSpec) -> list[str]:
        criteria = self.published[task.id].get("evaluation_criteria") or {}
        return list(criteria.get("communicate_info") or ())

    def keys(self, count: int) -> list[EpisodeKey]:
        laps = range(-(-count // len(self.tasks)))
        keys = [EpisodeKey(0, "bench", lap, task.id, 0) for lap in laps for task in self.tasks]
        return keys[:count]


async def ours(data: Path, at_once: int, count: int) -> dict[str, Any]:
    """Figures of our dialogues."""
    with tempfile.TemporaryDirectory() as folder:
        retail = Retail(data, Path(folder))
        domain = retail.domain
        by_bytes = Renderer(train_tokenizer([], vocab_size=300))
        opening = [Message("system", domain.spec.rules), Message("user", "hello")]
        prompt = by_bytes.tokenizer.decode(by_bytes.start(opening, await domain.tools()))
        goals = [task.goal for task in retail.tasks]
        renderer = Renderer(train_tokenizer([prompt, *goals], vocab_size=4096))
        scripts = {
            task.id: [
                renderer.encode_reply(_message(said, number))
                for number, said in enumerate(script(task, retail.said(task)))
            ]
            for task in retail.tasks
        }
        keys = retail.keys(count)

        def runner(together: Together) -> DialogueRunner:
            return DialogueRunner(
                domain=domain,
                tasks=retail.tasks,
                renderer=renderer,
                limits=LIMITS,
                user=UserSpec(teller=TellerUserSpec()),
                policy_for=lambda task, _key: ScriptedPolicy(scripts[task.id], together),
            )

        # Builds the tool server, and imports what is imported on first use.
        await runner(Together(1))(EpisodePlan(keys[0]))
        calm_collector()  # as every verb of the command line does that runs dialogues
        before = rss_bytes()
        solved = faults = 0
        limits = Limits(concurrency=at_once, deadline_s=3600)
        with JournalWriter(Path(folder) / "journal") as journal:
            async with (
                metered() as meters,
                run_groups(
                    keys, runner(Together(at_once)), limits=limits, journal=journal
                ) as groups,
            ):
                async for group in groups:
                    solved += sum(episode.reward == 1 for episode in group.episodes)
                    faults += sum(episode.outcome.is_fault for episode in group.episodes)
    if faults:
        raise SystemExit(f"{faults} of {count} dialogues were faulty")
    growth = max(0, meters.peak_rss - before)
    return _figures(at_once, count, solved, meters.wall_s, meters.cpu_s, growth)


def _figures(
    at_once: int, count: int, solved: int, wall_s: float, cpu_s: float, growth: int
) -> dict[str, Any]:
    return {
        "at_once": at_once,
        "dialogues": count,
        "per_minute": round(60 * count / wall_s),
        "kib_per_dialogue": round(growth / 1024 / at_once, 1),
        "cpu_ms": round(1000 * cpu_s / count, 2),
        "solved": round(solved / count, 4),
    }


def official(python: str, data: Path, at_once: int, count: int) -> dict[str, Any]:
    """Figures of the same dialogues in the official environment."""
    with tempfile.TemporaryDirectory() as folder:
        retail = Retail(data, Path(folder))
        tasks = {task.id: task for task in retail.tasks}
        dialogues = [
            {
                "task": retail.published[key.task_id],
                "goal": tasks[key.task_id].goal,
                "messages": script(tasks[key.task_id], retail.said(tasks[key.task_id])),
            }
            for key in retail.keys(count)
        ]
    given = json.dumps({"at_once": at_once, "dialogues": dialogues})
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    environment["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it looks for prices on the network
    ran = subprocess.run(
        [python, str(OFFICIAL)],
        input=given,
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    found = json.loads(ran.stdout.splitlines()[-1])
    return _figures(
        *(at_once, count, found["solved"]), found["wall_s"], found["cpu_s"], found["rss_growth"]
    )


def count_of(at_once: int) -> int:
    """Dialogues of a size."""
    return max(at_once, LEAST)


def in_a_process_of_its_own(data: Path, at_once: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--data", str(data), "--one", str(at_once)]
    ran = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def all_official(python: str, data: Path, sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Every size that half of the free memory holds, by what a dialogue of the size before took."""
    found: list[dict[str, Any]] = []
    for at_once in sizes:
        needed = at_once * 1024 * found[-1]["kib_per_dialogue"] if at_once > 64 and found else 0
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if needed > free / 2:
            why = f"would take {needed / 2**30:.1f} GiB, and {free / 2**30:.1f} are free"
            found.append({"at_once": at_once, "not_measured": why})
            continue
        found.append(official(python, data, at_once, count_of(at_once)))
        print(json.dumps({"official": found[-1]}), file=sys.stderr)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="upstream data")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="dialogues at once")
    parser.add_argument("--official-python", metavar="PATH", help="a Python that has tau2")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="only one JSON object on stdout")
    args = parser.parse_args()
    if not args.data.is_dir():
        print(f"no folder {args.data}: --data names the upstream data", file=sys.stderr)
        return 2
    if args.one is not None:
        print(json.dumps(anyio.run(ours, args.data, args.one, count_of(args.one))))
        return 0
    rows = []
    for at_once in args.sizes:
        rows.append(in_a_process_of_its_own(args.data, at_once))
        print(json.dumps({"ours": rows[-1]}), file=sys.stderr)
    python = args.official_python
    if python is None and importlib.util.find_spec("tau2") is not None:
        python = sys.executable
    found = {
        "benchmark": "paper_overhead",
        "ours": rows,
        "official": all_official(python, args.data, args.sizes) if python else None,
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
    }
    print(json.dumps(found, indent=None if args.json else 2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
