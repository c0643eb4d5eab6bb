"""A training run of seconds: the desk, a random model, and a reward that even it earns at times."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import pytest
import torch

from muarl.scheduler.rounds import Interrupted, StopSignal
from muarl.spec import RunSpec, dump_spec, load_run
from muarl.suite import load_domain_of
from muarl.train.loop import train
from muarl.train.models import open_model
from muarl.train.progress import Silent
from muarl.train.run_folder import RunFolder

DESK = Path(__file__).resolve().parents[2] / "domains" / "desk"

SHORT: dict[str, Any] = {
    "version": 1,
    "seed": 5,
    "threads": 1,
    "model": {"tiny": {"vocab_size": 640, "hidden_size": 64, "num_layers": 2}},
    "rollout": {"group_size": 4, "concurrency": 32, "max_tokens": 16, "context_tokens": 1024},
    "grpo": {
        "iterations": 3,
        "tasks_per_iteration": 4,
        "lr": 3e-3,
        "kl_coef": 0.01,
        "entropy_coef": 0.001,  # so that there is something to learn even of groups that are even
    },
    "eval": {"episodes": 8, "temperatures": [1.0]},
}

_SPLITS = "splits: {train: 2400, dev: 600, held_out: 600}"

PAYS = """
def an_e(evidence):
    return any("e" in text for _, text in evidence.heard())
"""


def write_run(folder: Path, *, tasks: int = 0, **changes: Any) -> Path:
    """A run file, and beside it a desk that pays for any `e` said, so that groups differ.

    Args:
        folder: Where.
        tasks: To train on; 0 for as few as the run can do with.
        changes: Keys of the run.
    """
    shutil.copytree(DESK, folder / "desk", ignore=shutil.ignore_patterns("__pycache__"))
    domain = folder / "desk" / "domain.yaml"
    text = domain.read_text(encoding="utf-8")
    assert "  - gold_world: true\n" in text
    paid = "  - python: {function: pays.py:an_e}\n"
    assert _SPLITS in text
    few = 400  # from whose dialogues a vocabulary can be made
    if "model" in changes:
        # Its length has to be said, and is not if it is the default; and its vocabulary is there.
        changes = {"rollout": {**SHORT["rollout"], "context_tokens": 1000}, **changes}
        few = 120
    text = text.replace(_SPLITS, f"splits: {{train: {tasks or few}, dev: 40, held_out: 40}}")
    domain.write_text(text.replace("  - gold_world: true\n", paid))
    (folder / "desk" / "pays.py").write_text(PAYS)
    spec = RunSpec.model_validate({**SHORT, "domain": "desk/domain.yaml", **changes})
    path = folder / "run.yaml"
    path.write_text(dump_spec(spec), encoding="utf-8")
    return path


@cache
def ready_model() -> dict[str, str]:
    """What a run file says to begin with a model that is there already, which saves seconds."""
    folder = Path(tempfile.mkdtemp(prefix="muarl-short-run-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    run = load_run(write_run(folder, cold_start={"episodes": 40}))
    anyio.run(open_model, load_domain_of(run), run, folder / "model")
    return {"path": str(folder / "model")}


def carry_out(run_file: Path, out: Path, *, resume: bool = False) -> list[dict[str, Any]]:
    """Train to the end; the metrics of its iterations."""
    located = load_run(run_file)
    if located.spec.threads:  # 0: as many as there are
        torch.set_num_threads(located.spec.threads)
    moved = located.spec.moved(run_file.parent, out)
    folder = RunFolder.create(out, moved, resume=resume, overwrite=False)

    async def main() -> None:
        await train(located, folder, Silent(), StopSignal())

    anyio.run(main, backend="asyncio")
    return [line for line in folder.lines() if line["kind"] == "iteration"]


class StopAfter:
    """Asks the run to stop when a phase has advanced so far."""

    def __init__(self, stop: StopSignal, phase: str, done: int) -> None:
        self._stop, self._phase, self._done = stop, phase, done
        self._now = ""

    def phase(self, name: str, total: int) -> None:
        del total
        self._now = name

    def advance(self, done: int, **figures: Any) -> None:
        del figures
        if self._now == self._phase and done >= self._done:
            self._stop.request()

    def note(self, text: str) -> None:
        del text


def break_off(run_file: Path, out: Path, phase: str, done: int, *, resume: bool = False) -> None:
    """Train until a phase has advanced so far."""
    located = load_run(run_file)
    moved = located.spec.moved(run_file.parent, out)
    folder = RunFolder.create(out, moved, resume=resume, overwrite=False)

    async def main() -> None:
        stop = StopSignal()
        await train(located, folder, StopAfter(stop, phase, done), stop)

    with pytest.raises(Interrupted):
        anyio.run(main, backend="asyncio")
