"""`muarl serve`: the official SDK's client gets a domain's tools, over stdio and over HTTP."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx2
import pytest
import uvicorn
from bad_input import SOURCE, InProcess
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import CallToolResult
from phone_kit import DOMAIN as PHONES
from phone_kit import TOOLS, use, write_phones

from muarl.cli.init import write
from muarl.cli.serve import fresh_sessions
from muarl.domain import Domain, load_domain
from muarl.tools.prompt_http import heads_within
from muarl.tools.serving import tools_as_server
from muarl.tools.serving_http import HttpSessions, loopback_only

pytestmark = pytest.mark.anyio

every_template = pytest.mark.parametrize("template", ["python", "sql", "server"])

ORDER = {"order_id": "B17"}  # in the world of each template, and pending


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # uvicorn's


def program(*arguments: str) -> StdioServerParameters:
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return StdioServerParameters(
        command=sys.executable, args=["-m", "muarl.cli", "serve", *arguments], env=env
    )


@asynccontextmanager
async def over_http(domain: Domain, head_s: float = 10, **how: float) -> AsyncIterator[str]:
    """Serves a domain in this process; gives the URL."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    sessions = HttpSessions(
        lambda: tools_as_server("shop", fresh_sessions(domain, None)), loopback_only(port), **how
    )
    config = uvicorn.Config(
        sessions,
        http=heads_within(head_s),
        lifespan="off",
        log_config=None,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    async with sessions.open(), anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [listening])
        yield f"http://127.0.0.1:{port}/mcp"
        server.should_exit = True


def said(result: CallToolResult) -> str:
    (content,) = result.content
    text: str = content.text  # type: ignore[union-attr]
    return text


async def shown(client: Client) -> list[tuple[str, str | None, dict[str, object]]]:
    listed = await client.list_tools()
    return [(tool.name, tool.description, tool.input_schema) for tool in listed.tools]


async def cancels_an_order(client: Client, domain: Domain) -> None:
    """The tools are those that a policy sees, and their world is this session's."""
    expected = [(t.name, t.description, t.parameters) for t in await domain.tools()]
    assert await shown(client) == expected
    assert [name for name, _, _ in expected] == ["find_order", "cancel_order"]
    assert said(await client.call_tool("find_order", ORDER)) == "kettle, pending"
    assert not (await client.call_tool("cancel_order", ORDER)).is_error
    assert said(await client.call_tool("find_order", ORDER)) == "kettle, cancelled"
    again = await client.call_tool("cancel_order", ORDER)
    assert (again.is_error, said(again)) == (True, "order is cancelled")
    hidden = await client.call_tool("load_orders", {"orders": {}})
    assert hidden.is_error
    assert "unknown tool 'load_orders'" in said(hidden)


@every_template
async def test_over_stdio_a_process_is_a_session(tmp_path: Path, template: str) -> None:
    write(tmp_path / "shop", template)
    domain = load_domain(tmp_path / "shop")
    async with Client(stdio_client(program(str(tmp_path / "shop")))) as client:
        await cancels_an_order(client, domain)


def test_what_a_tool_prints_stays_out_of_the_protocol(tmp_path: Path) -> None:
    write(tmp_path / "shop", "python")
    tools = tmp_path / "shop" / "tools.py"
    text = tools.read_text()
    doc = '"""Item and status of an order."""\n'
    assert doc in text
    noise = '        print("hi")\n        import os; os.write(1, b"raw")\n'
    tools.write_text(text.replace(doc, doc + noise))
    command = [sys.executable, "-m", "muarl.cli", "serve", str(tmp_path / "shop")]
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}}
    hello["clientInfo"] = {"name": "test", "version": "0"}
    lines = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "find_order", "arguments": ORDER}},
    ]
    with subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in lines:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **line}) + "\n")
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        rest, errors = process.communicate(timeout=60)
    assert [answer["id"] for answer in answers] == [1, 2]
    assert rest == ""
    assert "hi\n" in errors
    assert "raw" in errors


