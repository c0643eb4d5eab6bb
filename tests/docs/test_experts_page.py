"""The experts on their page play the domain that `muarl init` writes, and have the habit they say they have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from documents import blocks

from muarl.cli import main
from muarl.domain import load_domain
from muarl.errors import SpecError
from muarl.seeds import generator

EXPERTS = [
    block.text
    for block in blocks()
    if block.place.startswith("experts.md") and block.language == "python"
]


@pytest.fixture(params=EXPERTS, ids=["as states", "as one generator"])
def shop(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Path:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "shop"]) == 0
    (tmp_path / "shop" / "expert.py").write_text(request.param, encoding="utf-8")
    capsys.readouterr()
    return tmp_path / "shop"


def test_it_earns_everything(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "shop", "--limit", "10", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {split: mean["value"] for split, mean in found["expert"].items()} == {
        "train": 1,
        "held_out": 1,
    }


def test_it_refuses_habits_that_it_does_not_know(shop: Path) -> None:
    domain = load_domain(shop)
    (task, *_) = domain.tasks("train")
    domain.expert(task, {"quit": 1.0}, generator(0))
    with pytest.raises(SpecError, match=r"unknown \w+ \['quid'\]; .*quit"):
        domain.expert(task, {"quid": 1.0}, generator(0))
