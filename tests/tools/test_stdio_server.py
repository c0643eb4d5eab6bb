"""Servers in processes of their own: what they get, how they break, and that they are gone."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from tool_kit import call, children, no_python, time_to_start_s

from muarl.errors import ToolServerError
from muarl.spec.tools import CommandToolsSpec
from muarl.testing.servers import WORLD_RESOURCE, Fault, broken_server, sound_server
from muarl.tools import tool_server
from muarl.tools.carrier import Limits
from muarl.tools.protocol import ToolServer
from muarl.tools.stdio import MirrorToolServer, StdioToolServer
from muarl.world import World, diff, plain

pytestmark = pytest.mark.anyio


def base() -> World:
    return World({"orders": {"W1": {"status": "pending", "items": [1, 2]}}, "open": True})


async def test_a_server_gets_the_dialogues_world_and_its_writes_come_back(tmp_path: Path) -> None:
    server = MirrorToolServer(StdioToolServer(sound_server(), tmp_path), WORLD_RESOURCE)
    mine = base().fork({"orders": {"W1": {"status": "shipped"}}})
    before = mine.fork()
    async with server.session(mine) as session:
        assert [tool.name for tool in session.tools] == ["put", "get", "environment", "folder"]
        assert session.tools[1].parameters == {
            "type": "object",
            "properties": {"key": {"type": "string"}},
        }
        order = await session.call(call("get", key="orders"))
        assert json.loads(order.content) == {"W1": {"status": "shipped", "items": [1, 2]}}
        assert (await session.call(call("put", key="open", value={"a": [1]}))).content == "ok"
        assert [str(c) for c in diff(before, mine)] == ["open: True -> {'a': [1]}"]
        assert (await session.call(call("put", key="open", value=False))).content == "ok"
    assert plain(mine) == {**plain(before), "open": False}
    assert not children()


async def test_processes_of_two_dialogues_share_nothing(tmp_path: Path) -> None:
    server = MirrorToolServer(StdioToolServer(sound_server(), tmp_path), WORLD_RESOURCE)
    worlds = [base().fork({"n": n}) for n in range(3)]

    async def talk(world: World) -> None:
        async with server.session(world) as session:
            before = await session.call(call("get", key="n"))
            assert before.content == str(world["n"])
            await session.call(call("put", key="n", value=world["n"] + 10))

    async with anyio.create_task_group() as dialogues:
        for world in worlds:
            dialogues.start_soon(talk, world)
    assert [world["n"] for world in worlds] == [10, 11, 12]


async def test_without_a_world_resource_the_world_is_left_alone(tmp_path: Path) -> None:
    world = base()
    async with StdioToolServer(sound_server(), tmp_path).session(world) as session:
        await session.call(call("put", key="open", value=False))
    assert world == base()


async def test_a_server_sees_no_secret_and_not_our_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY", "s3cret")
    monkeypatch.setenv("HOME", "/home/of/somebody")
    async with StdioToolServer(sound_server(), tmp_path).session(base()) as session:
        environment = json.loads((await session.call(call("environment"))).content)
    assert "s3cret" not in str(environment)
    assert "PATH" in environment
    assert environment["HOME"] != "/home/of/somebody"
    assert not await anyio.Path(environment["HOME"]).exists()
    allowed = {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "MUARL_WORLD", "LC_CTYPE"}
    assert set(environment) <= allowed | {"__CF_USER_TEXT_ENCODING"}


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("raise_at_start", ["did not start: it ended", "stderr ends", "RuntimeError: no database"]),
        ("hang_at_start", ["did not start within {start} s (tools.start_timeout_s)"]),
        ("rubbish", ["did not start within {start} s", "printed 'Listening on port 8080' to std"]),
        ("die_in_call", ["died in a call of 'get'; its stderr ends: the disk is full"]),
        ("raise_in_call", ["crashed in a call of 'get'", "set tools.on_crash to answer"]),
        ("half_a_message", ["died in a call of 'get'; its stderr ends: killed while it wrote"]),
        ("invalid_utf8", ["answered a call of 'get' with a message that cannot be read; it prin"]),
        ("half_a_character", ["answered a call of 'get' with a message that cannot be read"]),
        ("hang_in_call", ["did not answer a call of 'get' within 0.3 s (tools.call_timeout_s)"]),
        ("other_world", ["does not start from the dialogue's world (", "MUARL_WORLD"]),
        ("no_world", ["refused a read of 'world://state' (tools.world_resource)"]),
        ("not_json", ["answered a read of 'world://state' (tools.world_resource) without valid"]),
    ],
)
async def test_a_broken_server_is_one_clear_error_and_leaves_no_process(
    tmp_path: Path, fault: Fault, says: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    limits = Limits(
        start_timeout_s={"hang_at_start": 0.5, "rubbish": time_to_start_s()}.get(fault, 60),
        call_timeout_s=0.3 if fault == "hang_in_call" else 60,
    )
    server: ToolServer = StdioToolServer(broken_server(fault), tmp_path, limits=limits)
    if fault != "hang_in_call":
        server = MirrorToolServer(server, WORLD_RESOURCE)
    with pytest.raises(ToolServerError) as caught:
        async with server.session(base()) as session:
            await session.call(call("get", key="open"))
    message = str(caught.value)
    for part in says:
        assert part.replace("{start}", f"{limits.start_timeout_s:g}") in message
    assert "\n" not in message
    assert "Traceback" not in message
    assert not children()
    out, err = capfd.readouterr()
    assert out + err == ""


async def test_a_result_of_megabytes_is_cut_and_the_session_goes_on(tmp_path: Path) -> None:
    server = StdioToolServer(
        broken_server("oversized_result"), tmp_path, limits=Limits(max_result_chars=10)
    )
    async with server.session(base()) as session:
        for _ in range(2):
            result = await session.call(call("get", key="open"))
            assert result.content == "true xxxxx\n[cut: the first 10 of 5000005 characters]"
            assert not result.is_error


async def test_a_server_that_ignores_the_end_of_its_input_and_sigterm_is_killed(
    tmp_path: Path,
) -> None:
    async with StdioToolServer(broken_server("outlive"), tmp_path).session(base()) as session:
        assert len(children()) == 1
        await session.call(call("get", key="open"))
    assert not children()


async def test_what_a_server_started_and_left_behind_goes_with_it_L7(tmp_path: Path) -> None:
    # It ends by itself at the end of its input, as the SDK expects; a child of its own does not.
    starts = "import os, subprocess, sys; p = subprocess.Popen(['sleep', '600']); "
    notes = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(p.pid)); "
    serves = "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    _, *script = sound_server()
    command = [sys.executable, "-c", starts + notes + serves, *script]
    async with StdioToolServer(command, tmp_path).session(base()) as session:
        await session.call(call("get", key="open"))
        left = int((tmp_path / "pid").read_text())
        assert is_running(left)
    with anyio.fail_after(60):
        while is_running(left):  # noqa: ASYNC110 - killed, but perhaps not quite gone
            await anyio.sleep(0.01)
    assert not children()


def is_running(pid: int) -> bool:
    """Whether a process is alive; one that its parent has not asked about is not."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False)
    return state.stdout.strip()[:1] not in (b"", b"Z")


