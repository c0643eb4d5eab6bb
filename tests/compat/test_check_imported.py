"""`muarl check` of imported domains: what is theirs holds, and what is upstream's is said as such."""

from __future__ import annotations

import pytest

from muarl.cli import main
from muarl.data.proof import prove
from muarl.domain import load_domain

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("name", ["airline1", "retail1", "retail_v020", "telecom"])
async def test_gold_calls_of_imported_tasks_earn_1(name, request):
    proof = await prove(request.getfixturevalue(name), limit=3)
    assert [finding.problem.message for finding in proof.findings] == []
    assert proof.benchmark in ("tau-bench", "tau2-bench")


def test_the_smallest_domain_is_sound_and_its_benchmarks_oddities_are_counted(mock, capsys):
    assert main(["check", str(mock.folder)]) == 0
    said = capsys.readouterr().out
    assert "of tau2-bench itself: duplicates 4, gold 2, coverage 1 (--json names them)" in said
    assert "doing nothing earns 0.100 on base (10)" in said


def test_entries_of_acebench_are_sound(published, tmp_path, capsys):
    assert main(["import", "acebench", "--from", str(published), "--to", str(tmp_path)]) == 0
    domain = load_domain(tmp_path / "zh-multi-step-base-message-11")
    capsys.readouterr()
    assert main(["check", str(domain.folder), "--limit", "2"]) == 0
    assert "of ACEBench itself: coverage 4" in capsys.readouterr().out
