"""Whether a long run leaves anything behind.

    python benchmarks/soak.py --json

20,000 desk dialogues of 6 turns and 3 tool calls (see `_scripted_desk`), 512 at once, whose policy
answers at once; one after the other in rounds of 2,000, as iterations of a training run are. Every
twentieth dialogue fails at its first attempt. Episodes go to one journal; groups are dropped.

    rss_growth_mb   Memory resident after the last round less that after the first, which warms up.
    rss_by_round    Memory resident after each round, MB: whether it climbs or only wobbles.
    open_handles    Files, sockets and pipes open at the end, less those before the first round.
    threads         Threads alive at the end, less those before the first round.
    tasks           Tasks of the event loop alive at the end, less those before the first round.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
from _meters import metered, open_handles, rss_bytes
from _scripted_desk import GROUP, TURNS, ScriptedDesk

from muarl.cli._running import calm_collector
from muarl.errors import PolicyError
from muarl.policy import Policy
from muarl.record import EpisodeKey, JournalWriter
from muarl.scheduler import Limits, run_groups
from muarl.seeds import derive_seed
from muarl.spec import TaskSpec

DIALOGUES = 20_000
ROUND = 2_000
CONCURRENCY = 512
FAULTS = 20


class Broken:
    """A policy whose engine is down."""

    policy_version = 0

    async def generate(self, request: object) -> Any:
        del request
        await anyio.lowlevel.checkpoint()
        raise PolicyError("the engine is down")


async def soak(dialogues: int, of_a_round: int) -> dict[str, Any]:
    """Run them all."""
    desk = await ScriptedDesk.load()
    attempts: dict[EpisodeKey, int] = {}

    def policy_for(task: TaskSpec, key: EpisodeKey) -> Policy:
        attempts[key] = attempts.get(key, 0) + 1
        if attempts[key] == 1 and derive_seed(str(key)) % FAULTS == 0:
            return Broken()
        return desk.policy(task, key)

    runner = desk.runner(policy_for)
    limits = Limits(concurrency=CONCURRENCY, deadline_s=3600, retry_wait_s=0.05)
    handles, threads = open_handles(), threading.active_count()
    tasks = len(anyio.get_running_tasks())
    resident: list[int] = []
    finished = retried = 0
    calm_collector()
    async with metered() as meters:
        with tempfile.TemporaryDirectory() as folder, JournalWriter(Path(folder) / "j") as journal:
            for number in range(dialogues // of_a_round):
                keys = desk.keys(of_a_round, seed=0, phase=f"soak{number}")
                async with run_groups(keys, runner, limits=limits, journal=journal) as groups:
                    async for group in groups:
                        finished += sum(episode.reward == 1 for episode in group.episodes)
                    retried += groups.num_retried
                del group
                desk.policies.clear()
                attempts.clear()
                gc.collect()
                resident.append(rss_bytes())
                print(f"{finished} dialogues, {resident[-1] >> 20} MB", file=sys.stderr)
    if finished != dialogues:
        raise SystemExit(f"{dialogues - finished} of {dialogues} dialogues did not go as written")
    return {
        "dialogues": dialogues,
        "retried": retried,
        "rss_growth_mb": round((resident[-1] - resident[0]) / 1e6, 1),
        "rss_by_round": [round(at / 1e6, 1) for at in resident],
        "open_handles": open_handles() - handles,
        "threads": threading.active_count() - threads,
        "tasks": len(anyio.get_running_tasks()) - tasks,
        "cpu_ms_per_turn": round(1000 * meters.cpu_s / (dialogues * TURNS), 3),
        "wall_s": round(meters.wall_s, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dialogues", type=int, default=DIALOGUES)
    parser.add_argument("--json", action="store_true", help="only the last line on stdout")
    parser.add_argument("--round", type=int, default=ROUND, help="dialogues of a round")
    args = parser.parse_args()
    if args.round < 1 or args.round % GROUP or args.dialogues < 1 or args.dialogues % args.round:
        parser.error(f"--dialogues is a multiple of --round, and that of {GROUP}")
    print(json.dumps(anyio.run(soak, args.dialogues, args.round)))


if __name__ == "__main__":
    main()
