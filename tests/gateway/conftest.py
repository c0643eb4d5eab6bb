from pathlib import Path

import pytest
from dialogue_kit import write_notes

from muarl.domain import Domain


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Domain:
    folder: Path = tmp_path_factory.mktemp("notes")
    return write_notes(folder)
