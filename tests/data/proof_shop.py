"""A shop to prove, and to break."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from spec_files import spoil

GENERATOR = """\
from muarl.spec import FactSpec, GoldCallSpec, RequestSpec, TaskSpec, UserGoalSpec


def task(split, index):
    order = f"W{index + (5 if split == 'held_out' else 0)}"
    facts = [FactSpec(id="order_id", value=order)]
    return TaskSpec(
        id=f"{split}-{index}",
        split=split,
        goal="",
        personas=["plain"],
        user=UserGoalSpec(requests=[RequestSpec(ask="cancel", facts=facts)]),
        world={"orders": {order: {"status": "pending"}}},
        gold=[GoldCallSpec(tool="cancel", arguments={"order_id": order})],
    )


def generate(split, seed, count):
    return [task(split, index) for index in range(count)]
"""


def generated(folder: Path, old: str = "", new: str = "") -> None:
    """Let the shop's tasks come from Python, with one passage of it replaced."""
    (folder / "gen.py").write_text(GENERATOR)
    if old:
        spoil(folder / "gen.py", old, new)
    spoil(
        folder / "domain.yaml",
        "files: [tasks.yaml]",
        "python: gen.py:generate\n  splits: {train: 3, held_out: 2}",
    )


def with_expert(folder: Path, old: str = "", new: str = "") -> None:
    """Give the shop its expert, with one passage of it replaced."""
    spoil(folder / "domain.yaml", "reward:", "expert: expert.py:Expert\nreward:")
    if old:
        spoil(folder / "expert.py", old, new)


Break = Callable[[Path], None]


def break_domain(old: str, new: str) -> Break:
    return lambda folder: spoil(folder / "domain.yaml", old, new)


def break_tasks(old: str, new: str) -> Break:
    return lambda folder: spoil(folder / "tasks.yaml", old, new)


def break_tools(old: str, new: str) -> Break:
    return lambda folder: spoil(folder / "tools.py", old, new)
