"""The authoring guide is true: its blocks make a sound domain, and its findings are those one gets."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import guide
import pytest
from documents import outputs

from muarl.cli import main

SMALL = ("train: 600, held_out: 100", "train: 40, held_out: 20")
KNOWING_NO_SCREENING = """\
"book {seats} seats", "book {seats}", "book me {seats} seats",
                   "reserve {seats}", "reserve me {seats} seats", "reserve me {seats}", "get me {seats} seats",
                   "get me {seats}", "get {seats} seats", "take {seats} seats", "take {seats}"]"""
MISTAKES = [
    ("domain.yaml", "personas:", "personnas:"),
    ("domain.yaml", "writes: [book]", "writes: [bok]"),
    ("domain.yaml", "writes: [book]\n", ""),
    ("domain.yaml", KNOWING_NO_SCREENING, "]"),
    ("domain.yaml", '    "ask:screening": [which screening]\n', ""),
    ("domain.yaml", 'open: ["good evening, {request}"', 'open: ["hello, {request}"'),
    ("tasks.py", '== (split == "held_out")', ">= 0"),
    ("tasks.py", "0 if sold_out else 40", "0 if sold_out else 1"),
    ("domain.yaml", "screening: on_request", "screening: never"),
    ("domain.yaml", "  - called: {tool: find_screening, before: book}\n", ""),
    ("domain.yaml", "  - called: {tool: find_screening, before: book}\n", ""),
    ("domain.yaml", "[which screening]", "[what screening]"),
]
"""File, what stands in it, and what stands there by mistake: one for each finding of the guide."""


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Path:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "cinema"]) == 0
    template = {path.name for path in (tmp_path / "cinema").iterdir()} - {"schemas"}
    assert template == {Path(name).name for name in guide.files()}, "the guide explains each file"
    guide.write(tmp_path)
    capsys.readouterr()
    return tmp_path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, (path.name, old)
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_the_domain_is_sound(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "cinema", "--limit", "20"]) == 0
    assert capsys.readouterr().out.endswith("\nsound\n")


def test_playing_it_is_as_the_guide_shows(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (shown,) = [text for text in outputs() if text.startswith("cinema/train-")]
    said = re.findall(r"^you: (.*\n)", shown, re.MULTILINE)
    (here / "lines").write_text("".join(said), encoding="utf-8")
    with (here / "lines").open(encoding="utf-8") as lines:
        monkeypatch.setattr(sys, "stdin", lines)
        assert main(["play", "cinema", "--persona", "terse", "--calls"]) == 0
    assert capsys.readouterr().out == shown


def test_there_is_a_mistake_for_each_finding() -> None:
    assert len(MISTAKES) == len(guide.findings())


@pytest.mark.parametrize(
    ("mistake", "finding"),
    list(zip(MISTAKES, guide.findings(), strict=False)),
    ids=lambda value: value[1],
)
def test_a_mistake_leads_to_the_finding_that_the_guide_shows(
    here: Path, mistake: tuple[str, str, str], finding: str, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(here / "cinema" / "domain.yaml", *SMALL)
    edit(here / "cinema" / "tasks.py", "in range(10, 100)", "in range(10, 16)")
    file, *change = mistake
    edit(here / "cinema" / file, *change)
    assert main(["check", "cinema"]) in (1, 2)
    printed = "".join(capsys.readouterr())
    pieces = [re.escape(piece) for piece in finding.split("...")]
    assert re.search(".*".join(pieces), printed), printed


def test_the_page_says_how_many_lines_it_takes() -> None:
    lines = {
        name: len([ln for ln in text.splitlines() if ln.strip()])
        for name, text in guide.files().items()
    }
    expert = lines.pop("cinema/expert.py")
    assert f"{sum(lines.values())} lines and an expert of {expert}" in guide.PAGE
