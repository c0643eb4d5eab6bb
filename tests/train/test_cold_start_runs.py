"""A cold start as a stage of a run: what it logs and says, and where it goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from short_run import SHORT, ready_model, write_run

from muarl.errors import SetupError, TrainError
from muarl.scheduler.rounds import StopSignal
from muarl.spec import load_run
from muarl.train.loop import train
from muarl.train.progress import Silent
from muarl.train.run_folder import RunFolder


class Notes(Silent):
    """Keeps what a run says."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)


def supervised(folder: Path, **keys: Any) -> tuple[list[dict[str, Any]], list[str]]:
    run_file = write_run(
        folder,
        cold_start={"lr": 8e-3, "episodes": 12, "warmup_steps": 2, "schedule": "cosine", **keys},
        grpo=None,
        eval={"episodes": 1, "temperatures": [0.0]},
        model=ready_model(),
    )
    located, notes = load_run(run_file), Notes()
    out = RunFolder.create(folder / "out", located.spec, resume=False, overwrite=False)

    async def main() -> None:
        await train(located, out, notes, StopSignal())

    anyio.run(main)
    return [line for line in out.lines() if line["kind"] == "cold_start"], notes.said


def test_a_run_says_how_it_is_computed_and_measures_what_it_holds_out(tmp_path: Path) -> None:
    lines, said = supervised(
        tmp_path,
        steps=None,
        epochs=2,
        tokens_per_step=None,
        dialogues_per_step=3,
        held_out=0.25,
    )
    # 12 dialogues of 12 tasks, 3 of them apart: twice 9 dialogues, 3 an update
    assert [line["step"] for line in lines] == [6]
    assert 0 < lines[0]["held_out_loss"] < 20
    assert 0 < lines[0]["lr"] < 8e-3
    assert any(text.startswith("attention: sdpa") for text in said)
    assert not any("lowers its loss" in text for text in said)


def test_a_warm_up_longer_than_its_epochs_is_refused(tmp_path: Path) -> None:
    sizes = {"steps": None, "epochs": 2, "tokens_per_step": None, "dialogues_per_step": 3}
    with pytest.raises(TrainError, match=r"rise until 9, and 2 epochs .* are 8 updates"):
        supervised(tmp_path, warmup_steps=9, **sizes)


def test_many_epochs_are_warned_of(tmp_path: Path) -> None:
    lines, said = supervised(tmp_path, steps=20)
    assert [line["step"] for line in lines] == [10, 20]
    assert "held_out_loss" not in lines[-1]
    assert any("can lower what reinforcement learning reaches" in text for text in said)


@pytest.mark.parametrize("whose", ["policy", "user"])
def test_a_sampler_without_memory_is_refused_before_anything_is_trained(
    tmp_path: Path, whose: str
) -> None:
    more: dict[str, Any] = {}
    rollout = {**SHORT["rollout"], "context_tokens": 1000}
    if whose == "policy":
        rollout["concurrency"] = 10**9
    else:
        rollout["concurrency"] = 10**5
        more["user_model"] = {"model": ready_model(), "context_tokens": 10**9}
        more["user"] = {"model": {}}
    run_file = write_run(
        tmp_path,
        cold_start={"steps": 20, "episodes": 12, "lr": 8e-3},
        rollout=rollout,
        model=ready_model(),
        **more,
    )
    located = load_run(run_file)
    out = RunFolder.create(tmp_path / "out", located.spec, resume=False, overwrite=False)

    async def main() -> None:
        await train(located, out, Silent(), StopSignal())

    with pytest.raises(SetupError, match=r"rollout\.concurrency"):
        anyio.run(main)
    assert list(out.lines()) == []
    assert not out.checkpoint.exists()
    assert not out.user_checkpoint.exists()
