"""What cannot go well is said before anything is trained, where it was said, by `--dry-run` too."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch
from spec_files import spoil, write_all

from muarl.cli import main

VALIDATION = "grpo: {iterations: 3, validation: {split: SPLIT}}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_all(tmp_path)
    tasks = (tmp_path / "tasks.yaml").read_text()
    head, _, task = tasks.partition("  - id: cancel-1")
    more = "".join(
        f"  - id: cancel-{split}{task}    split: {split}\n"
        for split in ("train", "dev", "held_out")
    )
    (tmp_path / "tasks.yaml").write_text(head + more)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    capsys.readouterr()
    code = main(["train", "run.yaml", *words])
    return code, capsys.readouterr().err.strip()


ON_TASKS = (
    "on split {} too, and weights that are chosen on tasks look better on them than they are; "
    "choose on another split"
)
OF_ONE = (
    "the baseline of a group of one (std) is its own reward, so nothing is learned; take 2 or more, "
    "or grpo.baseline: none"
)
GREEDY = (
    "at temperature 0 the policy says the likeliest and draws nothing, so nothing varies in a group "
    "but what others do, and there is nothing to learn from; let it be above 0"
)
RISING = "the rate would rise until {}, and after {} the run is over, far from its peak; take fewer"
REFUSED = [
    (
        "grpo.validation.split=train",
        "grpo is " + ON_TASKS.format("'train'"),
    ),
    (
        "grpo.validation.split=held_out",
        "eval is " + ON_TASKS.format("'held_out'"),
    ),
    ("grpo.validation.split=dew", "unknown split 'dew'; did you mean 'dev'?"),
    (
        "rollout.group_size=1",
        OF_ONE,
    ),
    ("rollout.temperature=0", GREEDY),
    ("grpo.lr_warmup_iterations=4", RISING.format(4, "3 iterations")),
    ("cold_start={steps: 20, warmup_steps: 21}", RISING.format(21, "20 updates")),
    ("cold_start.held_out=1", "'held_out' must be less than 1, got 1"),
    ("grpo.group_size=4", "unknown field 'group_size'; did you mean 'rollout.group_size'?"),
    ("iterations=4", "unknown field 'iterations'; did you mean 'grpo.iterations'?"),
    (
        "rollout.warmup_steps=4",
        "unknown field 'warmup_steps'; did you mean 'cold_start.warmup_steps'?",
    ),
]


@pytest.mark.parametrize(("setting", "message"), REFUSED)
@pytest.mark.parametrize("dry", [["--dry-run"], []], ids=["dry", "run"])
def test_it_is_said_where_it_was_said_and_nothing_begins(
    setting: str, message: str, dry: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, err = said(capsys, "--set", setting, *dry)
    lines = [line for line in err.splitlines() if not line.startswith("[")]
    assert (code, lines) == (2, [f"--set {setting}: {message}"])
    assert not (folder / "runs").exists()


def test_a_split_in_the_run_file_has_its_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(folder / "run.yaml", "grpo: {iterations: 3}", VALIDATION.replace("SPLIT", "train"))
    code, err = said(capsys, "--dry-run")
    assert code == 2
    assert err.startswith("run.yaml:4:43: grpo is on split 'train' too")


def test_tasks_that_are_trained_on_are_refused_where_the_split_was_chosen_L10(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, err = said(capsys)
    assert code == 2
    assert "run.yaml:1:1: split 'held_out' shares 1 tasks with what is trained on (train)" in err
    code, err = said(capsys, "--set", "eval.split=dev")
    assert "--set eval.split=dev: split 'dev' shares 1 tasks with what is trained on" in err
    code, err = said(capsys, "--set", "grpo.validation.split=dev", "--set", "eval.split=held_out")
    assert "shares 1 tasks with what is trained on" in err
    assert not (folder / "runs").exists()


@pytest.mark.parametrize(
    ("setting", "package", "extra"),
    [
        ("kernel.optimizer_bits=8", "bitsandbytes", "bits8"),
        ("model.lora={rank: 4}", "peft", "lora"),
        ("sinks=[trackio]", "trackio", "trackio"),
    ],
)
def test_a_package_that_is_not_there_is_missed_before_the_domain_is_read(
    setting: str,
    package: str,
    extra: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == package else there(name)
    )
    missing = f"needs {package}, which is not installed: pip install 'muarl[{extra}]'"
    code, err = said(capsys, "--set", setting)
    assert code == 2
    assert err.splitlines()[-1] == f"--set {setting}: {missing}"
    code, err = said(capsys, "--set", setting, "--dry-run")
    assert code == 0
    assert missing in err
    assert not (folder / "runs").exists()


def test_a_group_of_one_goes_without_a_baseline(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = ("--set", "rollout.group_size=1", "--set", "grpo.baseline=none")
    assert said(capsys, *alone, "--dry-run")[0] == 0


def test_dialogues_alone_may_be_greedy_whatever_training_would_learn(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    greedy = ("--set", "rollout.temperature=0", "--set", "rollout.group_size=1")
    assert main(["rollout", "run.yaml", "--expert", *greedy, "--dry-run"]) == 0
    assert "temperature: 0" in capsys.readouterr().out


def test_a_gpu_that_is_not_there_is_missed_before_a_folder_is_made(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    code, err = said(capsys, "--set", "model.device=cuda")
    assert code == 1
    assert "model.device: cuda: torch sees no GPU on this machine" in err
    assert not (folder / "runs").exists()


def test_files_may_stand_after_options(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "small.yaml").write_text("version: 1\nrollout: {max_turns: 3}\n")
    assert (
        main(["train", "run.yaml", "--set", "rollout.max_tokens=9", "small.yaml", "--dry-run"]) == 0
    )
    out = capsys.readouterr().out
    assert "max_turns: 3\n" in out
    assert "max_tokens: 9\n" in out


def test_going_on_and_beginning_anew_do_not_go_together(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, err = said(capsys, "--resume", "--overwrite")
    assert code == 2
    assert err.endswith("--resume goes on with what --overwrite removes; give one of them")
