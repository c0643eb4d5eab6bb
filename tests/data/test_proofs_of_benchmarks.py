"""Tasks of a public benchmark are as they are: what is odd about them is said, and nobody's fault."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from spec_files import spoil, write_all

from muarl.cli import main
from muarl.data.proof import Check, Proof, prove
from muarl.domain import load_domain

pytestmark = pytest.mark.anyio

MARK = "benchmark: {name: orderbench}\nreward:"
SAID = """\
def said(evidence):
    return any("all done" in text for _, text in evidence.heard())


def ended(evidence):
    last = evidence.turns[-1].reply if evidence.turns else None
    return last is not None and last.stop
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A shop with the same task twice."""
    write_all(tmp_path)
    tasks = (tmp_path / "tasks.yaml").read_text()
    again = tasks[tasks.index("  - id: cancel-1") :].replace("cancel-1", "cancel-2")
    (tmp_path / "tasks.yaml").write_text(tasks + again)
    return tmp_path


def checks(proof: Proof) -> tuple[set[str], set[str]]:
    return {f.check for f in proof.findings}, {f.check for f in proof.of_benchmark}


async def test_what_is_odd_about_published_tasks_is_said_and_does_not_make_a_domain_unsound(
    folder: Path,
) -> None:
    proof = await prove(load_domain(folder))
    assert checks(proof) == ({Check.DUPLICATES}, set())
    spoil(folder / "domain.yaml", "reward:", MARK)
    proof = await prove(load_domain(folder))
    assert checks(proof) == (set(), {Check.DUPLICATES})
    assert (proof.sound, proof.benchmark) == (True, "orderbench")
    assert any("users of a benchmark tell it in prose" in reason for reason in proof.skipped)


def test_the_verb_names_the_benchmark_and_counts_what_is_its_own(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(folder / "domain.yaml", "reward:", MARK)
    assert main(["check", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "  of orderbench itself: duplicates 1 (--json names them)\nsound\n" in out
    assert main(["check", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [f["task"] for f in found["of_benchmark"]] == ["cancel-2"]


async def test_gold_calls_that_fail_are_a_fault_unless_the_task_is_named_as_unsolved(
    folder: Path,
) -> None:
    spoil(folder / "domain.yaml", "reward:", MARK)
    spoil(folder / "tasks.yaml", "arguments: {order_id: W1}", "arguments: {order_id: W9}")
    proof = await prove(load_domain(folder))
    assert Check.GOLD in checks(proof)[0]
    unsolved = "name: orderbench, unsolved: [cancel-1, cancel-2]"
    spoil(folder / "domain.yaml", "name: orderbench", unsolved)
    assert Check.GOLD not in checks(await prove(load_domain(folder)))[0]


async def test_what_a_function_wants_said_is_said_before_the_gold_calls(tmp_path: Path) -> None:
    write_all(tmp_path)
    (tmp_path / "own.py").write_text(SAID)
    wanted = "- gold_world: true\n  - python: {function: own.py:said}"
    spoil(tmp_path / "domain.yaml", "- gold_world: true", wanted)
    proof = await prove(load_domain(tmp_path))
    assert checks(proof)[0] == {Check.GOLD}
    spoil(tmp_path / "domain.yaml", "own.py:said", "own.py:said, says: [all done]")
    assert (await prove(load_domain(tmp_path))).sound


async def test_the_user_ends_a_dialogue_of_gold_calls(tmp_path: Path) -> None:
    write_all(tmp_path)
    (tmp_path / "own.py").write_text(SAID)
    wanted = "- gold_world: true\n  - python: {function: own.py:ended}"
    spoil(tmp_path / "domain.yaml", "- gold_world: true", wanted)
    assert (await prove(load_domain(tmp_path))).sound
