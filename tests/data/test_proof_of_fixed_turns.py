"""Proofs of tasks whose user has fixed messages, and which show the agent some tools only."""

from __future__ import annotations

from pathlib import Path

import pytest
from spec_files import spoil, write_all

from muarl.data.proof import Proof, prove
from muarl.domain import load_domain
from muarl.errors import SpecError

pytestmark = pytest.mark.anyio

TASK = """\
  - id: told-1
    split: held_out
    goal: Cancel W2.
    personas: [plain]
    world: {orders: {W2: {status: pending}}}
    turns: [{says: Hello.}, {says: Cancel W2., shows: [cancel]}]
    tools: [look]
    gold: [{tool: cancel, arguments: {order_id: W2}, turn: 1}]
"""


def shop(folder: Path, old: str = "", new: str = "") -> Path:
    """The shop with a task of fixed turns beside its scripted one."""
    write_all(folder)
    with (folder / "tasks.yaml").open("a") as file:
        file.write(TASK)
    if old:
        spoil(folder / "tasks.yaml", old, new)
    return folder


def said(proof: Proof) -> list[str]:
    return [f"{f.check} {f.problem.line}: {f.problem.message}" for f in proof.findings]


async def test_tasks_of_both_kinds_are_played_each_with_its_user(tmp_path: Path) -> None:
    proof = await prove(load_domain(shop(tmp_path)))
    assert said(proof) == []
    assert proof.skipped == ["the domain names no expert"]
    assert proof.floor["do_nothing"]["train"].n == 1
    assert proof.floor["do_nothing"]["held_out"].n == 1


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        (
            "tools: [look]",
            "tools: [lok]",
            "names 20: task 'told-1': unknown tool 'lok'; did you mean 'look'?",
        ),
        (
            "shows: [cancel]",
            "shows: [cancle]",
            "names 19: task 'told-1': unknown tool 'cancle'; did you mean 'cancel'?",
        ),
        (
            ", shows: [cancel]",
            "",
            (
                "reach 21: task 'told-1': nobody can know of 'cancel', which gold call 1 calls: the "
                "agent is not shown it; name it under the task's `tools`, or under `shows` of a turn "
                "before"
            ),
        ),
    ],
)
async def test_tools_that_a_task_shows_are_there_and_are_enough(
    tmp_path: Path, old: str, new: str, finding: str
) -> None:
    assert finding in said(await prove(load_domain(shop(tmp_path, old, new))))


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("turn: 1", "turn: 2", "there is no turn 2: the task has 2 `turns`, counted from 0"),
        (
            "turn: 1}]",
            "turn: 1}, {tool: look, arguments: {order_id: W2}}]",
            (
                "the gold call before this one is made after turn 1, so that this one cannot be made "
                "after turn 0; gold calls stand in the order in which they are made"
            ),
        ),
        (
            "    tools: [look]\n",
            "",
            (
                "the agent is shown all tools from the beginning, since the task names none; list those "
                "that it is shown at first under the task's `tools`"
            ),
        ),
        (
            "{order_id: W1}\n",
            "{order_id: W1}\n        turn: 1\n",
            "there is no turn 1: the task has no `turns`",
        ),
    ],
)
def test_turns_that_there_are_none_of_are_named(
    tmp_path: Path, old: str, new: str, problem: str
) -> None:
    shop(tmp_path, old, new)
    with pytest.raises(SpecError) as refused:
        load_domain(tmp_path).tasks("train")
    assert [p.message for p in refused.value.problems] == [problem]