async def test_a_command_that_does_not_exist_is_named(tmp_path: Path) -> None:
    server = StdioToolServer(["no-such-program", "--fast"], tmp_path)
    with pytest.raises(ToolServerError, match=r"`no-such-program --fast` did not start: .*No such"):
        async with server.session(base()):
            pytest.fail("it started")


async def test_arguments_that_are_no_json_do_not_break_the_connection(tmp_path: Path) -> None:
    async with StdioToolServer(sound_server(), tmp_path).session(base()) as session:
        assert (await session.call(call("get", key="\ud800"))).is_error
        assert (await session.call(call("get", key="nowhere"))).is_error
        assert (await session.call(call("get", key="open"))).content == "true"


async def test_after_its_death_every_call_says_so(tmp_path: Path) -> None:
    async with StdioToolServer(broken_server("die_in_call"), tmp_path).session(base()) as session:
        for _ in range(2):
            with pytest.raises(ToolServerError, match="died in a call"):
                await session.call(call("get", key="open"))


async def test_without_room_for_its_folder_a_server_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with pytest.raises(ToolServerError, match=r"no folder .*gone: No such file.* set TMPDIR"):
        async with StdioToolServer(sound_server(), tmp_path).session(base()):
            pytest.fail("it started")


async def test_a_server_whose_folder_was_cleaned_away_still_has_last_words(tmp_path: Path) -> None:
    server = StdioToolServer(broken_server("die_in_call"), tmp_path)
    async with server.session(base()) as session:
        (child,) = children()
        home = Path(f"/proc/{child}/environ").read_bytes().split(b"HOME=")[1].split(b"\0")[0]
        shutil.rmtree(home)
        with pytest.raises(ToolServerError, match="its stderr ends: the disk is full"):
            await session.call(call("get", key="open"))


async def test_an_error_of_the_dialogue_passes_unchanged(tmp_path: Path) -> None:
    mine = KeyError("mine")
    with pytest.raises(KeyError) as caught:
        async with StdioToolServer(sound_server(), tmp_path).session(base()):
            raise mine
    assert caught.value is mine
    assert not children()


