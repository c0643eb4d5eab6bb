"""`muarl overlap`: what two sets have in common, pair by pair."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bad_input import InProcess


@pytest.fixture
def sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.txt").write_text("cancel W17 for ann@x.org\nsend W18 to rome\n")
    (tmp_path / "two.txt").write_text("where is my lamp\nCancel W17 for ann@x.org!\n")
    (tmp_path / "three.txt").write_text("nothing of the kind\n")


@pytest.mark.usefixtures("sets")
def test_pairs_are_named_and_counted_and_it_ends_with_1(muarl: InProcess) -> None:
    found = muarl("overlap", "one.txt", "two.txt")
    assert found.code == 1
    assert found.out.splitlines() == [
        "line 2 is like line 1: words 1.00, entities 1.00 (the same)",
        "1 of 2 are like one of 2 (1 exactly the same, 1 alike in words, 1 alike in entities)",
    ]


@pytest.mark.usefixtures("sets")
def test_nothing_in_common_ends_with_0(muarl: InProcess) -> None:
    found = muarl("overlap", "one.txt", "three.txt")
    assert found.code == 0
    assert found.out.startswith("0 of 1 are like one of 2 ")


@pytest.mark.usefixtures("sets")
def test_all_pairs_are_in_json_and_in_a_file(muarl: InProcess, tmp_path: Path) -> None:
    found = muarl("overlap", "one.txt", "two.txt", "--json", "--out", "pairs.jsonl")
    told = json.loads(found.out)
    (pair,) = told.pop("pairs")
    assert told == {"first": 2, "second": 2, "shared": 1, "exact": 1, "words": 1, "entities": 1}
    assert pair["item"] == "line 2"
    assert json.loads((tmp_path / "pairs.jsonl").read_text()) == pair
    assert muarl("overlap", "one.txt", "two.txt", "--out", "pairs.jsonl").code == 1
    assert muarl("overlap", "one.txt", "two.txt", "--out", "pairs.jsonl", "--overwrite").code == 1


@pytest.mark.usefixtures("sets")
@pytest.mark.parametrize("words", ["0", "1.5", "half"])
def test_a_similarity_that_is_none_is_refused(muarl: InProcess, words: str) -> None:
    assert muarl("overlap", "one.txt", "two.txt", "--words", words).code == 2
