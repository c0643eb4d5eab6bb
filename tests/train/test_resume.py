"""Law L9: a run that was broken off goes on to the same end, and trains each task as planned."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from short_run import break_off, carry_out, ready_model, write_run
from transformers import PreTrainedModel

from muarl.errors import NoRunError, RecordError, SetupError
from muarl.kernel.model import load_model, save_model, weights_checksum
from muarl.record import read_journal
from muarl.spec import load_run
from muarl.train.run_folder import RunFolder
from muarl.train.stage import stage_of

COLD = {"lr": 8e-3, "episodes": 24, "steps": 6, "tokens_per_step": 256}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """A run file, beside it `whole`, a run that nothing broke off, and that one's iterations."""
    folder = tmp_path_factory.mktemp("runs")
    run_file = write_run(folder, cold_start=COLD)
    return run_file, carry_out(run_file, folder / "whole")


@pytest.mark.parametrize(
    ("phase", "done"),
    [
        ("floor", 2),
        ("expert dialogues", 8),
        ("cold start", 6),
        ("GRPO", 1),
        ("evaluate cold, T=1", 4),
    ],
)
def test_L9_a_run_broken_off_anywhere_goes_on_to_the_same_end(
    phase: str, done: int, tmp_path: Path, whole: tuple[Path, list[dict[str, Any]]]
) -> None:
    run_file, unbroken = whole
    break_off(run_file, tmp_path / "broken", phase, done)
    resumed = carry_out(run_file, tmp_path / "broken", resume=True)

    assert [line["iteration"] for line in resumed] == [0, 1, 2]
    ends = (tmp_path / "broken/model", run_file.parent / "whole/model")
    assert len({weights_checksum(load_model(end)) for end in ends}) == 1, "to the bit"
    keys = Counter(e.key for e in read_journal(tmp_path / "broken/episodes.journal"))
    assert set(keys.values()) == {1}
    assert set(keys) == {e.key for e in read_journal(run_file.parent / "whole/episodes.journal")}
    assert [line["reward_mean"] for line in resumed] == [line["reward_mean"] for line in unbroken]


def test_L9_a_cold_start_that_is_asked_to_stop_saves_the_step_it_stops_at(tmp_path: Path) -> None:
    run_file = write_run(tmp_path, cold_start={**COLD, "steps": 30}, model=ready_model())
    break_off(run_file, tmp_path / "out", "cold start", 10)
    lines = RunFolder(tmp_path / "out").lines()
    last = [line["step"] for line in lines if line["kind"] == "cold_start"][-1]
    assert 10 <= last < 30
    assert stage_of(tmp_path / "out" / "checkpoint") == ("cold_start", last)


