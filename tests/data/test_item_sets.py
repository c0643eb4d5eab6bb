"""Sets that can be compared, in every form that they may have."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from spec_files import spoil, write_all

from muarl.data.item_sets import items_of
from muarl.errors import MuarlError

TEST = """tasks:
  - {id: test-1, split: test, goal: You want nothing., gold: []}
"""


def names(name: object) -> list[str]:
    return [item.id for item in items_of(str(name))]


def test_a_domain_is_its_tasks_and_a_split_of_it_some_of_them(tmp_path: Path) -> None:
    write_all(tmp_path)
    spoil(tmp_path / "tasks.yaml", "tasks:\n", TEST)
    assert names(tmp_path) == names(tmp_path / "domain.yaml") == ["test-1", "cancel-1"]
    assert names(tmp_path / "tasks.yaml") == ["test-1", "cancel-1"]
    assert names(f"{tmp_path}:test") == names(f"{tmp_path}/tasks.yaml:test") == ["test-1"]


def test_lines_of_json_are_items_and_so_are_elements_of_a_list(tmp_path: Path) -> None:
    records = [{"id": "a", "text": "one"}, {"instruction": "two"}, {"nothing": None}]
    lines = "\n".join(map(json.dumps, records))
    (tmp_path / "x.jsonl").write_text(lines)
    (tmp_path / "x.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (tmp_path / "x.json").write_text(json.dumps(records))
    assert names(tmp_path / "x.jsonl") == names(tmp_path / "x.jsonl.gz") == ["a", "line 2"]
    assert names(tmp_path / "x.json") == ["a", "1"]


def test_lines_of_a_text_are_items(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("one\n\ntwo\n")
    assert names(tmp_path / "x.txt") == ["line 1", "line 3"]


@pytest.mark.parametrize(
    ("file", "content", "why"),
    [
        ("x.jsonl", '{"text": "a"}\n{', r"x\.jsonl:2: is no JSON"),
        ("x.json", "{", r"x\.json: is no JSON"),
        ("x.json", "[" * 5000, r"x\.json: is no JSON"),
        ("x.txt", "\n", "holds no task, dialogue or text"),
        ("x.csv", "a,b", "is of no known form; name a domain's folder"),
        ("x.jsonl.gz", "no gzip", "cannot be read"),
        ("x.parquet", "no parquet", "is no Parquet"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, file: str, content: str, why: str) -> None:
    (tmp_path / file).write_text(content)
    with pytest.raises(MuarlError, match=why):
        items_of(str(tmp_path / file))


def test_what_is_not_there_and_splits_of_what_has_none_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("one")
    with pytest.raises(MuarlError, match="there is no such file or folder"):
        items_of(str(tmp_path / "y.txt"))
    with pytest.raises(MuarlError, match="only tasks have splits; leave `:train` out"):
        items_of(f"{tmp_path / 'x.txt'}:train")
    with pytest.raises(MuarlError, match=r"holds neither domain\.yaml nor episodes\.journal"):
        items_of(str(tmp_path))
