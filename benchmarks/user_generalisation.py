"""What a policy that learned from one user is worth with others, and what a mixture of users mends.

    python benchmarks/user_generalisation.py --json

On the desk, with the embedded policy, for each seed: cold start and GRPO with one cooperative user (the
`plain` persona, who tells all at once), and the same with a pool of users, whom the expert of the cold
start meets as well: what no dialogue shows her, a tiny policy never samples. Then a grid on held-out
tasks, with the cooperative user and with two that neither training met: one who keeps every fact until
she is asked, and declines at first, and one who changes her request, insists and digresses.

- `success`: of both policies with each user, over all seeds, with an interval that draws tasks.
- `drop`: success of the first policy with the cooperative user, minus with the held-out ones.
- `gap_closed`: the part of that drop by which the mixture is better with the held-out users; its interval
  draws tasks. `gap_closed_by_seed` has one value for each seed.
- `alarms`: what the monitors of `muarl.measure.monitors` said while the first policy was trained.
- `gap_opens_at`: the first of its snapshots, by iteration, that is worse with the held-out users, the
  interval of the paired difference below 0; `held_out_falls_at` the first that is worse with them than
  an earlier one. `fired_before` names the monitors that fired before either; a gap at iteration 0 is
  the cold start's, and no monitor of GRPO can have come before it.

`--small` makes runs of seconds, to see that everything works; their figures mean nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import anyio
from quickstart import ROOT, say, shrink, spec_file
from quickstart import small as quickstart_in_small

from muarl.cli._running import prepare_torch
from muarl.evaluate.grid import played
from muarl.evaluate.paired import FourCells, Trials, gain_kept, paired_difference
from muarl.evaluate.statistics import Interval, mean_share
from muarl.record import read_journal
from muarl.scheduler.rounds import StopSignal
from muarl.spec import GridSpec, dump_spec, load_grid, load_run
from muarl.spec.model import ColdStartSpec
from muarl.train.progress import Silent
from muarl.train.run_folder import RunFolder, versions

SEEDS = (3030, 3131, 3232)
"""2020 to 2222 are spent: on them it was seen what the mixture and its cold start must hold."""
EVERY = 5
"""Iterations between two snapshots of a policy."""

OWN = "cooperative"
HELD_OUT: dict[str, Any] = {
    "withholding": {"withhold": 1.0, "refuse": 0.5},
    "wavering": {"change_request": 1.0, "push_back": 1.0, "digress": 0.2},
}
MIXTURE: dict[str, Any] = {
    "cooperative": {},
    "reserved": {"withhold": 0.5, "refuse": 0.2, "unsure": 0.2},
    "vague": {"withhold": 0.3, "partial": 0.3, "digress": 0.1},
    "restless": {"change_request": 0.5, "push_back": 0.3, "silence": 0.1},
}
"""None of them is one of the held-out users: what those do always or often, some of these do at times,
and none does all of it. An act that a tiny policy has never heard, it does not understand."""


def scripted(knobs: dict[str, float]) -> dict[str, Any]:
    return {"scripted": {"knobs": knobs}}


USERS: dict[str, Any] = {
    "single": scripted({}),
    "mixture": {"pool": {name: {"user": scripted(knobs)} for name, knobs in MIXTURE.items()}},
}
"""Who a policy is trained with."""


class Snapshots(Silent):
    """Keeps the weights of some iterations, each in a folder that can be sampled from."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._trains = False

    def phase(self, name: str, total: int) -> None:
        self._trains = name == "GRPO"
        say(f"  {name}")
        del total

    def advance(self, done: int, **figures: Any) -> None:
        if not self._trains or done % EVERY:
            return
        say(f"  iteration {done}: {figures}")
        snapshot = snapshot_of(self._folder.path, done)
        newest = max(path for path in self._folder.checkpoint.iterdir() if path.name.isdigit())
        shutil.copytree(self._folder.model, snapshot)
        for name in ("config.json", "model.safetensors"):
            shutil.copy2(newest / name, snapshot / name)


