"""`muarl check`: what it prints, and how it exits."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from spec_files import spoil, write_all

from muarl.cli import main


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_all(tmp_path)
    return tmp_path


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
    assert captured.err == ""


def test_problems_of_specs_go_to_stderr_and_exit_with_2(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(folder / "tasks.yaml", "[plain, terse]", "[plain, ters]")
    for offline in ([], ["--offline"]):
        assert main(["check", str(folder), *offline]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err == (
            f"{folder / 'tasks.yaml'}:6:23: unknown persona 'ters'; did you mean 'terse'?\n"
        )


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


def test_many_findings_are_cut_and_counted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (folder / "tasks.yaml").read_text()
    head, task = text.partition("tasks:\n")[::2]
    task = task.replace("tool: cancel", "tool: nope")
    tasks = "".join(task.replace("cancel-1", f"cancel-{i}") for i in range(23))
    (folder / "tasks.yaml").write_text(f"{head}tasks:\n{tasks}")
    assert main(["check", str(folder)]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[-2:] == ["and 54 more; --json prints all", "74 findings"], "pairs of tasks too"
    assert sum("unknown tool 'nope'" in line for line in out) == 20


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
