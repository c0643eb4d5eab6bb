from __future__ import annotations

from pathlib import Path

import pytest
from dialogue_kit import TalkingUser, write_notes

from muarl.domain import Domain
from muarl.testing import virtual_time


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> object:
    """Virtual time on trio; where real sockets or processes are waited for, tests say otherwise."""
    return virtual_time() if request.param == "trio" else "asyncio"


@pytest.fixture
def domain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Domain:
    """The domain `notes`, whose users say hello, and leave at the first thing they hear."""
    notes = write_notes(tmp_path)
    monkeypatch.setattr(notes, "user", lambda *_: TalkingUser(["hello"]))
    return notes


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK waits two seconds for an exit and two more after SIGTERM; tests need not."""
    monkeypatch.setattr("mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT", 0.15)
    monkeypatch.setattr("mcp.client.stdio.FORCE_KILL_TIMEOUT", 0.15)
    monkeypatch.setattr("mcp.client.stdio._KILL_REAP_TIMEOUT", 60.0)