def snapshot_of(run: Path, iteration: int) -> Path:
    """The weights after so many iterations."""
    return run / "cold_start" if iteration == 0 else run / f"snapshot_{iteration:03d}"


def cooperative_desk(folder: Path) -> Path:
    """The desk, where every task is that of a `plain` customer."""
    desk = folder / "desk"
    shutil.copytree(ROOT / "domains" / "desk", desk, ignore=shutil.ignore_patterns("__pycache__"))
    tasks = desk / "tasks.py"
    text, count = re.subn(
        r"^PERSONA_SHARES = .*$",
        "PERSONA_SHARES = (1, 0, 0, 0)",
        tasks.read_text(),
        flags=re.MULTILINE,
    )
    assert count == 1
    assert 'PERSONAS = ("plain",' in text
    tasks.write_text(text)
    return desk


def train(folder: Path, desk: Path, name: str, seed: int, *, small: bool) -> Path:
    """Cold start and GRPO with some users; the run's folder."""
    from muarl.train.loop import train as carry_out

    quickstart = load_run(ROOT / "specs" / "quickstart.yaml").spec
    assert quickstart.cold_start is not None
    assert quickstart.grpo is not None
    cold, grpo, plays = quickstart.cold_start, quickstart.grpo, quickstart.eval
    if small:
        changed = quickstart.model_copy(update=quickstart_in_small(quickstart))
        cold, plays = changed.cold_start, changed.eval
        grpo = changed.grpo.model_copy(update={"iterations": EVERY, "tasks_per_iteration": 1})
    cold = ColdStartSpec.model_validate({**cold.model_dump(), "user": USERS[name]})
    changes = {"cold_start": cold, "grpo": grpo, "eval": plays, "user": USERS[name]}
    path = spec_file(folder, f"{name}-{seed}", domain=str(desk), seed=seed, **changes)
    located, out = load_run(path), folder / f"{name}-{seed}"
    run = RunFolder.create(out, located.spec.moved(path.parent, out), resume=False, overwrite=False)
    say(f"{name}, seed {seed}")
    anyio.run(carry_out, located, run, Snapshots(run), StopSignal())
    return out


def play(folder: Path, single: Path, mixture: Path, seed: int, *, tasks: int) -> dict[str, Any]:
    """Every snapshot of the first policy, and the last of the second, with all three users."""
    from muarl.train.grid import play_grid, ready_grid, run_of_grid

    iterations = [0, *sorted(int(p.name[-3:]) for p in single.glob("snapshot_*"))]
    policies = {f"single_{n:03d}": {"model": str(snapshot_of(single, n))} for n in iterations}
    policies["single"], policies["mixture"] = {"model": str(single)}, {"model": str(mixture)}
    users = {OWN: scripted({})} | {name: scripted(knobs) for name, knobs in HELD_OUT.items()}
    path = folder / f"grid-{seed}.yaml"
    spec = GridSpec.model_validate(
        {
            "version": 1,
            "run": str(single.with_suffix(".yaml")),
            "policies": policies,
            "users": users,
            "gain": {"cold": "single_000", "trained": "single", "user": OWN},
            "tasks": tasks,
            "trials": 2,
            "seed": seed,
        }
    )
    path.write_text(dump_spec(spec), encoding="utf-8")
    grid = load_grid(path)
    run = run_of_grid(grid, load_run(grid.resolve(grid.spec.run)))
    out = RunFolder.create(folder / f"grid-{seed}", run.spec, resume=False, overwrite=False)

    async def main() -> None:
        domain = await ready_grid(grid, run)
        await play_grid(domain, grid, run, folder=out, progress=Silent(), stop=StopSignal())

    anyio.run(main)
    cells: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)
    for episode in read_journal(out.journal):
        _, policy, user = episode.key.phase.split(":")
        cells[policy, user].append(episode)
    return {
        "iterations": iterations,
        "cells": {names: played({seed: episodes}).trials for names, episodes in cells.items()},
    }


