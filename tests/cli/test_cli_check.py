"""`muarl check`: what it prints, and how it exits."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from bad_input import write_shop
from spec_files import spoil, write_all

from muarl.cli import main


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_all(tmp_path)
    return tmp_path


def complaints(err: str) -> list[str]:
    """Lines on stderr that are not progress."""
    return [line for line in err.splitlines() if not line.startswith("[")]


def test_progress_is_told_from_the_first_moment_on_where_stderr_is_no_terminal(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(folder)]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition("] ")[2] for line in lines[:3]] == [
        "checking what is installed",
        "checking tasks",
        "checking tool server",
    ]


def test_a_sound_domain_exits_with_0(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spoil(folder / "domain.yaml", "reward:", "expert: expert.py:Expert\nreward:")
    assert main(["check", str(folder)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[:3] == [
        "shop: 1 tasks (train 1)",
        "  tools: look, cancel",
        "  doing nothing earns 0.000 on train (1)",
    ]
    assert "  refuse_all earns 0.000 on train (1)" in out
    assert out[-2:] == ["  the expert earns 1.000 on train (1)", "sound"]


def test_a_gold_call_that_does_not_earn_1_exits_with_1_and_names_its_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(folder / "tasks.yaml", "{order_id: W1}\n", "{order_id: W9}\n")
    assert main(["check", str(folder)]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[-2:] == [
        (
            f"{folder / 'tasks.yaml'}:12:9: task 'cancel-1': gold call 'cancel' was answered with an "
            "error: no order W9"
        ),
        "1 finding",
    ]


def test_a_server_that_fails_exits_with_1(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spoil(folder / "tools.py", 'server = MCPServer("shop")', "raise RuntimeError('no licence')")
    assert main(["check", str(folder)]) == 1
    captured = capsys.readouterr()
    assert "could not be built: RuntimeError: no licence" in captured.out
    assert complaints(captured.err) == []


def test_problems_of_specs_go_to_stderr_and_exit_with_2(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(folder / "tasks.yaml", "[plain, terse]", "[plain, ters]")
    for offline in ([], ["--offline"]):
        assert main(["check", str(folder), *offline]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert complaints(captured.err) == [
            f"{folder / 'tasks.yaml'}:6:23: unknown persona 'ters'; did you mean 'terse'?"
        ]


def test_json_holds_what_was_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(folder), "--json"]) == 0
    sound = json.loads(capsys.readouterr().out)
    assert sound["sound"] is True
    assert sound["tasks"] == {"train": 1}
    assert sound["floor"]["refuse_all"]["train"]["value"] == 0
    spoil(folder / "domain.yaml", "writes: [cancel]", "writes: [cancle]")
    assert main(["check", str(folder), "--json"]) == 1
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding == {
        "check": "names",
        "task": None,
        "path": str(folder / "domain.yaml"),
        "line": 7,
        "column": 10,
        "message": "unknown tool 'cancle'; did you mean 'cancel'?",
    }
    spoil(folder / "domain.yaml", "rules:", "rulez:")
    assert main(["check", str(folder), "--json"]) == 2
    broken = json.loads(capsys.readouterr().out)
    assert [(f["check"], f["line"], f["message"]) for f in broken["findings"]] == [
        ("spec", 1, "missing field 'rules'"),
        ("spec", 4, "unknown field 'rulez'; did you mean 'rules'?"),
    ]


def test_offline_neither_imports_the_domain_nor_starts_anything(folder: Path) -> None:
    (folder / "tools.py").write_text("serve = None\nraise SystemExit('imported')")
    code = (
        "import sys; from muarl.cli import main\n"
        f"code = main(['check', {str(folder)!r}, '--offline'])\n"
        "heavy = {'mcp', 'torch', 'transformers', 'vllm', 'anyio'} & set(sys.modules)\n"
        "sys.exit(repr(heavy) if heavy else code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "shop: specs are valid (2 files, 1 tasks in them)\n"


def test_a_domain_that_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["check", str(tmp_path / "shop")]) == 2
    assert capsys.readouterr().err == f"{tmp_path / 'shop'}: no such file\n"


def test_a_limit_must_be_a_positive_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "x", "--limit", "0"]) == 2
    assert "argument --limit: must be at least 1, got 0" in capsys.readouterr().err


def many_tasks(folder: Path, count: int, old: str, new: str) -> None:
    """The shop's task so many times, each spoilt alike."""
    head, task = (folder / "tasks.yaml").read_text().partition("tasks:\n")[::2]
    task = task.replace(old, new)
    tasks = "".join(task.replace("cancel-1", f"cancel-{i}") for i in range(count))
    (folder / "tasks.yaml").write_text(f"{head}tasks:\n{tasks}")


