from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def published(fixtures) -> Path:
    """The published entries; what needs them is skipped where they are not."""
    return fixtures / "data" / "acebench"
