"""What a message advises works when it is followed."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from bad_input import InProcess
from spec_files import spoil

CANCEL = 'world["orders"][order_id]["status"] = "cancelled"'
INTERRUPT = (
    "import os, pathlib, signal\n"
    "        if pathlib.Path('mark').exists():\n"
    "            pathlib.Path('mark').unlink()\n"
    "            os.kill(os.getpid(), signal.SIGINT)\n"
    f"        {CANCEL}"
)


@pytest.fixture
def interrupted_once(run_file: Path) -> Path:
    """A run that is interrupted as its first order is cancelled, and goes on when begun again.

    It has so many dialogues left then that it cannot be done before it hears that.
    """
    spoil(run_file, "episodes: 70", "episodes: 300")
    spoil(run_file, "concurrency: 64", "concurrency: 1")
    spoil(run_file.parent / "tools.py", CANCEL, INTERRUPT)
    Path("mark").touch()
    return run_file


def test_resume_is_advised_where_it_works_alone(
    muarl: InProcess, run_file: Path, out: Path
) -> None:
    assert muarl("rollout", run_file, "--expert", "--episodes", 2, "--out", out).code == 0
    muarl("rollout", run_file, "--expert", "--episodes", 2, "--out", out).refuses(1, "Use --resume")
    again = muarl("rollout", run_file, "--expert", "--episodes", 2, "--out", out, "--resume")
    assert again.code == 0
    other = muarl("rollout", run_file, "--expert", "--episodes", 3, "--out", out)
    other.refuses(1, "already holds another run. Use --overwrite to replace it, or --out")
    (muarl("rollout", run_file, "--expert", "--episodes", 3, "--out", out, "--resume")).refuses(
        1, "cannot resume", lines=2
    )


def test_a_run_that_overwrote_is_not_told_to_overwrite_and_resume(
    muarl: InProcess, interrupted_once: Path, out: Path
) -> None:
    roll = ["rollout", interrupted_once, "--expert", "--out", out]
    ending = muarl(*roll, "--overwrite")
    assert ending.code == 130
    (advice,) = [line for line in ending.lines if line.startswith("stopped; ")]
    assert advice == (
        f"stopped; the same command with --resume instead of --overwrite goes on in {out}"
    )
    assert muarl(*roll, "--resume").code == 0


def test_a_training_that_was_stopped_goes_on_with_the_command_it_prints(
    muarl: InProcess, interrupted_once: Path, tmp_path: Path
) -> None:
    spaced = tmp_path / "a run"
    typed = [interrupted_once, "--set", "eval.episodes=6", "--seed", "7", "--out", spaced]
    spoil(interrupted_once, "grpo: {", "cold_start: {episodes: 4, steps: 1}\ngrpo: {")
    ending = muarl("train", *typed, "--overwrite")
    assert ending.code == 130, ending.lines
    (advice,) = [line for line in ending.lines if line.startswith("stopped; ")]
    command = shlex.split(advice.removeprefix("stopped; go on with: muarl "))
    again = muarl(*command, "--json")
    assert again.code == 0, again.lines
    said = json.loads(again.out)  # and it says with --json what eval would say
    assert (said["run"], said["iterations"]) == (str(spaced), 1)
    assert "do_nothing" in {floor["name"] for floor in said["floors"]}
    of = [(each["phase"], each["temperature"]) for each in said["evaluations"]]
    assert of == [("cold", 1.0), ("final", 1.0)]
    assert all(each["n"] == 6 and "value" in each["success"] for each in said["evaluations"])


@pytest.mark.parametrize(
    ("command", "made", "says"),
    [
        ("init taken", "file", "taken is there already; choose another name"),
        ("play shop --run taken", "folder", "no run in taken: name the folder of one"),
        (
            "report RUN --out taken",
            "folder",
            "taken is not a file, so it is not replaced; name another",
        ),
        (
            "export RUN --out taken",
            "folder",
            "taken is not a file, so it is not replaced; name another",
        ),
    ],
)
def test_what_would_be_refused_next_is_not_advised(
    muarl: InProcess, run_file: Path, command: str, made: str, says: str
) -> None:
    if "RUN" in command:
        assert muarl("rollout", run_file, "--expert", "--episodes", 2, "--out", "RUN").code == 0
    Path("taken").mkdir() if made == "folder" else Path("taken").touch()
    code = 2 if command.startswith("init") or "--run" in command else 1
    muarl(*command.split()).refuses(code, says)
