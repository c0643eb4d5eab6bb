"""Whether figures of users are right, and whether they see what the reward cannot.

    python benchmarks/user_metrics.py --json

Three parts:

- 40 dialogues written by hand, with what a reader saw in them (`labelled_dialogues.yaml`). `miscounted`
  is the number of lines whose facts told, asked for and kept, answers, groundedness or end is counted
  otherwise than by the reader; `f1` is that of all text patterns together, on the half that patterns
  were mended by (`f1_seen`) and on the other (`f1_held_back`).
- Four bad users on the desk, with an oracle agent (`_planted_users.py`). `ranked_worst` is the number
  of them that are worst of all users by their own figure; `apart` those whose interval is apart from
  all others'. `oracle_reward` is the agent's mean reward with each user, `reward_fell` the largest fall
  from that with the honest one.
- Shares of the reward's variance that are planted in drawn rewards, crossed and nested, graded and
  all-or-nothing; `variance_error` is the largest distance of a share that is found from the planted one.

`--runs FOLDER` writes the dialogues of the second part as folders of runs, for `muarl users`.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import sys
import time
from pathlib import Path
from statistics import fmean
from typing import Any

import anyio
from _labelled import PARTS, cue_counts, f1, load, miscounted, mistakes
from _planted_users import OWN_FIGURE, USERS, Panel

from muarl.cli.users import is_worst
from muarl.measure import CATALOGUE, Measured, measure
from muarl.measure.variance import Cell, split, squares
from muarl.scheduler.journal import Unjournaled

SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
SEEDS = 4


def labelled() -> dict[str, Any]:
    """The part with the dialogues written by hand."""
    dialogues = load()
    parts = {part: [d for d in dialogues if d.part == part] for part in PARTS}
    counts = cue_counts(dialogues)
    for line in [*miscounted(dialogues), *mistakes(parts["seen"])]:
        print(line, file=sys.stderr)
    return {
        "dialogues": len(dialogues),
        "miscounted": len(miscounted(dialogues)),
        "f1": round(f1(counts.values()), 4),
        **{f"f1_{part}": round(f1(cue_counts(found).values()), 4) for part, found in parts.items()},
        "f1_by_pattern": {cue: round(f1([count]), 3) for cue, count in sorted(counts.items())},
    }


async def planted(num_tasks: int, seed: int) -> dict[str, Any]:
    """The part with the bad users."""
    panel = Panel.load(num_tasks, seed)
    found: dict[str, Measured] = {}
    rewards: dict[str, float] = {}
    for name in USERS:
        transcripts = await panel.play(name, Unjournaled())
        found[name] = measure(transcripts, seed=seed)
        rewards[name] = fmean(t.reward for t in transcripts if t.reward is not None)
        figures = {f: str(found[name].figures[f]) for f in OWN_FIGURE.values()}
        print(name, round(rewards[name], 4), figures, file=sys.stderr)
    values = {
        figure: {name: found[name].figures[figure].value for name in USERS}
        for figure in OWN_FIGURE.values()
    }
    worst = [
        name
        for name, figure in OWN_FIGURE.items()
        if all(values[figure][name] > v for other, v in values[figure].items() if other != name)
    ]
    apart = [
        name
        for name, figure in OWN_FIGURE.items()
        if is_worst(
            CATALOGUE[figure],
            found[name].figures[figure],
            [found[other].figures[figure] for other in USERS if other != name],
        )
    ]
    return {
        "tasks": num_tasks,
        "figures": values,
        "ranked_worst": len(worst),
        "apart": len(apart),
        "oracle_reward": rewards,
        "reward_fell": max(rewards["honest"] - reward for reward in rewards.values()),
        "contract": {name: found[name].figures["contract"].value for name in USERS},
    }


def drawn_share(share: float, kind: str, rng: random.Random, tasks: int) -> float:
    """The user's share that is found in rewards of a design with `share` planted in it."""
    users = policies = 6
    found = []
    for _ in range(tasks):
        mean = rng.gauss(0, 2)
        by_policy = [rng.gauss(0, ((1 - share) / 2) ** 0.5) for _ in range(policies)]
        cells = []
        for user in range(users):
            if kind == "all_or_nothing":
                # Success p drawn from Beta(a, a): the user's part is Var(p), the policy's E[p (1 - p)].
                a = (1 / share - 1) / 2
                p = rng.betavariate(a, a)
                cells += [Cell(str(user), "", float(rng.random() < p)) for _ in range(policies)]
                continue
            hers = mean + rng.gauss(0, share**0.5)
            for policy in range(policies):
                rest = rng.gauss(0, ((1 - share) / 2) ** 0.5)
                if kind == "crossed":
                    cells.append(Cell(str(user), str(policy), hers + by_policy[policy] + rest))
                else:
                    own = rng.gauss(0, ((1 - share) / 2) ** 0.5)
                    cells.append(Cell(str(user), "", hers + own + rest))
        of_task = squares(cells)
        assert of_task is not None
        found.append(of_task)
    components = split(found)
    assert components is not None
    assert components.user_share is not None
    return components.user_share


def variance(seed: int, tasks: int) -> dict[str, Any]:
    """The part with planted shares of variance."""
    errors = {
        kind: max(
            abs(drawn_share(share, kind, random.Random(f"{seed} {draw} {share}"), tasks) - share)
            for share in SHARES
            for draw in range(SEEDS)
        )
        for kind in ("nested", "crossed", "all_or_nothing")
    }
    return {
        "variance_error": round(max(errors.values()), 4),
        "variance_errors": {kind: round(error, 4) for kind, error in errors.items()},
        "variance_tasks": tasks,
    }


async def write_runs(out: Path, num_tasks: int, seed: int) -> None:
    panel = Panel.load(num_tasks, seed)
    for name in USERS:
        await panel.keep(name, out / name)
        print(out / name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=200, help="dialogues with each user")
    parser.add_argument("--variance-tasks", type=int, default=200, help="tasks of a design")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=Path, help="write the bad users' dialogues there, no more")
    parser.add_argument("--json", action="store_true", help="only the last line on stdout")
    args = parser.parse_args()
    if args.runs is not None:
        anyio.run(write_runs, args.runs, args.tasks, args.seed)
        return
    began = time.monotonic()
    found = {
        **labelled(),
        **anyio.run(planted, args.tasks, args.seed),
        **variance(args.seed, args.variance_tasks),
        "seconds": round(time.monotonic() - began, 1),
        "python": platform.python_version(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