async def test_a_server_on_the_sdk_speaks_the_newest_protocol(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(
        "import json, os\n"
        "from mcp.server import MCPServer\n"
        "from mcp.server.mcpserver.exceptions import ToolError\n"
        "world = json.load(open(os.environ['MUARL_WORLD']))\n"
        "server = MCPServer('orders', log_level='CRITICAL')\n"
        "@server.tool()\n"
        "async def cancel(order: str) -> dict:\n"
        "    if order not in world['orders']:\n"
        "        raise ToolError(f'no order {order}')\n"
        "    world['orders'][order]['status'] = 'cancelled'\n"
        "    return world['orders'][order]\n"
        "@server.tool()\n"
        "async def crash() -> str:\n"
        "    raise RuntimeError('our secret')\n"
        "@server.resource('world://state')\n"
        "async def state() -> str:\n"
        "    return json.dumps(world)\n"
        "server.run()\n",
        encoding="utf-8",
    )
    command = [sys.executable, "server.py"]
    server = MirrorToolServer(StdioToolServer(command, tmp_path), WORLD_RESOURCE)
    world = base()
    async with server.session(world) as session:
        good = await session.call(call("cancel", order="W1"))
        assert good.content == '{"status":"cancelled","items":[1,2]}'
        assert (await session.call(call("cancel", order="W9"))).content == "no order W9"
        wrong = await session.call(call("cancel"))
        assert wrong.content == "wrong arguments: order: Field required"
        with pytest.raises(ToolServerError, match="crashed in a call of 'crash'"):
            await session.call(call("crash"))
    assert world["orders"]["W1"]["status"] == "cancelled"


async def test_home_files_environment_and_secrets_reach_the_process_and_secrets_stay_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUR_TOKEN", "s3cret-t0ken")
    (tmp_path / "seed" / "below").mkdir(parents=True)
    (tmp_path / "seed" / "below" / "rows.csv").write_text("1,2")
    spec = CommandToolsSpec(
        command=sound_server(),
        env={"DATA": "{home}/below/rows.csv"},
        secrets={"THEIR_TOKEN": "OUR_TOKEN"},
        files="seed",
    )
    server = tool_server([spec], tmp_path, no_python)
    async with server.session(base()) as session:
        environment = json.loads((await session.call(call("environment"))).content)
        (child,) = children()
        real = Path(f"/proc/{child}/environ").read_bytes()
        data = Path(environment["DATA"])
        assert data.read_text() == "1,2"
        assert data.is_relative_to(environment["HOME"])
    assert environment["THEIR_TOKEN"] == "[secret]"
    assert b"THEIR_TOKEN=s3cret-t0ken\0" in real
    assert not data.exists()


async def test_the_python_of_a_command_is_the_one_that_runs_muarl(tmp_path: Path) -> None:
    _, *script = sound_server()
    async with StdioToolServer(["python", *script], tmp_path).session(base()):
        (shell,) = children()
        child = Path(f"/proc/{shell}/task/{shell}/children").read_text().strip()
        assert Path(f"/proc/{child}/exe").resolve() == Path(sys.executable).resolve()


def odd_server(folder: Path, listed: str, answer: str) -> StdioToolServer:
    """One that lists tools, and answers all else, as these expressions of Python say.

    Args:
        folder: Where it is written.
        listed: The result of `tools/list`; it may count the `lists` so far.
        answer: What it answers anything else: a result or an error.
    """
    (folder / "server.py").write_text(
        "import json, sys\n"
        "lists = 0\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    if asked.get('method') == 'initialize':\n"
        "        result = {'protocolVersion': asked['params']['protocolVersion'],\n"
        "            'capabilities': {'tools': {}}, 'serverInfo': {'name': 'x', 'version': '1'}}\n"
        "        answer = {'result': result}\n"
        "    elif asked.get('method') == 'tools/list':\n"
        "        lists += 1\n"
        f"        answer = {{'result': {listed}}}\n"
        "    else:\n"
        f"        answer = {answer}\n"
        "    if 'id' in asked:\n"
        "        print(json.dumps({'jsonrpc': '2.0', 'id': asked['id'], **answer}), flush=True)\n"
    )
    return StdioToolServer(["python", "server.py"], folder)


NO_METHOD = "{'error': {'code': -32601, 'message': 'no such method'}}"


async def test_an_error_of_the_code_that_the_sdk_has_for_a_closed_connection_is_no_death(
    tmp_path: Path,
) -> None:
    """-32000 is the first of JSON-RPC's codes that servers may give a meaning of their own."""
    listed = "{'tools': [{'name': 'put', 'inputSchema': {'type': 'object'}}]}"
    server = odd_server(tmp_path, listed, "{'error': {'code': -32000, 'message': 'no such key'}}")
    async with server.session(base()) as session:
        for _ in range(2):
            result = await session.call(call("put"))
            assert (result.content, result.is_error) == ("no such key", True)


async def test_a_list_of_tools_without_end_is_said(tmp_path: Path) -> None:
    page = "[{'name': f'put{lists}_{n}', 'inputSchema': {'type': 'object'}} for n in range(500)]"
    server = odd_server(tmp_path, f"{{'tools': {page}, 'nextCursor': str(lists)}}", NO_METHOD)
    with pytest.raises(ToolServerError, match=r"did not start: it lists more than 4,096 tools"):
        async with server.session(base()):
            raise AssertionError("it started")


async def test_a_tool_that_is_none_of_the_protocol_is_said_without_a_dump_of_the_validator(
    tmp_path: Path,
) -> None:
    listed = "{'tools': [{'name': 'put', 'inputSchema': {'type': 'objekt'}}]}"
    with pytest.raises(ToolServerError) as refused:
        async with odd_server(tmp_path, listed, NO_METHOD).session(base()):
            pytest.fail("it started")
    assert str(refused.value) == (
        "tool server `python server.py` did not start: it lists what is no tool of MCP "
        "(tools.0.inputSchema.type: Input should be 'object')"
    )
