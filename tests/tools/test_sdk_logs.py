"""The SDK's log: silent inside dialogues, said once per tool by us, untouched elsewhere."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from mcp.server import MCPServer
from tool_kit import call

from muarl.tools.carrier import Limits
from muarl.tools.memory import MemoryToolServer
from muarl.world import World

pytestmark = pytest.mark.anyio


def serve(world: World) -> MCPServer:
    server = MCPServer("crashing")

    @server.tool()
    async def look() -> str:
        return str(world["nowhere"])

    @server.tool()
    async def divide() -> float:
        return 1 / 0

    return server


@contextmanager
def bare_root() -> Iterator[logging.Logger]:
    """The root logger of a program that has configured nothing."""
    root = logging.getLogger()
    kept, level = root.handlers[:], root.level
    root.handlers[:] = []
    yield root
    root.handlers[:] = kept
    root.setLevel(level)


async def crash_all(server: MemoryToolServer) -> None:
    for _ in range(3):
        async with server.session(World({})) as session:
            for tool in ("look", "divide", "look"):
                assert (await session.call(call(tool))).content == f"tool '{tool}' failed"


@pytest.mark.parametrize("stateless", [True, False])
async def test_a_crash_is_said_once_per_tool_with_its_reason_and_place(
    stateless: bool, caplog: pytest.LogCaptureFixture
) -> None:
    await crash_all(MemoryToolServer(serve, stateless=stateless, limits=Limits(on_crash="answer")))
    said = [(record.name, record.levelname, record.message) for record in caplog.records]
    assert [line[:2] for line in said] == [("muarl.tools", "ERROR")] * 2
    look, divide = (line[2] for line in said)
    assert look.startswith("tool server 'serve': tool 'look' crashed: KeyError: 'nowhere' (")
    assert f"{__file__}:" in look
    assert "crashed: ZeroDivisionError: division by zero (" in divide
    assert all(record.exc_info is None for record in caplog.records)


async def test_the_root_logger_is_left_as_it_was_and_no_traceback_is_printed(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with bare_root() as root:
        level = root.level
        await crash_all(MemoryToolServer(serve, limits=Limits(on_crash="answer")))
        assert root.handlers == []
        assert root.level == level
    shown = "".join(capfd.readouterr())
    assert "Traceback" not in shown
    assert len(shown.splitlines()) == 2


async def test_at_level_debug_the_sdk_speaks(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="muarl"):
        await crash_all(MemoryToolServer(serve, limits=Limits(on_crash="answer")))
    assert any(record.name.startswith("mcp.") and record.exc_info for record in caplog.records)


async def test_the_hosts_own_use_of_the_sdk_is_heard(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("mcp.server.mcpserver.server")
    async with MemoryToolServer(serve, limits=Limits(on_crash="answer")).session(
        World({})
    ) as session:
        await session.call(call("look"))
        log.error("from the host")
    log.error("and again")
    said = [record.message for record in caplog.records if record.name == log.name]
    assert said == ["from the host", "and again"]
