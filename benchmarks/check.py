"""How long it takes to prove a domain: `muarl check` on 1,000 tasks, the overlap guard on 3,000.

    python benchmarks/check.py --json

The tasks are the shipped desk's, from its own generator. `check_s` is all that `muarl check` does:
loading, gold calls, extra reads, facts, trivial policies and the expert in dialogues; `fuzz_s` that of
mutated gold runs besides. `overlap_s` compares tasks with each other and nothing else; some are planted
twins with a word changed, and `overlap_found` of `overlap_planted` says how many it found. `help_s` is
`muarl --help` in a process of its own, with the start of Python: the median of several, of which
`help_max_s` is the slowest. Seconds are wall time; beside each, `..._cpu_s` is what it took of a core, so
that a figure from a busy machine can be read.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio
from _planted_tasks import desk_of, twins_of

from muarl.data.proof import prove
from muarl.overlap import near_duplicates

_TWINS = 30
_HELPS = 11


def timed_check(tasks: int, fuzz: int) -> dict[str, Any]:
    """Seconds for the whole proof of a domain with so many tasks, and for its mutated gold runs."""
    with tempfile.TemporaryDirectory() as folder:
        start, cpu = time.perf_counter(), time.process_time()
        domain = desk_of(tasks, Path(folder))
        steps: list[tuple[str, float]] = []

        async def main() -> Any:
            return await prove(
                domain, fuzz=fuzz, on_step=lambda step: steps.append((step, time.perf_counter()))
            )

        proof = anyio.run(main)
        end, cpu_s = time.perf_counter(), time.process_time() - cpu
    ends = [at for _, at in steps[1:]] + [end]
    took = {step: round(after - at, 3) for (step, at), after in zip(steps, ends, strict=True)}
    fuzz_s = took.get("mutated gold runs", 0.0)
    return {
        "check_tasks": sum(proof.tasks.values()),
        "check_s": round(end - start - fuzz_s, 3),
        "check_and_fuzz_cpu_s": round(cpu_s, 3),
        "check_steps_s": took,
        "sound": proof.sound,
        "findings": len(proof.findings),
        "fuzz_s": fuzz_s,
        "fuzz_runs": proof.fuzz.runs if proof.fuzz else 0,
        "fuzz_counted": proof.fuzz.counted if proof.fuzz else 0,
        "fuzz_passed": proof.fuzz.passed if proof.fuzz else 0,
    }


def timed_overlap(tasks: int) -> dict[str, Any]:
    """Seconds to compare so many tasks with each other, some of them twins with a word changed."""
    with tempfile.TemporaryDirectory() as folder:
        domain = desk_of(max(tasks - _TWINS, 6), Path(folder))
        made = [task for split in domain.splits for task in domain.tasks(split)]
    twins = twins_of(made, _TWINS, ["word"])
    made += twins.values()
    start, cpu = time.perf_counter(), time.process_time()
    pairs = list(near_duplicates(made))
    took, cpu_s = time.perf_counter() - start, time.process_time() - cpu
    planted = {(of, twin.id) for of, twin in twins.items()}
    found = {(pair.first.id, pair.second.id) for pair in pairs}
    return {
        "overlap_tasks": len(made),
        "overlap_s": round(took, 3),
        "overlap_cpu_s": round(cpu_s, 3),
        "overlap_planted": len(planted),
        "overlap_found": len(planted & found),
        "overlap_others": len(found - planted),
    }


def timed_help(runs: int) -> dict[str, Any]:
    """Seconds of `muarl --help`, each time in a new process: as installed, or from the source."""
    installed = Path(sys.executable).with_name("muarl")
    source = [sys.executable, "-c", "import sys; from muarl.cli import main; sys.exit(main())"]
    command = [str(installed)] if installed.exists() else source
    took = []
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run([*command, "--help"], check=True, capture_output=True)
        took.append(time.perf_counter() - start)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "help_s": round(statistics.median(took), 3),
        "help_max_s": round(max(took), 3),
        "help_cpu_s": round(cpu_s / runs, 3),
        "help_as": "installed" if installed.exists() else "python -c",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=1000, help="tasks to check (default 1000)")
    parser.add_argument("--overlap", type=int, default=3000, help="tasks to compare (default 3000)")
    parser.add_argument("--fuzz", type=int, default=1000, help="mutated gold runs (default 1000)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    figures = {
        "benchmark": "check",
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        **timed_check(args.tasks, args.fuzz),
        **timed_overlap(args.overlap),
        **timed_help(_HELPS),
    }
    if args.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name}: {value}")


if __name__ == "__main__":
    main()