def together(trials: Iterable[Trials]) -> Trials:
    """Tries of the same tasks, by different policies or users, as one."""
    found: defaultdict[str, list[bool]] = defaultdict(list)
    for one in trials:
        for task, tries in one.items():
            found[task] += tries
    return dict(found)


def of_held_out(cells: dict[tuple[str, str], Trials], policy: str) -> Trials:
    return together(cells[policy, user] for user in HELD_OUT)


def gap_closed(seeds: Iterable[dict[tuple[str, str], Trials]]) -> Interval:
    """(mixture - single) with held-out users / single's (own - held out): a ratio of gains."""
    seeds = list(seeds)
    mixture = together(of_held_out(cells, "mixture") for cells in seeds)
    single = together(of_held_out(cells, "single") for cells in seeds)
    own = together(cells["single", OWN] for cells in seeds)
    return gain_kept(FourCells(mixture, single, own, single), least=0.5).kept


def watched(
    run: Path, iterations: list[int], cells: dict[tuple[str, str], Trials]
) -> dict[str, Any]:
    """Monitors of a training, and when its policy became worse with held-out users."""
    lines = [line for line in RunFolder(run).lines() if line["kind"] == "iteration"]
    alarms = [(line["iteration"], alarm) for line in lines for alarm in line["users"]["alarms"]]
    held = {n: of_held_out(cells, f"single_{n:03d}") for n in iterations}
    own = {n: cells[f"single_{n:03d}", OWN] for n in iterations}
    opens = [n for n in iterations if below_zero(paired_difference(held[n], own[n]))]
    falls = [
        n
        for n in iterations
        if any(below_zero(paired_difference(held[n], held[m])) for m in iterations if m < n)
    ]
    first = min([*opens[:1], *falls[:1]], default=None)
    return {
        "alarms": [alarm for _, alarm in alarms],
        "gap_opens_at": opens[0] if opens else None,
        "held_out_falls_at": falls[0] if falls else None,
        "fired_before": [alarm for n, alarm in alarms if first is not None and n < first],
    }


def below_zero(interval: Interval) -> bool:
    return interval.high is not None and interval.high < 0


def numbers(interval: Interval) -> list[float | None]:
    """Value, low, high."""
    return [
        None if number is None else round(number, 4)
        for number in (interval.value, interval.low, interval.high)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="only the last line on stdout")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="how many (default: 3)")
    parser.add_argument("--tasks", type=int, default=150)
    parser.add_argument("--small", action="store_true", help="see that it works")
    args = parser.parse_args()
    prepare_torch(1)
    found: dict[int, dict[tuple[str, str], Trials]] = {}
    rows: dict[int, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        desk = cooperative_desk(folder)
        if args.small:
            shrink(desk)
        for seed in SEEDS[: args.seeds]:
            single, mixture = (train(folder, desk, who, seed, small=args.small) for who in USERS)
            tasks = 2 if args.small else args.tasks
            grid = play(folder, single, mixture, seed, tasks=tasks)
            found[seed] = grid["cells"]
            rows[seed] = {
                "gap_closed": numbers(gap_closed([grid["cells"]])),
                **watched(single, grid["iterations"], grid["cells"]),
            }
            say(f"seed {seed}: {json.dumps(rows[seed])}")
    cells = list(found.values())
    own = together(c["single", OWN] for c in cells)
    result = {
        "success": {
            policy: {
                user: numbers(mean_share(together(c[policy, user] for c in cells)))
                for user in (OWN, *HELD_OUT)
            }
            for policy in USERS
        },
        "drop": numbers(paired_difference(own, together(of_held_out(c, "single") for c in cells))),
        "gap_closed": numbers(gap_closed(cells)),
        "gap_closed_by_seed": {seed: row["gap_closed"][0] for seed, row in rows.items()},
        "seeds": rows,
        "small": args.small,
        "machine": {"cores": os.cpu_count(), "cpu": platform.processor(), **versions()},
    }
    print(json.dumps(result), file=sys.stdout)


if __name__ == "__main__":
    main()
