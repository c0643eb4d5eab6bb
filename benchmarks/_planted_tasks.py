"""The desk with as many tasks as a benchmark needs, and twins of its tasks, for guards to find."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from muarl.domain import Domain, load_domain
from muarl.spec import TaskSpec

DESK = Path(__file__).parents[1] / "domains" / "desk"


def desk_of(tasks: int, folder: Path) -> Domain:
    """A copy of the desk with so many tasks: two thirds to train on, the rest in two halves."""
    for file in DESK.glob("*.py"):
        (folder / file.name).write_text(file.read_text())
    held_out = tasks // 6
    splits = f"{{train: {tasks - 2 * held_out}, dev: {held_out}, held_out: {held_out}}}"
    text = (DESK / "domain.yaml").read_text()
    old = "splits: {train: 2400, dev: 600, held_out: 600}"
    if old not in text:
        raise SystemExit(f"{DESK}/domain.yaml no longer says `{old}`; mend this benchmark")
    (folder / "domain.yaml").write_text(text.replace(old, f"splits: {splits}"))
    return load_domain(folder)


def twins_of(tasks: Sequence[TaskSpec], count: int, ways: Sequence[str]) -> Mapping[str, TaskSpec]:
    """Id of a task to a twin of it that is not the same to the letter, for some drawn by chance.

    Args:
        tasks: Of which some get one.
        count: How many.
        ways: What is changed, in turn; see `_goal`.
    """
    drawn = random.Random(0).sample(list(tasks), min(count, len(tasks)))
    return {
        task.id: task.model_copy(
            update={"id": f"twin-{number}", "goal": _goal(task.goal, ways[number % len(ways)])}
        )
        for number, task in enumerate(drawn)
    }


def _goal(goal: str, way: str) -> str:
    said = goal.split()
    match way:
        case "word":
            return goal.replace("You want to", "You wish to", 1)
        case "order":
            return " ".join(said[len(said) // 2 :] + said[: len(said) // 2])
        case _:
            return "Somebody wants something of the desk."
