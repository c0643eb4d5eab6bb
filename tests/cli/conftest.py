from __future__ import annotations

from pathlib import Path

import pytest
from bad_input import InProcess, write_shop


@pytest.fixture
def muarl(capfd: pytest.CaptureFixture[str]) -> InProcess:
    return InProcess(capfd)


@pytest.fixture
def run_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run file of a small sound shop; the working folder is empty beside it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop").mkdir()
    return write_shop(tmp_path / "shop")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"