@every_template
async def test_over_http_each_session_has_a_fresh_world(tmp_path: Path, template: str) -> None:
    write(tmp_path / "shop", template)
    domain = load_domain(tmp_path / "shop")
    async with over_http(domain) as url:
        async with Client(url) as first, Client(url) as second:
            await cancels_an_order(first, domain)
            assert said(await second.call_tool("find_order", ORDER)) == "kettle, pending"
        async with Client(url) as third:
            assert said(await third.call_tool("find_order", ORDER)) == "kettle, pending"


@pytest.fixture
def shop(tmp_path: Path) -> Domain:
    write(tmp_path / "shop", "sql")
    return load_domain(tmp_path / "shop")


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


async def test_who_comes_by_another_name_or_from_another_site_begins_nothing(shop: Domain) -> None:
    begun = 0

    @asynccontextmanager
    async def counted() -> AsyncIterator[object]:
        nonlocal begun
        begun += 1
        async with fresh_sessions(shop, None)() as session:
            yield session

    port = 9
    sessions = HttpSessions(lambda: tools_as_server("shop", counted), loopback_only(port))  # type: ignore[arg-type]
    transport = httpx2.ASGITransport(sessions)
    async with sessions.open(), httpx2.AsyncClient(transport=transport) as http:

        async def status(url: str, method: str = "POST", **headers: str) -> int:
            body = INITIALIZE if method == "POST" else None
            return (
                await http.request(method, url, json=body, headers={**ACCEPT, **headers})
            ).status_code

        here = f"http://127.0.0.1:{port}/mcp"
        assert await status(f"http://evil.example:{port}/mcp") == 421
        assert await status("http://127.0.0.1:10/mcp") == 421
        assert await status(here, origin="https://evil.example") == 403
        assert await status(here, **{"content-type": "text/plain"}) == 400
        assert await status(here, "GET") == 400
        assert await status(f"http://127.0.0.1:{port}/other") == 404
        assert await status(here, **{"mcp-session-id": "made-up"}) == 404
        assert await status(here, **{"mcp-protocol-version": "2026-07-28"}) == 400
        assert begun == 0
        assert await status(here) == 200
        assert begun == 1


async def test_a_session_ends_when_its_client_does_or_nobody_uses_it(shop: Domain) -> None:
    ended = anyio.Event()

    @asynccontextmanager
    async def watched() -> AsyncIterator[object]:
        async with fresh_sessions(shop, None)() as session:
            yield session
        ended.set()

    for how in ("deleted", "idle"):
        ended = anyio.Event()
        sessions = HttpSessions(
            lambda: tools_as_server("shop", watched),  # type: ignore[arg-type]
            loopback_only(9),
            max_sessions=1,
            idle_s=0.05 if how == "idle" else 1e6,
        )
        transport = httpx2.ASGITransport(sessions)
        async with sessions.open(), httpx2.AsyncClient(transport=transport) as http:
            begun = await http.post("http://127.0.0.1:9/mcp", json=INITIALIZE, headers=ACCEPT)
            name = {"mcp-session-id": begun.headers["mcp-session-id"]}
            if how == "deleted":
                full = await http.post("http://127.0.0.1:9/mcp", json=INITIALIZE, headers=ACCEPT)
                assert full.status_code == 503
                await http.delete("http://127.0.0.1:9/mcp", headers={**ACCEPT, **name})
            with anyio.fail_after(60):
                await ended.wait()
            gone = await http.post(
                "http://127.0.0.1:9/mcp", json=INITIALIZE, headers={**ACCEPT, **name}
            )
            assert gone.status_code == 404


async def test_a_server_that_does_not_start_is_said_to_the_client(tmp_path: Path) -> None:
    write(tmp_path / "shop", "server")
    (tmp_path / "shop" / "server.py").write_text("raise SystemExit('no disk')")
    async with over_http(load_domain(tmp_path / "shop")) as url:
        with pytest.raises((MCPError, ExceptionGroup)):
            async with Client(url):
                pass
        async with httpx2.AsyncClient() as http:
            answer = await http.post(url, json=INITIALIZE, headers=ACCEPT)
            assert answer.status_code == 503
            assert "no disk" in answer.json()["error"]["message"]


