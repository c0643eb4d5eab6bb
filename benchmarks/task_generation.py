"""Tasks composed of goals: are they solvable, is their outcome unique, what do policies without skill earn?

    python benchmarks/task_generation.py --json

Tasks are composed of the desk's goals (`domains/desk/goals.py`), two thirds to train on and the rest in two
halves, and then judged by others than those who made them. `solvable`: share of tasks whose gold calls earn 1, whose gold calls need nothing
that nobody can know, and which the desk's oracle, who is not told the task, solves in a dialogue with the
scripted user. `unique`: share of tasks in which no other order of the gold writes leads to another world,
and no other order of the customer's fits what she says, by a look at the records that shares no code with
the composer. `on_trust` counts arguments of
writes that only the goal's word says are the ones meant. `floor`: the most that a trivial policy earns in a dialogue on each task. `again` says whether
the same seed gave the same bytes in a process of its own. Seconds are wall time, `_cpu_s` what it took of
a core; `generate_s` is from the seed to proved tasks, without the start of Python.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import anyio

from muarl.data.proof import Means, Proof, prove
from muarl.domain import Domain, load_domain
from muarl.goals import histogram
from muarl.messages import ToolCall
from muarl.spec import GoldCallSpec, TaskSpec
from muarl.world import World, equal

DESK = Path(__file__).parents[1] / "domains" / "desk"
_OF_THE_DESK = """\
  python: tasks.py:generate
  splits: {train: 2400, dev: 600, held_out: 600}
expert: expert.py:Expert
"""
_SHOWN = 5


def desk_of_goals(count: int, seed: int, folder: Path) -> Domain:
    """A copy of the desk whose tasks are made of its goals, and whose expert is its oracle."""
    for file in DESK.glob("*.py"):
        (folder / file.name).write_text(file.read_text())
    text = (DESK / "domain.yaml").read_text()
    if _OF_THE_DESK not in text:
        raise SystemExit(f"{DESK}/domain.yaml no longer says\n{_OF_THE_DESK}mend this benchmark")
    held_out = count // 6
    splits = f"{{train: {count - 2 * held_out}, dev: {held_out}, held_out: {held_out}}}"
    tasks = f"  goals: goals.py:goals\n  splits: {splits}\n  seed: {seed}\n"
    text = text.replace(_OF_THE_DESK, f"{tasks}expert: oracle.py:Oracle\n")
    (folder / "domain.yaml").write_text(text)
    return load_domain(folder)


def digest(tasks: Sequence[TaskSpec]) -> str:
    """A hash of tasks, byte by byte."""
    text = "\n".join(task.model_dump_json() for task in tasks)
    return hashlib.sha256(text.encode()).hexdigest()


async def ambiguous(domain: Domain, tasks: Sequence[TaskSpec]) -> list[str]:
    """Tasks that could end otherwise."""
    return [
        task.id
        for task in tasks
        if several_fit(task) or not await same_in_every_order(domain, task)
    ]


def several_fit(task: TaskSpec) -> bool:
    """Whether an order that is written to, and that she does not name, is not her only one."""
    assert task.user is not None
    facts = {fact.id: fact.value for fact in task.user.facts}
    named = {f.value for r in task.user.requests for f in r.all_facts() if f.id == "order_id"}
    written = {call.arguments["order_id"] for call in writes(task)}
    hers = [key for key, o in task.world["orders"].items() if o["account"] == facts["account"]]
    return bool(written - named) and len(hers) != 1


async def same_in_every_order(domain: Domain, task: TaskSpec) -> bool:
    """Whether gold writes, in whatever order, lead to the gold world or are refused."""
    gold = await domain.gold_world(task)
    for order in permutations(list(writes(task))):
        world = await after(domain, task, order)
        if world is not None and not equal(gold, world):
            return False
    return True


async def after(domain: Domain, task: TaskSpec, calls: Sequence[GoldCallSpec]) -> World | None:
    """A task's world after calls; None if one is refused."""
    world = domain.world_for(task)
    async with domain.sides(world) as sides:
        for call in calls:
            result = await sides[call.by].call(ToolCall("order", call.tool, call.arguments))
            if result.is_error:
                return None
    return world


