"""Recorded vectors lie beside the project; where they are not, tests that read them skip and say so."""

from __future__ import annotations

from pathlib import Path

import pytest

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
