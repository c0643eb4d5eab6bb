from __future__ import annotations

from pathlib import Path

import pytest
from spec_files import write_all


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_all(tmp_path)
    return tmp_path