def writes(task: TaskSpec) -> Iterator[GoldCallSpec]:
    """Gold calls that change an order."""
    return (
        call
        for call in task.gold
        if call.tool in ("cancel_order", "return_order", "redirect_order")
    )


def unsolvable(proof: Proof) -> list[str]:
    """Tasks of which a proof found that they cannot be solved."""
    about = ("gold", "idle", "reach", "again", "reads", "names")
    return sorted({f.task_id for f in proof.findings if f.task_id and f.check in about})


def measured(count: int, seed: int) -> dict[str, Any]:
    """All figures."""
    with tempfile.TemporaryDirectory() as folder:
        domain = desk_of_goals(count, seed, Path(folder))
        anyio.run(domain.tools)  # imports what a tool server needs
        start, cpu = time.perf_counter(), time.process_time()
        made = [domain.task_source.composition(split) for split in domain.splits]
        took, cpu_s = time.perf_counter() - start, time.process_time() - cpu
        tasks = [task for split in domain.splits for task in domain.tasks(split)]
        proof = anyio.run(partial(prove, domain, dialogues=count))
        not_unique = anyio.run(ambiguous, domain, tasks)
    broken = unsolvable(proof)
    solved = pooled(proof.expert)
    floors = {name: pooled(means) for name, means in proof.floor.items()}
    refused = sum((composition.refused for composition in made), Counter[str]())
    return {
        "tasks": len(tasks),
        "solvable": round(min(1 - len(broken) / count, solved), 6),
        "solved_by_oracle": solved,
        "unique": round(1 - len(not_unique) / count, 6),
        "floor": max(floors.values(), default=1.0),
        "floors": floors,
        "idle": pooled(proof.idle),
        "axes": histogram(composed.axes for composition in made for composed in composition.made),
        "asks": dict(sorted(Counter(asks(tasks)).items())),
        "drawn": sum(composition.drawn for composition in made),
        "refused": dict(refused.most_common()),
        "on_trust": sum(composition.trusted.total() for composition in made),
        "sound": proof.sound,
        "findings": [str(finding.problem) for finding in proof.findings[:_SHOWN]],
        "broken": (broken + not_unique)[:_SHOWN],
        "generate_s": round(took, 3),
        "generate_cpu_s": round(cpu_s, 3),
        "digest": digest(tasks),
    }


def pooled(means: Means) -> float:
    """What is earned on all splits together."""
    played = sum(mean.n for mean in means.values())
    return round(sum((mean.value or 0.0) * mean.n for mean in means.values()) / max(played, 1), 6)


def asks(tasks: Sequence[TaskSpec]) -> Iterator[str]:
    """What users ask for."""
    return (request.ask for task in tasks if task.user for request in task.user.requests)


def digest_elsewhere(count: int, seed: int) -> str:
    """The hash that another process comes to."""
    command = [sys.executable, __file__, "--digest", "--tasks", str(count), "--seed", str(seed)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=1000, help="tasks to make (default 1000)")
    parser.add_argument("--seed", type=int, default=0, help="seed (default 0)")
    parser.add_argument("--digest", action="store_true", help="print the hash of the tasks alone")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    args = parser.parse_args()
    if args.digest:
        with tempfile.TemporaryDirectory() as folder:
            domain = desk_of_goals(args.tasks, args.seed, Path(folder))
            print(digest([task for split in domain.splits for task in domain.tasks(split)]))
        return
    found = measured(args.tasks, args.seed)
    figures = {
        "benchmark": "task_generation",
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        **found,
        "again": digest_elsewhere(args.tasks, args.seed) == found["digest"],
    }
    if args.json:
        print(json.dumps(figures))
    else:
        for name, value in figures.items():
            print(f"{name}: {value}")


if __name__ == "__main__":
    main()