def test_findings_alike_are_shown_a_few_times_and_counted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many_tasks(folder, 23, "tool: cancel", "tool: nope")
    spoil(
        folder / "domain.yaml", '"cancel {order_id}"', '"cancel {order_idd}", "cancel {order_id}"'
    )
    assert main(["check", str(folder)]) == 1
    out = capsys.readouterr().out.splitlines()
    assert sum("unknown tool 'nope'" in line for line in out) == 3
    assert "  and 20 more like these; --json prints all" in out
    assert any(f"{folder / 'domain.yaml'}:29:20: unknown fact 'order_idd'" in line for line in out)
    assert main(["check", str(folder), "--json"]) == 1
    found = [finding["message"] for finding in json.loads(capsys.readouterr().out)["findings"]]
    assert sum("unknown tool 'nope'" in message for message in found) == 23
    assert out[-1] == f"{len(found)} findings"


def test_problems_alike_of_a_spec_are_counted_too(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many_tasks(folder, 9, "[plain, terse]", "[plain, ters]")
    for arguments in (["check", str(folder)], ["check", str(folder), "--offline"]):
        assert main(arguments) == 2
        err = complaints(capsys.readouterr().err)
        assert [f"{folder / 'tasks.yaml'}:" in line for line in err] == [True] * 3 + [False]
        assert err[-1] == "  and 6 more like these (`muarl check --json` prints all)"


def test_a_typo_in_words_is_found_offline_where_files_hold_the_tasks(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(folder / "domain.yaml", '["It is {order_id}."]', '["It is {order_idd}.", "It is that."]')
    assert main(["check", str(folder), "--offline"]) == 2
    word, fact = capsys.readouterr().err.splitlines()
    assert word.startswith(
        f"{folder / 'domain.yaml'}:30:23: unknown fact 'order_idd'; did you mean"
    )
    assert fact.startswith(
        f"{folder / 'tasks.yaml'}:10:19: task 'cancel-1': persona 'terse' can never tell the fact"
    )


@pytest.fixture
def run_file(folder: Path) -> Path:
    return write_shop(folder)


def test_a_run_file_is_checked_with_its_domain(
    run_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(run_file)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "sound"
    assert main(["check", str(run_file), "--offline"]) == 0
    assert capsys.readouterr().out == "shop: specs are valid (4 files, 2 tasks in them)\n"
    spoil(run_file.parent / "tasks.yaml", "{order_id: W1}\n", "{order_id: W9}\n")
    assert main(["check", str(run_file)]) == 1
    assert "no order W9" in capsys.readouterr().out


@pytest.mark.parametrize("offline", [[], ["--offline"]])
@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("model:", "mdoel:", ":4:1: unknown field 'mdoel'; did you mean 'model'?"),
        ("domain: domain", "domain: domian", ":2:9: no such file: 'domian.yaml'; did you mean"),
        ("eval: {", "eval: {split: heldout, ", ":8:15: unknown split 'heldout'; did you mean"),
    ],
)
def test_what_is_wrong_with_a_run_file_is_found(
    old: str,
    new: str,
    says: str,
    offline: list[str],
    run_file: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    spoil(run_file, old, new)
    assert main(["check", str(run_file), *offline]) == 2
    assert f"{run_file}{says}" in capsys.readouterr().err


def test_a_domain_that_is_sound_but_not_for_the_run(
    run_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(run_file, "tasks_per_iteration: 1", "tasks_per_iteration: 9")
    assert main(["check", str(run_file), "--json"]) == 2
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert (
        finding["message"]
        == "grpo.tasks_per_iteration is 9, and split 'train' has 1 task; write at most 1"
    )


def test_a_file_of_another_kind_is_said_to_be_one(
    run_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = run_file.parent / "tasks.yaml"
    assert main(["check", str(tasks)]) == 2
    says = f"{tasks}:1:1: this is a tasks file (it has domain, tasks); expected a domain file\n"
    assert capsys.readouterr().err == says
    reward = run_file.parent / "reward.yaml"
    reward.write_text("version: 1\nreward: [{gold_world: true}]\n")
    assert main(["check", str(reward)]) == 2
    says = f"{reward}:1:1: this is a reward file (it has reward); expected a domain file\n"
    assert capsys.readouterr().err == says
    domain = run_file.parent / "domain.yaml"
    assert main(["train", str(domain)]) == 2
    assert capsys.readouterr().err == (
        f"{domain}:1:1: this is a domain file (it has id, summary, rules, tools); expected a run "
        "file\n"
    )


def test_what_the_authors_code_prints_is_no_part_of_the_answer(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tools = folder / "tools.py"
    tools.write_text("print('imported')\n" + tools.read_text())
    assert main(["check", str(folder), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["sound"]
    assert "imported" in captured.err


def test_mutated_gold_runs_and_what_passes_without_skill_are_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(folder), "--fuzz", "5"]) == 0
    assert "  5 gold runs with a mistake: " in capsys.readouterr().out
    spoil(folder / "domain.yaml", "- gold_world: true", "- never_called: {tool: look}")
    spoil(folder / "domain.yaml", "reward:", "floor: 1.0\nreward:")
    spoil(
        folder / "tasks.yaml",
        "gold:\n      - tool: cancel\n        arguments: {order_id: W1}",
        "gold: []",
    )
    assert main(["check", str(folder), "--fuzz", "5", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["passed"]["refuse_all"] == ["cancel-1"]
    assert found["fuzz"] == {"runs": 0, "counted": 0, "passed": 0}
    assert [finding["check"] for finding in found["findings"]] == ["coverage"]


def test_a_call_that_never_ends_ends_the_check_with_a_finding(folder: Path) -> None:
    spoil(folder / "tools.py", "async def look(order_id: str) -> str:\n", NEVER)
    spoil(folder / "domain.yaml", "tools.py:serve\n", "tools.py:serve\n  call_timeout_s: 1\n")
    command = [sys.executable, "-m", "muarl.cli", "check", str(folder), "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 1
    (finding,) = json.loads(ended.stdout)["findings"]
    assert (finding["check"], finding["task"]) == ("server", "cancel-1")
    assert 'call look {"order_id": "W1"}: the call does not end' in finding["message"]


NEVER = """def look(order_id: str) -> str:
        import threading
        threading.Event().wait()
"""


@pytest.mark.parametrize(
    ("file", "old", "new", "place"),
    [
        ("tools.py", 'return "ok"', "import os; os._exit(0)", "tools.py:17, in cancel)"),
        ("expert.py", "last = history[-1]", "import os; os._exit(0)", "expert.py:10, in act)"),
    ],
)
def test_a_domain_that_ends_the_process_with_0_is_not_taken_for_sound(
    folder: Path, file: str, old: str, new: str, place: str
) -> None:
    spoil(folder / "domain.yaml", "reward:", "expert: expert.py:Expert\nreward:")
    spoil(folder / file, old, new)
    ended = subprocess.run(
        [sys.executable, "-m", "muarl.cli", "check", str(folder), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    (complaint,) = complaints(ended.stderr)
    assert complaint.startswith("muarl: os._exit(0) was called (")
    assert complaint.endswith(f"{place}: it ended muarl without a result")
    assert ended.stdout == ""


def test_thousands_of_problems_are_counted_and_not_all_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (folder / "domain.yaml").open("a") as file:
        file.writelines(f"unknown_{number}: 1\n" for number in range(1500))
    assert main(["check", "--offline", "--json", str(folder)]) == 2
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert len(findings) == 101
    last = "here and elsewhere are 1,400 more problems; mend the others first"
    assert findings[-1]["message"] == last
