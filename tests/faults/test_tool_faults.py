"""Tool servers that fail, in memory and over stdio."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from fault_kit import FEW_TASKS, RATE, num_lost, play, serve_notes

from muarl.domain import Domain
from muarl.testing import FaultPlan, FaultyToolServer, broken_serve, broken_server
from muarl.testing.servers import HARMLESS, WORLD_RESOURCE, Fault, MemoryFault, sound_server
from muarl.tools.carrier import Limits
from muarl.tools.memory import MemoryToolServer
from muarl.tools.stdio import MirrorToolServer, StdioToolServer

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where 200 characters may come back, fifty thousand do as well as five million."""
    monkeypatch.setattr("muarl.testing.servers._OVERSIZED", 50_000)


def in_memory(faults: tuple[MemoryFault, ...], *, stateless: bool = True) -> FaultyToolServer:
    def server(fault: MemoryFault | None = None) -> MemoryToolServer:
        patience_s = 0.5 if fault in ("hang_at_start", "hang_in_call") else 300.0
        return MemoryToolServer(
            broken_serve(serve_notes, fault) if fault else serve_notes,
            stateless=stateless,
            limits=Limits(
                start_timeout_s=patience_s, call_timeout_s=patience_s, max_result_chars=200
            ),
        )

    plan = FaultPlan(faults, rate=RATE, seed=1)
    return FaultyToolServer(server(), {fault: server(fault) for fault in faults}, plan)


@pytest.mark.parametrize("stateless", [True, False])
@pytest.mark.parametrize("fault", get_args(MemoryFault))
async def test_no_failure_of_a_server_in_memory_becomes_a_reward_L2(
    domain: Domain, fault: MemoryFault, stateless: bool
) -> None:
    domain.server = server = in_memory((fault,), stateless=stateless)
    groups = await play(domain)
    assert (num_lost(groups) == 0) == (fault in HARMLESS)
    assert server.live == 0


async def test_failures_of_servers_in_memory_heal_by_being_tried_again_L2(domain: Domain) -> None:
    domain.server = in_memory(get_args(MemoryFault))
    lost = num_lost(await play(domain))
    domain.server = in_memory(get_args(MemoryFault))
    assert num_lost(await play(domain, attempts=4)) < lost


@pytest.mark.usefixtures("short_grace")
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
@pytest.mark.parametrize("attempts", [1, 3])
async def test_no_failure_of_a_server_process_becomes_a_reward_L2(
    domain: Domain, tmp_path: Path, attempts: int
) -> None:
    def server(command: list[str]) -> MirrorToolServer:
        limits = Limits(start_timeout_s=2.0, call_timeout_s=2.0, max_result_chars=200)
        return MirrorToolServer(StdioToolServer(command, tmp_path, limits=limits), WORLD_RESOURCE)

    faults = get_args(Fault)
    broken = {fault: server(broken_server(fault)) for fault in faults}
    plan = FaultPlan(faults, rate=RATE, seed=1)
    domain.server = faulty = FaultyToolServer(server(sound_server()), broken, plan)
    groups = await play(domain, tasks=FEW_TASKS, attempts=attempts, concurrency=8)
    lost = [e for group in groups for e in group.episodes if e.outcome.is_fault]
    assert all(episode.fault == "ToolServerError" for episode in lost), [e.error for e in lost]
    assert plan.drawn.total() > 2
    assert faulty.live == 0
