"""Servers in memory: what a call answers, how they fail, and what they leave alone."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp import MCPError
from mcp.server import MCPServer, Server
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    TextContent,
    Tool,
)
from tool_kit import call

from muarl.authors import MAX_CHARS
from muarl.errors import ToolServerError
from muarl.messages import ToolCall, ToolResult
from muarl.spec.tools import ToolLimitsSpec
from muarl.testing import run_in_virtual_time
from muarl.tools.carrier import Limits
from muarl.tools.memory import MemoryToolServer
from muarl.world import World

pytestmark = pytest.mark.anyio

stateless_or_not = pytest.mark.parametrize("stateless", [True, False])


def base() -> World:
    return World(
        {"orders": {"W1": {"status": "pending", "items": [{"sku": "a"}, {"sku": "b"}]}}, "n": 1}
    )


def serve(world: World) -> MCPServer:
    server = MCPServer("orders")

    @server.tool()
    async def get_order(order_id: str) -> dict:
        """One order."""
        if order_id not in world["orders"]:
            raise ToolError(f"no order {order_id}")
        return world["orders"][order_id]

    @server.tool()
    async def typed_order(order_id: str) -> dict[str, Any]:
        return world["orders"][order_id]

    @server.tool()
    async def items(order_id: str) -> list[dict[str, Any]]:
        return world["orders"][order_id]["items"]

    @server.tool()
    async def everything() -> dict:
        return world

    @server.tool()
    async def cancel(order_id: str, times: int = 1) -> str:
        world["orders"][order_id]["status"] = "cancelled" * times
        return "ok"

    @server.tool()
    def in_a_thread(order_id: str) -> dict:
        world["orders"][order_id]["seen"] = True
        return world["orders"][order_id]

    @server.tool()
    async def crash() -> str:
        return str(world["orders"]["W404"])

    @server.tool()
    async def refuse() -> str:
        raise MCPError(code=INVALID_PARAMS, message="not today")

    @server.tool()
    async def wait(seconds: float) -> str:
        await anyio.sleep(seconds)
        return "waited"

    return server


ORDER = '{"status":"pending","items":[{"sku":"a"},{"sku":"b"}]}'


@stateless_or_not
@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("get_order", {"order_id": "W1"}, ORDER),
        ("typed_order", {"order_id": "W1"}, ORDER),
        ("items", {"order_id": "W1"}, '[{"sku":"a"},{"sku":"b"}]'),
        ("everything", {}, '{"orders":{"W1":' + ORDER + '},"n":1}'),
        ("in_a_thread", {"order_id": "W1"}, ORDER[:-1] + ',"seen":true}'),
    ],
)
async def test_a_tool_may_return_a_node_of_the_world(
    stateless: bool, tool: str, arguments: dict[str, object], text: str
) -> None:
    async with MemoryToolServer(serve, stateless=stateless).session(base()) as session:
        result = await session.call(call(tool, **arguments))
        assert result == ToolResult(f"call_{tool}", tool, text)


@stateless_or_not
async def test_a_tool_writes_the_dialogues_world(stateless: bool) -> None:
    origin = base()
    world = origin.fork()
    async with MemoryToolServer(serve, stateless=stateless).session(world) as session:
        assert (await session.call(call("cancel", order_id="W1"))).content == "ok"
    assert world["orders"]["W1"]["status"] == "cancelled"
    assert origin == base()


@stateless_or_not
@pytest.mark.parametrize(
    ("made", "text"),
    [
        (call("get_order", order_id="W9"), "no order W9"),
        (call("get_order"), "wrong arguments: order_id: Field required"),
        (
            call("cancel", order_id=["W1"], times="x"),
            "wrong arguments: order_id: Input should be a valid string; times: Input should be a",
        ),
        (call("refuse"), "not today"),
        (ToolCall("c", "get_order", error="arguments are not JSON", raw="{"), "arguments are not"),
        (ToolCall("c", "", error="no name"), "no name"),
        (call("get_oder"), "unknown tool 'get_oder'; tools: get_order, typed_order, items, "),
    ],
)
async def test_what_the_policy_did_wrong_is_an_error_it_can_read(
    stateless: bool, made: ToolCall, text: str
) -> None:
    async with MemoryToolServer(serve, stateless=stateless).session(base()) as session:
        result = await session.call(made)
        assert result.is_error
        assert result.content.startswith(text)
        assert "\n" not in result.content
        assert (result.call_id, result.name) == (made.id, made.name)
        # The session goes on.
        assert not (await session.call(call("get_order", order_id="W1"))).is_error


@stateless_or_not
async def test_a_tool_that_crashes_is_a_fault_of_the_server_L2(stateless: bool) -> None:
    says = (
        r"^tool server 'serve' crashed in a call of 'crash': KeyError: 'W404' \(\S+:\d+, in crash\)\. "
        r"Let it raise ToolError .* or set tools\.on_crash to answer$"
    )
    async with MemoryToolServer(serve, stateless=stateless).session(base()) as session:
        for _ in range(2):
            with pytest.raises(ToolServerError, match=says):
                await session.call(call("crash"))
            # The session goes on, for those who want it to.
            assert not (await session.call(call("get_order", order_id="W1"))).is_error


async def test_what_a_server_says_of_itself_is_cut() -> None:
    async def tools(context: object, page: object) -> ListToolsResult:
        raise MCPError(code=INVALID_PARAMS, message="x" * 5_000_000)

    with pytest.raises(ToolServerError, match=r"did not start: x+…$") as caught:
        async with MemoryToolServer(lambda world: Server("shop", on_list_tools=tools)).session(
            base()
        ):
            pytest.fail("it started")
    assert len(str(caught.value)) < MAX_CHARS + 100


class Stop(BaseException):
    """No `Exception`, as some libraries have it."""


class Closed(GeneratorExit):
    """What Python itself takes for the end of a coroutine."""


UNUSUAL: dict[str, Callable[[str], BaseException]] = {
    "Stop": Stop,
    "GeneratorExit": GeneratorExit,
    "Closed": Closed,
    "BaseExceptionGroup": lambda said: BaseExceptionGroup(
        said, [ValueError(), KeyboardInterrupt()]
    ),
    "CancelledError": asyncio.CancelledError,
}
"""What ends a run if nobody takes it for what it is: a crash."""


@pytest.mark.parametrize("kind", UNUSUAL)
@stateless_or_not
async def test_a_tool_that_raises_what_is_no_exception_ends_its_own_call_and_nothing_else_L2(
    stateless: bool, kind: str
) -> None:
    def raises(world: World) -> MCPServer:
        server = serve(world)

        @server.tool()
        async def leave() -> str:
            raise UNUSUAL[kind]("all of you")

        @server.tool()
        def leave_in_a_thread() -> str:
            raise UNUSUAL[kind]("all of you")

        return server

    async with MemoryToolServer(raises, stateless=stateless).session(base()) as session:
        for tool in ["leave", "leave_in_a_thread"]:
            says = rf"crashed in a call of '{tool}': {kind}: all of you.* in {tool}\)"
            with pytest.raises(ToolServerError, match=says):
                await session.call(call(tool))
        assert not (await session.call(call("get_order", order_id="W1"))).is_error


@pytest.mark.parametrize("kind", UNUSUAL)
async def test_a_low_level_server_that_raises_what_is_no_exception_ends_its_own_call_L2(
    kind: str,
) -> None:
    async def tools(context: object, page: object) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="leave", input_schema={"type": "object"})])

    async def leave(context: object, call: object) -> CallToolResult:
        raise UNUSUAL[kind]("all of you")

    async with MemoryToolServer(
        lambda world: Server("shop", on_list_tools=tools, on_call_tool=leave)
    ).session(base()) as session:
        with pytest.raises(ToolServerError, match=rf"in a call of 'leave': {kind}: all of you"):
            await session.call(call("leave"))


@pytest.mark.parametrize("kind", UNUSUAL)
@pytest.mark.parametrize("when", ["built", "started", "ended"])
async def test_a_server_that_raises_what_is_no_exception_ends_its_own_session_L2(
    kind: str, when: str
) -> None:
    @asynccontextmanager
    async def lifespan(_server: MCPServer) -> AsyncIterator[None]:
        if when == "started":
            raise UNUSUAL[kind]("all of you")
        yield
        if when == "ended":
            raise UNUSUAL[kind]("all of you")

    def builds(world: World) -> MCPServer:
        if when == "built":
            raise UNUSUAL[kind]("all of you")
        return MCPServer("shop", lifespan=lifespan)

    with pytest.raises(ToolServerError, match=rf"{kind}: all of you"):
        async with MemoryToolServer(builds).session(base()):
            pass


async def test_a_call_that_is_cancelled_ends_however_its_tool_takes_that() -> None:
    def resists(world: World) -> MCPServer:
        server = serve(world)

        @server.tool()
        async def resist() -> str:
            async def fail_at_the_end() -> None:
                try:
                    await anyio.sleep_forever()
                finally:
                    raise ValueError("not now")

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(fail_at_the_end)
                await anyio.sleep_forever()
            return ""

        return server

    limits = Limits(tools={"resist": ToolLimitsSpec(call_timeout_s=0.01)})
    async with MemoryToolServer(resists, limits=limits).session(base()) as session:
        with pytest.raises(ToolServerError, match=r"not now|did not answer a call of 'resist'"):
            await session.call(call("resist"))
        assert not (await session.call(call("get_order", order_id="W1"))).is_error


@stateless_or_not
async def test_a_tool_that_exits_ends_its_own_call_and_nothing_else_L2(stateless: bool) -> None:
    def exits(world: World) -> MCPServer:
        server = serve(world)

        @server.tool()
        async def leave() -> str:
            sys.exit("the disk is full")

        @server.tool()
        async def interrupt() -> str:
            raise KeyboardInterrupt

        @server.tool()
        def interrupt_in_a_thread() -> str:
            raise KeyboardInterrupt

        return server

    async with MemoryToolServer(exits, stateless=stateless).session(base()) as session:
        with pytest.raises(ToolServerError, match="in a call of 'leave': SystemExit: the disk is"):
            await session.call(call("leave"))
        for tool in ("interrupt", "interrupt_in_a_thread"):
            with pytest.raises(
                ToolServerError, match=rf"of '{tool}': KeyboardInterrupt \(.* in {tool}\)"
            ):
                await session.call(call(tool))
        assert not (await session.call(call("get_order", order_id="W1"))).is_error


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
async def test_a_low_level_server_that_exits_ends_its_own_call_and_nothing_else_L2(
    kind: type[BaseException],
) -> None:
    async def tools(context: object, page: object) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="leave", input_schema={"type": "object"})])

    async def leave(context: object, call: object) -> CallToolResult:
        raise kind("the disk is full")

    def exits(world: World) -> Server[Any]:
        return Server("shop", on_list_tools=tools, on_call_tool=leave)

    async with MemoryToolServer(exits).session(base()) as session:
        with pytest.raises(
            ToolServerError, match=f"in a call of 'leave': {kind.__name__}: the disk is"
        ):
            await session.call(call("leave"))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # trio lets nobody make its `Cancelled`
async def test_a_tool_that_claims_to_be_cancelled_ends_its_own_call_and_nothing_else_L2() -> None:
    def cancels(world: World) -> MCPServer:
        server = serve(world)

        @server.tool()
        async def leave() -> str:
            raise anyio.get_cancelled_exc_class()

        return server

    async with MemoryToolServer(cancels).session(base()) as session:
        with pytest.raises(ToolServerError, match=r"crashed in a call of 'leave'.*CancelledError"):
            await session.call(call("leave"))
        assert not (await session.call(call("get_order", order_id="W1"))).is_error


@stateless_or_not
async def test_a_crash_may_be_an_answer_that_the_policy_reads(stateless: bool) -> None:
    server = MemoryToolServer(serve, stateless=stateless, limits=Limits(on_crash="answer"))
    async with server.session(base()) as session:
        failed = ToolResult("call_crash", "crash", "tool 'crash' failed", is_error=True)
        assert await session.call(call("crash")) == failed


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "order_id",
    ["\ud800", float("nan"), nested(400), nested(50_000)],
    ids=["surrogate", "nan", "deep", "deeper"],
)
async def test_arguments_that_are_no_json_are_an_error_the_policy_can_read(order_id: Any) -> None:
    async with MemoryToolServer(serve).session(base()) as session:
        result = await session.call(call("get_order", order_id=order_id))
        assert result.is_error
        assert result.content.startswith("the arguments cannot be sent as JSON: ")
        result.content.encode()


async def test_the_name_of_an_unknown_tool_is_cut() -> None:
    async with MemoryToolServer(serve).session(base()) as session:
        assert len((await session.call(call("x" * 10_000))).content) < 300


async def test_tools_are_passed_on_exactly_as_the_server_gives_them() -> None:
    tools = MemoryToolServer(serve, stateless=True)
    expected = await serve(base()).list_tools()
    for _ in range(2):
        async with tools.session(base()) as session:
            assert [t.name for t in session.tools] == [t.name for t in expected]
            assert [t.parameters for t in session.tools] == [t.input_schema for t in expected]
            assert [t.description for t in session.tools] == ["One order."] + [""] * 8


async def test_a_long_result_is_cut() -> None:
    async with MemoryToolServer(serve, limits=Limits(max_result_chars=20)).session(
        base()
    ) as session:
        result = await session.call(call("get_order", order_id="W1"))
        assert result.content == f"{ORDER[:20]}\n[cut: the first 20 of {len(ORDER)} characters]"


class _Counting(MCPServer):
    listed = 0

    async def list_tools(self) -> list[Tool]:
        self.listed += 1
        return await super().list_tools()


@pytest.mark.parametrize(("stateless", "built"), [(True, 1), (False, 3)])
async def test_a_stateless_server_is_built_and_listed_once(stateless: bool, built: int) -> None:
    servers: list[_Counting] = []

    def count(world: World) -> MCPServer:
        servers.append(_Counting("counting"))

        @servers[-1].tool()
        async def number() -> int:
            return world["n"]

        return servers[-1]

    tools = MemoryToolServer(count, stateless=stateless)
    for n in range(3):
        async with tools.session(World({"n": n})) as session:
            for _ in range(3):
                assert (await session.call(call("number"))).content == str(n)
    assert len(servers) == built
    assert [server.listed for server in servers] == [1] * built


async def test_reading_the_world_while_building_needs_a_server_of_ones_own() -> None:
    def early(world: World) -> MCPServer:
        server = MCPServer(f"shop {world['n']}")

        @server.tool()
        async def name() -> str:
            return server.name

        return server

    async with MemoryToolServer(early).session(base()) as session:
        assert (await session.call(call("name"))).content == "shop 1"
    with pytest.raises(ToolServerError, match=r"declare `stateless: false`, or read the world ins"):
        async with MemoryToolServer(early, stateless=True).session(base()):
            pytest.fail("it started")


async def test_a_server_built_inside_a_tool_of_another_does_not_see_its_world() -> None:
    inner = MemoryToolServer(lambda world: MCPServer(str(world["n"])), stateless=True)

    def outer(world: World) -> MCPServer:
        server = MCPServer("outer")

        @server.tool()
        async def nest() -> str:
            with pytest.raises(ToolServerError, match="stateless"):
                async with inner.session(world):
                    pytest.fail("it started")
            return f"still {world['n']}"

        return server

    async with MemoryToolServer(outer, stateless=True).session(base()) as session:
        assert (await session.call(call("nest"))).content == "still 1"


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (
            lambda world: {}["shop"],
            r"'<lambda>' could not be built: KeyError: 'shop' \(.*:\d+, in <lambda>\)",
        ),
        (lambda world: sys.exit("no shop"), r"'<lambda>' could not be built: SystemExit: no shop"),
        (lambda world: world, r"returned World; let it be a plain `def` that ends with"),
    ],
)
async def test_a_server_that_cannot_be_built_says_why(
    build: Callable[[World], Any], says: str
) -> None:
    with pytest.raises(ToolServerError, match=says):
        async with MemoryToolServer(build).session(base()):
            pytest.fail("it started")


@stateless_or_not
async def test_a_call_that_hangs_is_a_fault_of_the_server(stateless: bool) -> None:
    server = MemoryToolServer(serve, stateless=stateless, limits=Limits(call_timeout_s=0.05))
    with pytest.raises(
        ToolServerError,
        match=r"tool server 'serve' did not answer a call of 'wait' within 0\.05 s \(tools\.call_t",
    ):
        async with server.session(base()) as session:
            await session.call(call("wait", seconds=3600))


@asynccontextmanager
async def _stuck(server: MCPServer) -> AsyncIterator[None]:
    await anyio.sleep(3600)
    yield


@asynccontextmanager
async def _torn(server: MCPServer) -> AsyncIterator[None]:
    yield
    raise OSError("no goodbye")


@pytest.mark.parametrize(
    ("lifespan", "says"),
    [
        (_stuck, r"did not start within 0\.05 s \(tools\.start_timeout_s\)"),
        (_torn, r"failed: no goodbye"),
    ],
)
async def test_a_lifespan_that_hangs_or_raises_is_a_fault_of_the_server(
    lifespan: Any, says: str
) -> None:
    server = MemoryToolServer(
        lambda _: MCPServer("x", lifespan=lifespan), limits=Limits(start_timeout_s=0.05)
    )
    with pytest.raises(ToolServerError, match=says):
        async with server.session(base()):
            pass


async def test_an_error_of_the_dialogue_passes_unchanged_and_outranks_one_of_closing() -> None:
    mine = ExceptionGroup("mine", [KeyError("x")])
    server = MemoryToolServer(lambda _: MCPServer("x", lifespan=_torn))
    with pytest.raises(ExceptionGroup) as caught:
        async with server.session(base()):
            raise mine
    assert caught.value is mine


def test_deadlines_of_start_and_call_do_not_limit_the_dialogue() -> None:
    async def main() -> ToolResult:
        server = MemoryToolServer(serve, limits=Limits(start_timeout_s=2, call_timeout_s=2))
        async with server.session(base()) as session:
            await anyio.sleep(4)
            return await session.call(call("wait", seconds=0))

    assert run_in_virtual_time(main).content == "waited"


async def test_two_tools_of_one_name_are_refused() -> None:
    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name="a", input_schema={"type": "object"})] * 2)

    server = MemoryToolServer(lambda _: Server("low", on_list_tools=list_tools))
    with pytest.raises(ToolServerError, match="offers two tools named 'a'"):
        async with server.session(base()):
            pytest.fail("it started")


@pytest.mark.parametrize("name", ["", " ", "a b", "a\nb", "a\x1b[31m"])
async def test_a_tool_that_nobody_can_call_is_refused(name: str) -> None:
    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[Tool(name=name, input_schema={"type": "object"})])

    server = MemoryToolServer(lambda _: Server("low", on_list_tools=list_tools))
    with pytest.raises(ToolServerError) as refused:
        async with server.session(base()):
            pytest.fail("it started")
    assert f"offers a tool named {name!r}, which nobody can call" in str(refused.value)


async def test_a_low_level_server_that_lists_in_pages_and_raises_is_served_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def list_tools(context: Any, params: Any) -> ListToolsResult:
        page = int(params.cursor or 0)
        tool = Tool(name=f"t{page}", input_schema={"type": "object"})
        return ListToolsResult(tools=[tool], next_cursor=str(page + 1) if page < 2 else None)

    async def call_tool(context: Any, params: Any) -> CallToolResult:
        if params.name == "t0":
            raise ZeroDivisionError("secret")
        return CallToolResult(content=[TextContent(type="text", text=params.name)])

    def low(_: World) -> Server[Any]:
        return Server("low", on_list_tools=list_tools, on_call_tool=call_tool)

    async with MemoryToolServer(low).session(base()) as session:
        with pytest.raises(ToolServerError, match="crashed in a call of 't0': ZeroDivisionError"):
            await session.call(call("t0"))
    async with MemoryToolServer(low, limits=Limits(on_crash="answer")).session(base()) as session:
        assert [tool.name for tool in session.tools] == ["t0", "t1", "t2"]
        assert (await session.call(call("t2"))).content == "t2"
        failed = await session.call(call("t0"))
        assert failed.is_error
        assert "secret" not in failed.content
    assert "'t0' crashed: ZeroDivisionError: secret" in caplog.text


def test_waits_of_tools_are_virtual_under_a_mock_clock() -> None:
    async def main() -> list[float]:
        async with MemoryToolServer(serve, limits=Limits(call_timeout_s=100)).session(
            base()
        ) as session:
            await session.call(call("wait", seconds=60))
            after = anyio.current_time()
            with pytest.raises(ToolServerError, match="within 100 s"):
                await session.call(call("wait", seconds=101))
            return [after, anyio.current_time()]

    assert run_in_virtual_time(main) == [60, 160]


def test_a_tool_in_a_thread_still_answers_under_a_mock_clock() -> None:
    def threaded(world: World) -> MCPServer:
        server = MCPServer("threaded")

        @server.tool()
        def work() -> int:
            # The mock clock takes the idle event loop for a reason to jump past the deadline.
            time.sleep(0.02)
            world["n"] += 1
            return world["n"]

        return server

    async def main() -> ToolResult:
        server = MemoryToolServer(threaded, stateless=True, limits=Limits(call_timeout_s=1))
        async with server.session(base()) as session:
            return await session.call(call("work"))

    assert run_in_virtual_time(main).content == "2"


def test_one_server_serves_several_event_loops() -> None:
    server = MemoryToolServer(serve, stateless=True)

    async def main() -> str:
        async with server.session(base()) as session:
            return (await session.call(call("get_order", order_id="W1"))).content

    for backend in ("asyncio", "trio", "asyncio"):
        assert anyio.run(main, backend=backend) == ORDER


async def test_a_verbatim_server_keeps_its_white_space_and_answers_for_tools_it_does_not_list():
    async def list_tools(_context: Any, _params: Any) -> ListToolsResult:
        schema = {"type": "object", "properties": {}}
        return ListToolsResult(tools=[Tool(name="look", input_schema=schema)])

    async def call_tool(_context: Any, params: CallToolRequestParams) -> CallToolResult:
        known = params.name == "look"
        text = '{"a": 1}' if known else f"no {params.name} here"
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=not known)

    def serve(world: World) -> Server[Any]:
        return Server("plain", on_list_tools=list_tools, on_call_tool=call_tool)

    said = {}
    for verbatim in (False, True):
        limits = Limits(verbatim=verbatim)
        async with MemoryToolServer(serve, limits=limits).session(World({})) as session:
            said[verbatim] = [await session.call(call("look")), await session.call(call("leap"))]
    assert [result.content for result in said[False]] == [
        '{"a":1}',
        "unknown tool 'leap'; tools: look",
    ]
    assert [result.content for result in said[True]] == ['{"a": 1}', "no leap here"]
    assert said[True][1].is_error
    assert said[True][1].as_message().content == "no leap here", (
        "a word before it is not the server's"
    )
