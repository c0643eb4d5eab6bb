from __future__ import annotations

from pathlib import Path

import pytest
from plugin_kit import Install, installer
from spec_files import write_all


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    return installer(tmp_path, monkeypatch)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shop = tmp_path / "shop"
    shop.mkdir()
    write_all(shop)
    return shop
