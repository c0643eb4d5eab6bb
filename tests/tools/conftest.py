from __future__ import annotations

import pytest


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK waits two seconds for an exit and two more after SIGTERM; tests need not."""
    monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", 0.15)
    monkeypatch.setattr("mcp.client.stdio.FORCE_KILL_TIMEOUT", 0.15)
    monkeypatch.setattr("mcp.client.stdio._KILL_REAP_TIMEOUT", 60.0)
