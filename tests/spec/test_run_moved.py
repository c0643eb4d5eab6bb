"""A run file that is written into another folder still names the same files."""

from __future__ import annotations

from pathlib import Path

import pytest

from muarl.spec import RunSpec


@pytest.mark.parametrize("out", ["runs/one", "elsewhere/deep/down", ".", "specs"])
def test_paths_follow_a_run_to_its_folder(
    out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = RunSpec.model_validate(
        {"version": 1, "domain": "../domains/desk", "model": {"path": "../models/tiny"}}
    )
    moved = run.moved(Path("specs"), Path(out))
    assert (Path(out) / moved.domain).resolve() == tmp_path / "domains" / "desk"
    assert moved.model.path is not None
    assert (Path(out) / moved.model.path).resolve() == tmp_path / "models" / "tiny"
    assert moved.moved(Path(out), Path("specs")) == run
    assert run.moved(Path("specs"), (tmp_path / out)) == moved, "however the folder is named"


def test_a_path_that_is_no_relative_one_stays() -> None:
    run = RunSpec.model_validate({"version": 1, "domain": "/d/domain.yaml", "model": {"tiny": {}}})
    assert run.moved(Path("specs"), Path("runs/one")) == run
