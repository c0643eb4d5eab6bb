from __future__ import annotations

from functools import cache

import pytest

from muarl.compat.bfcl.importer import write_domains
from muarl.domain import load_domain


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="session")
def imported(fixtures, tmp_path_factory):
    """A version and a folder's name to the domain; what needs it is skipped where there are no data."""

    @cache
    def folders(version):
        copy = fixtures / "data" / "bfcl" / version
        written = write_domains(copy, tmp_path_factory.mktemp(version))
        return {folder.name: folder for folder, _ in written}

    return cache(lambda version, name: load_domain(folders(version)[name]))
