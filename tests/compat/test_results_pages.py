"""What the pages of docs/results say is what their commands print; cheap sets only."""

from __future__ import annotations

import re
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import anyio
import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "benchmarks"))

import acebench_audit
import bfcl_audit
import contamination_audit
import floors
import tau_audit
import versions

RESULTS = ROOT / "docs" / "results"


def cells(text: str) -> dict[tuple[str, str], str]:
    """Every cell of the tables in a text, by the names of its row and column."""
    found = {}
    for block in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE):
        head, _, *rows = (
            [cell.strip() for cell in line.strip()[1:-1].split("|")] for line in block.splitlines()
        )
        for row in rows:
            found |= {(row[0], name): cell for name, cell in zip(head[1:], row[1:], strict=True)}
    return found


def agree(page: str, *tables: str) -> None:
    shown = cells((RESULTS / page).read_text(encoding="utf-8"))
    printed = cells("\n\n".join(tables))
    assert printed
    assert {place: shown.get(place) for place in printed} == printed


def test_acebench(fixtures):
    agree("acebench.md", *acebench_audit.tables(acebench_audit.audit(fixtures / "data/acebench")))


@pytest.mark.parametrize("name", ["v3 base", "v4 miss_func"])
def test_bfcl(fixtures, name):
    agree("bfcl.md", *bfcl_audit.tables(bfcl_audit.audit(fixtures / "data", name)))


def test_contamination(fixtures):
    found = contamination_audit.audit(fixtures / "data", ["airline"])
    agree("contamination.md", *contamination_audit.tables(found))
    official = {"HEAD retail base": 113, "HEAD airline base": 47}
    shown = cells((RESULTS / "contamination.md").read_text(encoding="utf-8"))
    for name, count in official.items():
        assert abs(int(shown[contamination_audit.ROWS["alike"], name]) - count) <= 2


def test_what_the_papers_authors_train_on_are_test_tasks(fixtures):
    pytest.importorskip("pyarrow", reason="the authors' files are read with the extra `export`")
    rows = contamination_audit.released(fixtures / "data")
    assert rows == {
        "retail": {"rows": 115, "test_tasks": 115},
        "airline": {"rows": 50, "test_tasks": 50},
    }


@pytest.mark.parametrize("name", ["tau1 retail dev", "tau2 HEAD airline", "tau2 HEAD telecom base"])
def test_tau(fixtures, name):
    found = {of.name: tau_audit.Audit(of).run() for of in tau_audit.sets(fixtures / "data", name)}
    agree("tau.md", *tau_audit.tables(found))


def test_versions(fixtures):
    agree("comparability.md", *versions.tables(versions.audit(fixtures / "data")))


@pytest.mark.parametrize(
    "name", ["tau1 retail dev", "tau2 HEAD mock base", "acebench en multi_turn"]
)
def test_floors(fixtures, tmp_path, name):
    size, right = 0, Counter()
    for _, path, split in floors.sets(fixtures / "data", tmp_path, name):
        tasks, counts = anyio.run(partial(floors.counted, path, split))
        size += tasks
        right.update(counts)
    agree("floors.md", floors.table({name: right}, {name: size}))


def test_the_floors_of_doing_nothing_are_those_of_the_official_code():
    shown = cells((RESULTS / "floors.md").read_text(encoding="utf-8"))
    measured = {name: count for name, count in floors.MEASURED.items() if name.startswith("tau")}
    assert len(measured) == 10
    for name, count in measured.items():
        assert int(shown[name, "do_nothing"].split()[0]) == count
