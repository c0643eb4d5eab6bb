"""Rollouts and models in a notebook: cells of a real Jupyter kernel, which has a loop of its own."""

from __future__ import annotations

from pathlib import Path

import anyio
import nbclient
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from muarl.spec import load_run
from muarl.suite import load_domain_of
from muarl.train.models import open_model

DESK = Path(__file__).resolve().parents[1] / "domains" / "desk"

IN_ONE_CELL = """
from muarl import GrpoSpec, RolloutSpec, Rollouts, load_domain, open_policy
desk = load_domain(DESK)
limits = RolloutSpec(context_tokens=1000, max_tokens=8)

async def play(model):
    tasks = desk.tasks("train")[:2]
    async with Rollouts(
        desk, model.policy, model.renderer, tasks=tasks, group_size=2, limits=limits
    ) as rollouts:
        return [group async for group in rollouts]

async with open_policy(MODEL, limits=limits, learns=GrpoSpec(lr=1e-4)) as model:
    groups = await play(model)
    figures = await model.learn(groups)
print(len(groups), figures["policy_version"])
"""
HELD = """
from contextlib import ExitStack
from anyio.from_thread import start_blocking_portal
held = ExitStack()
portal = held.enter_context(start_blocking_portal())
model = held.enter_context(portal.wrap_async_context_manager(open_policy(MODEL, limits=limits)))
"""


@pytest.mark.timeout(300)
def test_cells_hold_dialogues_and_learn(tmp_path: Path) -> None:
    run = tmp_path / "run.yaml"
    run.write_text(
        f"version: 1\ndomain: {DESK}\ncold_start: {{episodes: 20}}\n"
        "model: {tiny: {vocab_size: 640, hidden_size: 32, num_layers: 1}}\n"
    )
    located = load_run(run)
    anyio.run(open_model, load_domain_of(located), located, tmp_path / "model")
    names = f"DESK, MODEL = {str(DESK)!r}, {str(tmp_path / 'model')!r}\n"
    cells = [names + IN_ONE_CELL, HELD, "print(len(portal.call(play, model)))", "held.close()"]
    notebook = new_notebook(cells=[new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=200, kernel_name="python3").execute()
    said = [
        "".join(out.text for out in cell.outputs if out.name == "stdout") for cell in notebook.cells
    ]
    assert said == ["2 1\n", "", "2\n", ""]
    assert nbformat.validator.isvalid(notebook)