def test_ctrl_c_drains_saves_and_exits_with_130(tmp_path: Path) -> None:
    grpo = {"iterations": 500, "tasks_per_iteration": 4, "lr": 3e-3}
    run_file = write_run(tmp_path, grpo=grpo, model=ready_model())
    out = tmp_path / "out"
    command = [sys.executable, "-m", "muarl.cli", "train", str(run_file), "--out", str(out)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "GRPO" in line:
                break
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode == 130
    assert "--resume" in rest
    assert "Traceback" not in rest
    saved = sorted((out / "checkpoint").glob("*/state.json"))
    if saved:  # a drain within the first iteration leaves its episodes and no checkpoint yet
        assert json.loads(saved[-1].read_text())["counters"]["stage"] == "grpo"
    assert list(read_journal(out / "episodes.journal"))


def test_a_folder_that_holds_a_run_is_neither_overwritten_nor_resumed_under_another_spec(
    tmp_path: Path,
) -> None:
    spec = load_run(write_run(tmp_path)).spec
    out = tmp_path / "out"
    RunFolder.create(out, spec, resume=False, overwrite=False)
    with pytest.raises(SetupError, match="--overwrite"):
        RunFolder.create(out, spec, resume=False, overwrite=False)
    other = spec.model_copy(update={"seed": 6})
    with pytest.raises(SetupError, match=r"seed: 5 -> 6"):
        RunFolder.create(out, other, resume=True, overwrite=False)
    with pytest.raises(NoRunError, match="no run to resume"):
        RunFolder.create(tmp_path / "nothing", spec, resume=True, overwrite=False)


def test_killed_at_any_moment_a_run_goes_on(tmp_path: Path) -> None:
    run_file = write_run(tmp_path, cold_start=COLD, model=ready_model())
    out = tmp_path / "out"
    command = [sys.executable, "-m", "muarl.cli", "train", str(run_file), "--out", str(out)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "GRPO: 1/3" in line or "GRPO: 3" in line:
                process.kill()
                break
    resumed = carry_out(run_file, out, resume=True)
    assert [line["iteration"] for line in resumed] == [0, 1, 2]
    keys = Counter(e.key for e in read_journal(out / "episodes.journal"))
    assert set(keys.values()) == {1}


def tear(folder: Path) -> None:
    """What a process leaves that is killed while it writes a model's folder in place."""
    weights = folder / "model.safetensors"
    os.truncate(weights, weights.stat().st_size // 2)
    (folder / "config.json").unlink()


@pytest.mark.parametrize("gone", [True, False])
def test_L9_a_cold_model_that_is_torn_or_gone_is_made_anew_from_the_checkpoint(
    gone: bool, tmp_path: Path
) -> None:
    grpo = {"iterations": 1, "tasks_per_iteration": 4, "lr": 3e-3}
    run_file = write_run(tmp_path, cold_start=COLD, grpo=grpo, model=ready_model())
    out = tmp_path / "out"
    break_off(run_file, out, "evaluate cold, T=1", 4)
    before = weights_checksum(load_model(out / "cold_start"))
    assert (out / "cold_start" / "tokenizer.json").is_file(), "anything can sample from it"
    if gone:
        shutil.rmtree(out / "cold_start")
    else:
        tear(out / "cold_start")
    carry_out(run_file, out, resume=True)
    assert weights_checksum(load_model(out / "cold_start")) == before

    # Once GRPO has moved the weights, nobody pretends to know what they were.
    shutil.rmtree(out / "cold_start")
    with pytest.raises(RecordError, match="cold_start is gone: GRPO has begun"):
        carry_out(run_file, out, resume=True)


def test_L9_a_model_whose_saving_was_broken_off_is_saved_when_the_run_is_taken_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    run_file = write_run(tmp_path, cold_start=COLD, grpo=None, model=ready_model())
    out = tmp_path / "out"
    for name in ("model", "cold_start"):

        def torn(model: PreTrainedModel, draft: Path, name: str = name) -> None:
            if draft.name != f".{name}.writing":
                save_model(model, draft)
                return
            (draft / "config.json").write_text('{"mod')
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr("muarl.train.models.save_model", torn)
            with pytest.raises(Killed):
                carry_out(run_file, out, resume=name == "cold_start")
        assert not (out / name).exists()
    carry_out(run_file, out, resume=True)
    cold = weights_checksum(load_model(out / "cold_start"))
    assert weights_checksum(load_model(out / "model")) == cold
    assert load_checkpoint_weights(out) == cold


def load_checkpoint_weights(out: Path) -> str:
    newest = max((out / "checkpoint").glob("*/config.json"))
    return weights_checksum(load_model(newest.parent))


@pytest.mark.parametrize("counters", [{}, {"stage": "grpo"}, {"stage": "sft", "step": 1}])
def test_a_checkpoint_that_does_not_say_how_far_it_is_is_refused_L9(
    counters: dict[str, object], tmp_path: Path
) -> None:
    grpo = {"iterations": 1, "tasks_per_iteration": 4, "lr": 3e-3}
    run_file = write_run(tmp_path, cold_start=COLD, grpo=grpo, model=ready_model())
    out = tmp_path / "out"
    break_off(run_file, out, "cold start", 6)
    state = out / "checkpoint" / "000001" / "state.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "counters": counters}))
    with pytest.raises(RecordError, match="checkpoint` is damaged: it does not say how far"):
        carry_out(run_file, out, resume=True)


def test_a_run_whose_checkpoints_are_gone_does_not_begin_again_from_what_it_learned_L9(
    whole: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    run_file, _ = whole
    shutil.copytree(run_file.parent / "whole", tmp_path / "run")
    cold = weights_checksum(load_model(tmp_path / "run" / "cold_start"))
    shutil.rmtree(RunFolder(tmp_path / "run").checkpoint)
    with pytest.raises(RecordError, match=r"3 iterations.*holds nothing to go on from"):
        carry_out(run_file, tmp_path / "run", resume=True)
    assert weights_checksum(load_model(tmp_path / "run" / "cold_start")) == cold


def test_a_run_does_not_go_on_from_other_weights_than_grpo_began_with_L9(
    whole: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    run_file, _ = whole
    shutil.copytree(run_file.parent / "whole", tmp_path / "run")
    damaged = tmp_path / "run" / "cold_start" / "model.safetensors"
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    with pytest.raises(RecordError, match=r"cold_start does not hold the weights that GRPO began"):
        carry_out(run_file, tmp_path / "run", resume=True)


def test_a_run_does_not_go_on_from_a_checkpoint_of_another_run_L9(
    whole: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    run_file, _ = whole
    other = write_run(tmp_path, cold_start=COLD, seed=9)
    break_off(other, tmp_path / "other", "GRPO", 1)
    shutil.copytree(run_file.parent / "whole", tmp_path / "run")
    # From the same weights, so that nothing else tells them apart.
    shutil.rmtree(tmp_path / "run" / "checkpoint")
    shutil.copytree(tmp_path / "other" / "checkpoint", tmp_path / "run" / "checkpoint")
    shutil.rmtree(tmp_path / "run" / "cold_start")
    shutil.copytree(tmp_path / "other" / "cold_start", tmp_path / "run" / "cold_start")
    with pytest.raises(RecordError, match=r"learned from other groups than .*batches\.jsonl says"):
        carry_out(run_file, tmp_path / "run", resume=True)


def test_a_run_does_not_go_on_behind_the_episodes_of_another_run_L9(
    whole: tuple[Path, list[dict[str, Any]]], tmp_path: Path
) -> None:
    run_file, _ = whole
    break_off(write_run(tmp_path, cold_start=COLD, seed=9), tmp_path / "other", "cold start", 1)
    shutil.copytree(run_file.parent / "whole", tmp_path / "run")
    journal = tmp_path / "run" / "episodes.journal"
    shutil.copyfile(tmp_path / "other" / "episodes.journal", journal)
    before = journal.read_bytes()
    with pytest.raises(
        RecordError, match=r"episodes\.journal holds an episode of seed 9.*with seed"
    ):
        carry_out(run_file, tmp_path / "run", resume=True)
    assert journal.read_bytes() == before


def test_a_run_is_not_taken_up_in_a_domain_that_changed_since_L10(tmp_path: Path) -> None:
    run_file = write_run(tmp_path, model=ready_model())
    break_off(run_file, tmp_path / "out", "floor", 2)
    domain = tmp_path / "desk" / "domain.yaml"
    domain.write_text(domain.read_text().replace("rules: |-\n", "rules: |-\n  Be brief.\n", 1))
    with pytest.raises(SetupError, match=r"cannot resume.*played under other `rules`"):
        carry_out(run_file, tmp_path / "out", resume=True)


def test_L9_a_resumed_curriculum_draws_the_tasks_that_it_would_have_drawn(tmp_path: Path) -> None:
    grpo = {"iterations": 2, "tasks_per_iteration": 2, "lr": 3e-3}
    grpo["curriculum"] = {"half": {"by": "kind"}}
    evaluated = {"episodes": 1, "temperatures": [1.0]}
    run_file = write_run(tmp_path, grpo=grpo, eval=evaluated, model=ready_model())
    _, unbroken = carry_out(run_file, tmp_path / "whole")
    assert unbroken["curriculum"]["longest_wait_allowed"] == 120
    break_off(run_file, tmp_path / "broken", "GRPO", 1)
    carry_out(run_file, tmp_path / "broken", resume=True)
    played = [
        {e.key for e in read_journal(tmp_path / name / "episodes.journal") if e.key.trains}
        for name in ("whole", "broken")
    ]
    assert played[0] == played[1]
    assert len({key.task_id for key in played[0]}) == 4
