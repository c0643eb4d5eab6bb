"""What thousands of dialogues at once cost beside the waiting for the model.

    python benchmarks/scheduler.py --json

Desk dialogues of 6 turns and 3 tool calls over in-memory MCP (the SDK's own server and client, with
all its validation), a scripted user, rewards, and a journal on disk. All dialogues are live at
once, in groups of 8; whole groups are dropped as they come. The policy takes an exponential time of
mean 2 s over each message, in real time, from the seed of the request. Each size runs in a process
of its own.

    wall_over_ideal       Seconds from the first start to the last group, over the ideal: the longest
                          chain of latencies that was drawn, one dialogue's six one after another
                          (with fewer slots than dialogues: the end of the last chain, each slot
                          taking the next chain in order as soon as it is free).
    cpu_ms_per_turn       Processor time of the whole process, over policy messages. A turn holds its
                          share of all else: tool call, user, rendering, session, world, reward,
                          journal. The meter is in it too: some tenths of a second a run, which
                          show at 64 dialogues and not at 4,096.
    rss_kib_per_dialogue  Most memory resident at a time (looked at every 100 ms) less that resident when
                          the first dialogue started, over the dialogues live at once.
    loop_lag_p99_ms       How late a timer of the event loop is, 99th percentile. A loop that stands
                          still counts for every 10 ms it does.

The figures of `--dialogues` (4,096) stand at the top; `growth` has all sizes.
"""

from __future__ import annotations

import argparse
import heapq
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
from _meters import metered, rss_bytes
from _scripted_desk import CALLS, TURNS, ScriptedDesk

from muarl.cli._running import calm_collector
from muarl.record import JournalWriter
from muarl.scheduler import EpisodePlan, Limits, run_groups

DIALOGUES = 4096
GROWTH = (64, 512, 16_384)
MEAN_S = 2.0


def ideal_s(chains: Sequence[float], slots: int) -> float:
    """When the last chain ends if each slot takes the next one as soon as it is free."""
    free = [0.0] * min(slots, len(chains))
    for chain in chains:
        heapq.heapreplace(free, free[0] + chain)
    return max(free)


async def run_one(dialogues: int, slots: int, seed: int, mean_s: float) -> dict[str, Any]:
    """The figures of one size."""
    desk = await ScriptedDesk.load()
    keys = desk.keys(dialogues, seed=seed, phase="bench")
    limits = Limits(concurrency=slots, deadline_s=3600)
    await desk.runner()(EpisodePlan(keys[0]))  # builds the tool server, imports what is lazy
    desk.mean_s = mean_s
    solved = 0
    with tempfile.TemporaryDirectory() as folder, JournalWriter(Path(folder) / "j") as journal:
        calm_collector()  # as every verb of the command line does that runs dialogues
        before = rss_bytes()
        async with (
            metered() as meters,
            run_groups(keys, desk.runner(), limits=limits, journal=journal) as groups,
        ):
            async for group in groups:
                solved += sum(
                    e.reward == 1 and len(e.turns) == TURNS and len(e.calls()) == CALLS
                    for e in group.episodes
                )
    if solved != dialogues:
        raise SystemExit(f"{dialogues - solved} of {dialogues} dialogues did not go as written")
    ideal = ideal_s([desk.policies[key].slept_s for key in keys], slots)
    return {
        "dialogues": dialogues,
        "concurrency": slots,
        "wall_s": round(meters.wall_s, 2),
        "ideal_s": round(ideal, 2),
        "wall_over_ideal": round(meters.wall_s / ideal, 3),
        "cpu_ms_per_turn": round(1000 * meters.cpu_s / (dialogues * TURNS), 3),
        "rss_kib_per_dialogue": round((meters.peak_rss - before) / 1024 / min(slots, dialogues), 1),
        "loop_lag_p99_ms": round(meters.lag_ms(0.99), 1),
        "loop_lag_max_ms": round(meters.lag_ms(1.0), 1),
    }


def in_a_process_of_its_own(arguments: Sequence[str]) -> dict[str, Any]:
    """The last line of this script, run with `arguments`."""
    command = [sys.executable, __file__, "--json", *arguments]
    ran = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dialogues", type=int, default=DIALOGUES)
    parser.add_argument("--concurrency", type=int, help="dialogues live at once (default: all)")
    parser.add_argument("--growth", type=int, nargs="*", default=GROWTH, help="further sizes")
    parser.add_argument("--mean-s", type=float, default=MEAN_S, help="seconds of a message")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="only the last line on stdout")
    args = parser.parse_args()
    if not args.growth:
        slots = args.concurrency or args.dialogues
        found = anyio.run(run_one, args.dialogues, slots, args.seed, args.mean_s)
        print(json.dumps(found))
        return
    sizes = []
    for dialogues in sorted({*args.growth, args.dialogues}):
        slots = args.concurrency or dialogues
        arguments = [f"--dialogues={dialogues}", f"--concurrency={slots}", f"--seed={args.seed}"]
        arguments.append(f"--mean-s={args.mean_s}")
        sizes.append(in_a_process_of_its_own([*arguments, "--growth"]))
        print(json.dumps(sizes[-1]), file=sys.stderr)
    (at_size,) = (found for found in sizes if found["dialogues"] == args.dialogues)
    machine = {"python": platform.python_version(), "cpus": os.cpu_count()}
    print(json.dumps({**at_size, "growth": sizes, **machine}))


if __name__ == "__main__":
    main()
