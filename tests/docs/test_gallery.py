"""The gallery shows every shipped domain, and counts its lines and tools rightly."""

from __future__ import annotations

import re

import pytest
from documents import ROOT, blocks

from muarl.spec import load_domain_spec

PAGE = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
DOMAINS = sorted(path.parent.name for path in (ROOT / "domains").glob("*/domain.yaml"))
ROWS = {
    name: [cell.strip() for cell in cells.split("|")]
    for name, cells in re.findall(r"^\| \[(\w+)\]\(#\w+\) \|(.*)\|$", PAGE, re.MULTILINE)
}
CHECKED = {
    block.text.partition(":")[0]: block.text
    for block in blocks()
    if block.place.startswith("gallery.md") and block.language == "text"
}


def test_every_domain_has_a_row_and_a_section() -> None:
    assert sorted(ROWS) == DOMAINS
    assert sorted(re.findall(r"^## (\w+)$", PAGE, re.MULTILINE)) == DOMAINS
    assert sorted(CHECKED) == DOMAINS


@pytest.mark.parametrize("name", DOMAINS)
def test_lines_and_figures_of_a_row_are_those_of_the_domain(name: str) -> None:
    _, _, tasks, lines, floor, expert = ROWS[name]
    files = [
        path for path in (ROOT / "domains" / name).rglob("*") if path.suffix not in (".pyc", "")
    ]
    counted = sum(bool(line.strip()) for path in files for line in path.read_text().splitlines())
    assert int(lines.replace(",", "")) == counted

    checked = CHECKED[name]
    assert f"{name}: {tasks.replace(',', '')} tasks" in checked
    skill = re.findall(r"^  \w+_\w+ earns (.*)$", checked, re.MULTILINE)
    earned = [float(value) for line in skill for value in re.findall(r"(\d\.\d{3}) on", line)]
    assert float(floor) == max(earned)
    by_expert = re.findall(r"^  the expert earns (\d\.\d{3})", checked, re.MULTILINE)
    assert [expert] == (by_expert or ["none"])
    assert load_domain_spec(ROOT / "domains" / name).spec.floor >= max(earned)
