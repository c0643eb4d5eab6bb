"""`muarl schema` writes the schemas, and tells when they are stale."""

from __future__ import annotations

from pathlib import Path

import pytest

from muarl.cli import main


def test_it_writes_the_schemas_and_names_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "schemas"
    assert main(["schema", "--out", str(out)]) == 0
    names = ["domain.v1.json", "tasks.v1.json", "run.v1.json", "reward.v1.json"]
    assert capsys.readouterr().out.split() == [str(out / name) for name in names]
    assert main(["schema", "--out", str(out), "--check"]) == 0


def test_check_names_what_is_stale_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["schema", "--out", str(tmp_path)])
    (tmp_path / "run.v1.json").write_text("{}")
    capsys.readouterr()
    assert main(["schema", "--out", str(tmp_path), "--check"]) == 1
    assert capsys.readouterr().out == (
        f"{tmp_path / 'run.v1.json'}: not what the models say; run `muarl schema --out {tmp_path}`\n"
    )
    assert (tmp_path / "run.v1.json").read_text() == "{}"


def test_a_folder_that_cannot_be_written_is_one_clear_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main(["schema", "--out", str(tmp_path / "file")]) == 1
    assert capsys.readouterr().err == (
        f"muarl: cannot write to {tmp_path / 'file'}: File exists; name another folder with --out\n"
    )