async def test_a_tasks_world_is_served_and_stdout_holds_nothing_but_protocol(
    tmp_path: Path,
) -> None:
    write(tmp_path / "shop", "python")
    tools = tmp_path / "shop" / "tools.py"
    noisy = tools.read_text().replace(
        "order = find(order_id)", "print('hi'); order = find(order_id)"
    )
    tools.write_text(f"print('imported')\n{noisy}")
    task = load_domain(tmp_path / "shop").tasks("train")[0]
    (order_id, order), *_ = task.world["orders"].items()
    process = program(str(tmp_path / "shop"), "--task", task.id)
    async with Client(stdio_client(process)) as client:
        found = await client.call_tool("find_order", {"order_id": order_id})
        assert said(found) == f"{order['item']}, {order['status']}"


def test_what_was_asked_is_answered_though_the_client_says_no_more(tmp_path: Path) -> None:
    """As where a file of requests is piped in: the last one takes longer than to read on to the end."""
    write(tmp_path / "shop", "python")
    tools = tmp_path / "shop" / "tools.py"
    doc = '        """Item and status of an order."""\n'
    wait = "        import anyio; await anyio.sleep(0.3)\n"
    tools.write_text(tools.read_text().replace(doc, doc + wait))
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}}
    find = {"name": "find_order", "arguments": ORDER}
    asked = [
        {
            "id": 1,
            "method": "initialize",
            "params": hello | {"clientInfo": {"name": "t", "version": "0"}},
        },
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": find},
        {"id": 3, "method": "tools/call", "params": find},
        {"method": "notifications/cancelled", "params": {"requestId": 3}},
        {"id": 4, "method": "tools/call", "params": find},
    ]
    params = program(str(tmp_path / "shop"))
    ended = subprocess.run(
        [params.command, *params.args],
        env=params.env,
        input="".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in asked),
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [answer["id"] for answer in answers if "result" in answer] == [1, 2, 4]
    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_verb_serves_over_http_and_ends_by_ctrl_c(tmp_path: Path) -> None:
    write(tmp_path / "shop", "sql")
    params = program(str(tmp_path / "shop"), "--http", "0")
    with subprocess.Popen(
        [params.command, *params.args],
        env=params.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as serving:
        assert serving.stdout is not None
        url = serving.stdout.readline().strip()
        with httpx2.Client() as http:
            begun = http.post(url, json=INITIALIZE, headers=ACCEPT)
        assert begun.status_code == 200
        serving.send_signal(signal.SIGINT)
        out, errors = serving.communicate(timeout=60)
    assert (serving.returncode, out, errors) == (130, "", "muarl: interrupted\n")


def test_ctrl_c_ends_a_session_over_stdio_that_nobody_speaks_in(tmp_path: Path) -> None:
    write(tmp_path / "shop", "sql")
    params = program(str(tmp_path / "shop"))
    with subprocess.Popen(
        [params.command, *params.args],
        env=params.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as serving:
        assert serving.stdin is not None
        assert serving.stdout is not None
        serving.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        serving.stdin.flush()
        assert '"id":1' in serving.stdout.readline()
        serving.send_signal(signal.SIGINT)
        out, errors = serving.communicate(timeout=60)
    assert (serving.returncode, out, errors) == (130, "", "muarl: interrupted\n")


def test_what_is_not_there_is_named(
    muarl: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("shop"), "sql")
    muarl("serve", "shop", "--task", "cancel-radios").refuses(2, "did you mean 'cancel-radio'?")
    muarl("serve", "nowhere").refuses(2, "nowhere")
    muarl("serve", "shop", "--http", "70000").refuses(2, "from 0 to 65535", lines=2)
    muarl("serve", "shop", "--http", "x").refuses(2, "0 to 65535, got 'x'", lines=2)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        muarl("serve", "shop", "--http", port).refuses(1, f"port {port}", "choose another")


def test_a_world_that_only_a_task_brings_in_step_is_refused_before_anybody_comes(
    muarl: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was served, and every call was answered with an internal error; handset is such a domain."""
    write_phones(tmp_path, domain=PHONES.replace("{line: L1,", '{line: "",'))
    monkeypatch.chdir(tmp_path)
    muarl("serve", ".").refuses(2, "such as --task both: ", "sync: 'lines.' is not in the world")


async def test_the_world_of_no_task_is_in_step_before_the_first_call(tmp_path: Path) -> None:
    sees = TOOLS.replace('world["lines"][line]["active"]}', 'world["device"]["service"]}')
    dark = PHONES.replace("service: true", "service: false")
    domain = write_phones(tmp_path, domain=dark, tools=sees)
    async with fresh_sessions(domain, None)() as session:
        assert "true" in (await session.call(use("get_line", line="L1"))).content


HALF = (
    "POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    "Accept: application/json, text/event-stream\r\nContent-Length: 500\r\n\r\n{{"
)


async def test_requests_sent_by_halves_hold_up_nobody_and_are_ended(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "shop", "python")
    async with over_http(load_domain(tmp_path / "shop"), max_sessions=2, body_s=1.0) as url:
        host = url.partition("://")[2].partition("/")[0]
        streams = []
        for _ in range(6):
            stream = await anyio.connect_tcp(*host.split(":"))  # type: ignore[arg-type]
            await stream.send(HALF.format(host=host).encode())
            streams.append(stream)
        async with Client(url) as client:
            assert (await client.list_tools()).tools
        await streams.pop().aclose()
        for stream in streams:
            assert b" 408 " in await stream.receive()
            await stream.aclose()
    assert not [record for record in caplog.records if record.exc_info]


WHOLE = "GET /else HTTP/1.1\r\nHost: {host}\r\n\r\n"


@pytest.mark.parametrize(
    ("before", "sent"),
    [("", ""), ("", "POST /mcp HTTP/1.1\r\nHost:"), (WHOLE, "POST"), (WHOLE, "GET / HTTP/1.1\r\n")],
    ids=["nothing", "half a head", "half a second head", "a second line"],
)
async def test_a_head_that_is_sent_by_halves_is_ended(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, before: str, sent: str
) -> None:
    write(tmp_path / "shop", "python")
    async with over_http(load_domain(tmp_path / "shop"), head_s=0.5) as url:
        host = url.partition("://")[2].partition("/")[0]
        stream = await anyio.connect_tcp(*host.split(":"))  # type: ignore[arg-type]
        async with stream:
            if before:
                await stream.send(before.format(host=host).encode())
                assert b" 404 " in await stream.receive()
            if sent:
                await stream.send(sent.encode())
            with anyio.fail_after(60):  # uvicorn's own end of an unused connection says no 408
                assert b" 408 " in await stream.receive()
                with pytest.raises(anyio.EndOfStream):
                    await stream.receive()
    assert not [record for record in caplog.records if record.exc_info]


async def test_a_request_that_takes_longer_than_its_head_may_is_answered(tmp_path: Path) -> None:
    write(tmp_path / "shop", "python")
    async with over_http(load_domain(tmp_path / "shop"), head_s=1.0, body_s=1.5) as url:
        host = url.partition("://")[2].partition("/")[0]
        async with await anyio.connect_tcp(*host.split(":")) as stream:  # type: ignore[arg-type]
            await stream.send(HALF.format(host=host).encode())
            assert b"the rest did not come within 1.5 s" in await stream.receive()


FIRST = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    },
}


@pytest.mark.parametrize("broken", ["a client that went", "a full disk"])
def test_a_client_that_cannot_be_reached_is_said_in_a_line(tmp_path: Path, broken: str) -> None:
    write(tmp_path / "shop", "sql")
    (tmp_path / "first").write_text(json.dumps(FIRST) + "\n")
    reading, writing = os.pipe()
    os.close(reading)
    full = os.open("/dev/full", os.O_WRONLY)
    given = os.open(tmp_path / "first", os.O_RDONLY)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "muarl.cli", "serve", str(tmp_path / "shop")],
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
            stdin=given,
            stdout=writing if "went" in broken else full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=240,
            check=False,
        )
    finally:
        for number in (writing, full, given):
            os.close(number)
    assert ended.returncode == 1, ended.stderr
    assert ended.stderr.startswith("muarl: the client cannot be reached over stdin and stdout: ")
    assert len(ended.stderr.splitlines()) == 1
