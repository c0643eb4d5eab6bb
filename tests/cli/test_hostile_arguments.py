"""Arguments that are too long, too deep, or no path: one line, exit code 2, and soon."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from bad_input import InProcess

from muarl.cli import VERBS
from muarl.cli._problems import in_lines
from muarl.errors import Problem, did_you_mean


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (".".join(["a"] * 2000) + "=1", "nested more than 64 levels deep"),
        (".".join(["grpo"] * 40) + "=" + "[" * 40 + "]" * 40, "nested more than 64 levels deep"),
        ("seed=" + "[" * 3000, "nested more than 64 levels deep"),
        ("seed=" + "{a: " * 700, "nested more than 64 levels deep"),
        ("seed=" + "9" * 4000, "does not fit into 64 bits"),
        ("seed=" + "x" * 4000, ""),
        ("seed=&a [*a]", "names no anchor"),
        ("a" * 4000 + "=1", "unknown field"),
        ("seed=\udcff", ""),
        ("a.b=\x00", "not allowed in YAML"),
        ("=" * 50, "expected KEY=VALUE"),
    ],
)
def test_a_setting_is_bounded(muarl: InProcess, run_file: Path, setting: str, said: str) -> None:
    ended = muarl("train", run_file, "--dry-run", "--set", setting)
    assert ended.code == 2
    text = "\n".join(ended.lines)
    assert said in text
    assert "Traceback" not in text
    assert len(ended.lines) == 1
    assert len(text) < 5000


@pytest.mark.parametrize(
    "verb", [verb for verb in VERBS if verb not in ("init", "schema", "completion")]
)
def test_what_can_name_no_file_is_refused(muarl: InProcess, run_file: Path, verb: str) -> None:
    Path("loop").symlink_to("loop")
    needed = {
        "eval": ["--model", "x"],
        "rollout": ["--expert"],
        "export": ["--out", "x.jsonl"],
        "overlap": ["x.txt"],
        "tasks": ["--out", "x.yaml"],
        "draft": ["--out", "x", "--base-url", "http://127.0.0.1:1/v1", "--model", "m"],
        "review": ["--page", "x.html"],
    }
    for path in ("a" * 300, "loop"):
        words = ["tau1", "--to", "x", "--from", path] if verb == "import" else [path]
        ended = muarl(verb, *words, *needed.get(verb, []))
        assert ended.code in (1, 2)
        assert len(ended.lines) == 1
        assert "Traceback" not in ended.lines[0]


@pytest.mark.parametrize("where", ["a" * 300, "loop", "/dev/null"])
def test_results_cannot_go_where_no_folder_can_be(
    muarl: InProcess, run_file: Path, where: str
) -> None:
    Path("loop").symlink_to("loop")
    ended = muarl("rollout", run_file, "--expert", "--episodes", "2", "--out", where)
    assert ended.code in (1, 2)
    assert len(ended.lines) == 1


def test_an_argument_longer_than_any_path_is_refused(muarl: InProcess) -> None:
    muarl("check", "a" * 5000).refuses(2, "is 5,000 characters long", "at most 4,096")


def test_a_name_of_megabytes_holds_up_no_message() -> None:
    begun = time.process_time()
    in_lines([Problem("a.yaml", 1, 1, f"unknown field '{'a' * 1_000_000}'")])
    assert did_you_mean("a" * 1_000_000, ["a" * 1_000_001]) == ""
    assert time.process_time() - begun < 2


MANY = "99999999999999999999"
PLANNED = {
    "rollout": ["--expert", "--dry-run", "--episodes"],
    "check": ["--limit"],
    "tasks": ["--out", "x.yaml", "--count"],
    "review": ["--page", "x.html", "--dialogues"],
    "overlap": ["x.txt", "--show"],
    "draft": ["--out", "x", "--base-url", "http://127.0.0.1:1/v1", "--model", "m", "--tasks"],
}
"""Verb to an option of it that says how many of something are planned or held."""


@pytest.mark.parametrize("verb", PLANNED)
@pytest.mark.parametrize("number", [MANY, "10000001"])
def test_more_than_any_machine_could_plan_is_refused(
    muarl: InProcess, run_file: Path, verb: str, number: str
) -> None:
    ended = muarl(verb, run_file, *PLANNED[verb], number)
    assert ended.code == 2
    assert f"{PLANNED[verb][-1]}: must be at most 10,000,000, got {number}" in ended.lines[-1]


@pytest.mark.parametrize(
    "key",
    ["eval.episodes", "rollout.group_size", "cold_start.episodes", "grpo.validation.episodes"],
)
def test_more_than_any_machine_could_plan_is_refused_in_a_run_file_too(
    muarl: InProcess, run_file: Path, key: str
) -> None:
    for number in ("10000001", "9223372036854775807"):
        ended = muarl("train", run_file, "--dry-run", "--set", f"{key}={number}")
        said = "\n".join(ended.lines)
        assert ended.code == 2
        assert f"--set {key}={number}" in said
        assert f"must be at most 10,000,000, got {number}" in said
