"""What a report says of several runs together: in what they differ, and what trainings of one kind show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from muarl.report.differing import differing_settings
from muarl.report.run_folder import read_run_folder
from muarl.report.trainings import trainings

LONG = {"grpo": {f"setting_{number}": number for number in range(20)}}


@pytest.mark.parametrize(
    ("specs", "found"),
    [
        ([{"a": 1}, {"a": 1}], {}),
        ([{"a": {"b": 1}}, {"a": {"b": 2}}], {"a.b": ["1", "2"]}),
        ([{"a": 1, "b": {}}, {"b": {}}], {"a": ["1", None]}),
        ([{"a": {"b": 1}}, {"a": {"c": 1}}], {"a.b": ["1", None], "a.c": [None, "1"]}),
        ([{"engine": "x"}, {"engine": {"y": {"z": 1}}}], {"engine": ['"x"', '{"y":{"z":1}}']}),
        (
            [{"a": {"b": 1, "c": 0}}, {"a": {"b": 2, "c": 0}}, {"a": None}],
            {"a": ['{"b":1,"c":0}', '{"b":2,"c":0}', "null"], "a.b": ["1", "2", None]},
        ),
        ([{"a": {"b": 1}}, {"a": {"b": 1}}, {}], {"a": ['{"b":1}', '{"b":1}', None]}),
        ([{}, {"a": [1]}], {"a": [None, "[1]"]}),
        ([LONG, {}], {"grpo": [json.dumps(LONG["grpo"], separators=(",", ":"))[:59] + "…", None]}),
    ],
)
def test_what_differs_is_told_once_and_what_a_run_lacks_whole_in_one_line(
    specs: list[dict[str, Any]], found: dict[str, list[str | None]]
) -> None:
    assert {one["path"]: one["values"] for one in differing_settings(specs)} == found


def trained(folder: Path, seed: int, success: float | None, **spec: Any) -> Path:
    """A run whose policy earned so much in the end, None: that was never evaluated."""
    folder.mkdir()
    resolved = {"version": 1, "domain": "desk", "grpo": {"lr": 1}, "seed": seed, **spec}
    (folder / "spec.resolved.yaml").write_text(json.dumps(resolved))
    (folder / "versions.json").write_text("{}")
    ends = [] if success is None else [("final", 1, success), ("final", 0, 0.5)]
    lines = [
        {"kind": "eval", "phase": phase, "temperature": temperature, "success": {"value": value}}
        for phase, temperature, value in [("cold", 1, 0.25), ("cold", 0, 0.25), *ends]
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_trainings_that_differ_by_the_seed_alone_are_put_together(tmp_path: Path) -> None:
    runs = [
        trained(tmp_path / "a", 1, 0.90),
        trained(tmp_path / "b", 2, 0.94),
        trained(tmp_path / "other", 1, 0.1, grpo={"lr": 2}),
        trained(tmp_path / "c", 3, 0.95, threads=4),
        trained(tmp_path / "unfinished", 4, None),
        trained(tmp_path / "again", 1, 0.2),
    ]
    found = trainings([read_run_folder(run) for run in runs], [run.name for run in runs])
    assert found == [
        {
            "runs": ["a", "b", "c"],
            "says": "0.930 [0.864, 0.996] over 3 training seeds, from 0.900 to 0.950",
        }
    ]
