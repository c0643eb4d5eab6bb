"""Recorded vectors lie beside the project; where they are not, tests that read them skip and say so."""

from __future__ import annotations

from pathlib import Path

import pytest
from tau_copies import imported

from muarl.compat.conformance import UpstreamData

FIXTURES = Path(__file__).parents[3] / "shared" / "fixtures"


@pytest.fixture(scope="session")
def fixtures() -> Path:
    if not FIXTURES.is_dir():
        pytest.skip("no ../shared/fixtures: recorded vectors of public benchmarks are not here")
    return FIXTURES


@pytest.fixture(scope="session")
def upstream(fixtures: Path) -> UpstreamData:
    return UpstreamData(fixtures / "data")


@pytest.fixture(scope="session")
def published(fixtures) -> Path:
    """The published entries; what needs them is skipped where they are not."""
    return fixtures / "data" / "acebench"


@pytest.fixture(scope="session")
def retail1(fixtures, tmp_path_factory):
    return imported(tmp_path_factory, "tau1", fixtures / "data", "retail")


@pytest.fixture(scope="session")
def telecom(fixtures, tmp_path_factory):
    return imported(tmp_path_factory, "tau2", fixtures / "data" / "tau2", "telecom")


@pytest.fixture(scope="session")
def mock(fixtures, tmp_path_factory):
    return imported(tmp_path_factory, "tau2", fixtures / "data" / "tau2", "mock")


@pytest.fixture(scope="session")
def airline1(fixtures, tmp_path_factory):
    return imported(tmp_path_factory, "tau1", fixtures / "data", "airline")


@pytest.fixture(scope="session")
def retail_v020(fixtures, tmp_path_factory):
    data = fixtures / "data"
    return imported(tmp_path_factory, "tau2", data, "retail", "--version", "v0.2.0")


@pytest.fixture(scope="session")
def retail_head(fixtures, tmp_path_factory):
    return imported(tmp_path_factory, "tau2", fixtures / "data" / "tau2", "retail")
