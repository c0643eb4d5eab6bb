"""Law L9: SIGKILL at random points, and the run still comes to what it would have come to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from short_run import SHORT, ready_model, write_run

from muarl.record import read_journal
from muarl.train.run_folder import RunFolder

pytestmark = pytest.mark.slow

ITERATIONS, TASKS, SIZE = 4, 3, 4


def killed(folder: Path, mode: Any, *, kills: int, every: int) -> dict[str, Any]:
    grpo = {**SHORT["grpo"], "iterations": ITERATIONS, "tasks_per_iteration": TASKS, "mode": mode}
    run_file = write_run(
        folder,
        grpo={**grpo, "validation": {"every": 2, "episodes": 4}},
        model=ready_model(),
        checkpoint={"every": every, "keep": 1},
        eval={"episodes": 4, "temperatures": [1.0]},
    )
    script = Path(__file__).with_name("killed_runs.py")
    command = [sys.executable, str(script), str(run_file), str(folder), str(kills), "7"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert found["kills"] == kills
    for name in found["weights"]:
        rounds = [line for line in RunFolder(folder / name).lines() if line["kind"] == "iteration"]
        assert [line["iteration"] for line in rounds] == list(range(ITERATIONS))
        keys = Counter(e.key for e in read_journal(folder / name / "episodes.journal"))
        assert set(keys.values()) == {1}, "no dialogue is had twice"
        assert sum(key.trains for key in keys) == ITERATIONS * TASKS * SIZE
        records = RunFolder(folder / name).batches.read()
        learned = Counter(group[:2] for record in records for group in record.groups)
        assert len(learned) == ITERATIONS * TASKS
        assert set(learned.values()) == {1}, "no group is learned from twice"
    return found


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("mode", "every"), [("on_policy", 1), ("one_step_off", 2)])
def test_L9_killed_at_ten_random_points_it_ends_with_the_same_weights_to_the_bit(
    mode: str, every: int, tmp_path: Path
) -> None:
    found = killed(tmp_path, mode, kills=10, every=every)
    whole = found["weights"].pop("whole")
    assert found["weights"]
    assert all(weights == whole for weights in found["weights"].values()), found


@pytest.mark.timeout(900)
def test_L9_killed_at_random_points_an_asynchronous_run_learns_from_all_it_planned(
    tmp_path: Path,
) -> None:
    killed(tmp_path, {"asynchronous": {"max_lag": 1}}, kills=4, every=2)
