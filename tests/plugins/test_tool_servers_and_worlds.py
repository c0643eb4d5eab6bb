"""Tool servers and worlds of a package: in dialogues, and held to the laws of their kinds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from plugin_kit import Install
from plugin_packages import shop
from spec_files import said, spoil

from muarl.cli import main
from muarl.domain import Domain, load_domain
from muarl.errors import SpecError, ToolServerError
from muarl.messages import ToolCall, ToolResult
from muarl.record import Episode
from muarl.testing import play_agents, tool_server_laws, world_laws
from muarl.world import World

POINTS = ("muarl.worlds: orders = orders", "muarl.tool_servers: office = server")


@pytest.fixture
def domain(folder: Path) -> Callable[..., Domain]:
    """Loads a domain with the world and the tool server of the package."""

    def load(tools: str = "", world: str = "{orders: {orders: 2}}") -> Domain:
        path = folder / "domain.yaml"
        spoil(path, "  python: tools.py:serve\n", f"  plugin: {{office: {{done: Now}}}}\n{tools}")
        spoil(
            path,
            "  data:\n    orders:\n      W1: {status: pending}\n",
            f"  plugin: {world}\n",
        )
        spoil(path, "reward:", "expert: expert.py:Expert\nreward:")
        return load_domain(folder)

    return load


def played(domain: Domain) -> Episode:
    async def play() -> list[Episode]:
        tasks = domain.tasks("train")
        return await play_agents(domain, tasks, lambda task, rng: domain.expert(task, {}, rng))

    (episode,) = anyio.run(play)
    return episode


def test_they_take_part_in_dialogues(domain: Callable[..., Domain], install: Install) -> None:
    install(shop(), *POINTS)
    episode = played(domain())
    assert episode.reward == 1
    (result,) = [result for turn in episode.turns for result in turn.results]
    assert result == ToolResult("call_1_0", "cancel", "Now cancelled")
    assert [str(change) for change in episode.changes] == [
        "orders.W1.status: 'pending' -> 'cancelled'"
    ]


def test_check_proves_such_a_domain_and_says_who_provides_what(
    domain: Callable[..., Domain],
    install: Install,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    install(shop(), *POINTS)
    domain("  external: false\n")
    assert main(["check", str(folder)]) == 0
    out = capsys.readouterr().out
    assert (
        f"  tool server 'office' is provided by shop-plugins 0.1 ({folder}/domain.yaml:6:11)" in out
    )
    assert f"  world 'orders' is provided by shop-plugins 0.1 ({folder}/domain.yaml:10:11)" in out


def test_they_keep_the_laws_of_their_kinds(domain: Callable[..., Domain], install: Install) -> None:
    install(shop(), *POINTS)
    loaded = domain(world="{orders: {orders: 9}}")
    assert type(loaded.base.fork({"orders": {"W1": {"status": "sent"}}})).__name__ == "Orders"
    assert loaded.base.open() == [f"W{n}" for n in range(1, 10)]  # type: ignore[attr-defined]

    def write(world: World, rng: Any) -> None:
        name = rng.choice(list(world["orders"]))
        world["orders"][name]["status"] = rng.choice(["sent", "lost", "pending"])
        world["orders"].pop(f"W{rng.randrange(9)}", None)
        world["orders"][f"N{rng.randrange(99)}"] = {"status": "new", "parts": [1, 2]}

    world_laws(loaded.base, write)
    calls = [
        ToolCall("a", "look", {"order_id": "W1"}),
        ToolCall("b", "cancel", {"order_id": "W1"}),
        ToolCall("c", "look", {"order_id": "W1"}),
        ToolCall("d", "cancel", {"order_id": "X"}),
    ]
    anyio.run(tool_server_laws, loaded.server, loaded.base, calls)


async def call(domain: Domain, *arguments: Any) -> ToolResult:
    async with domain.server.session(domain.base.fork()) as session:
        return await session.call(ToolCall("1", *arguments))


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize(
    ("tools", "arguments", "answer"),
    [
        ("", ("look", {"order_id": "W1"}), "Now pending"),
        ("", ("look", {"order_id": "X"}), "Error: no such order"),
        ("", ("loook", {}), "Error: unknown tool 'loook'; tools: cancel, look"),
        ("  hidden: [look]\n", ("look", {}), "Error: unknown tool 'look'; tools: cancel"),
        (
            "  max_result_chars: 5\n",
            ("look", {"order_id": "W1"}),
            "Now p\n[cut: the first 5 of 11 characters]",
        ),
        ("", ("look", {}, "no JSON"), "Error: no JSON"),
        (
            "",
            ("look", {"n": 2**64}),
            "Error: the arguments cannot be sent as JSON: n is an integer beyond 64 bits",
        ),
    ],
)
def test_a_tool_server_is_held_to_what_the_domain_says(
    domain: Callable[..., Domain],
    install: Install,
    tools: str,
    arguments: tuple[Any, ...],
    answer: str,
    backend: str,
) -> None:
    install(shop(), *POINTS)
    result = anyio.run(call, domain(tools), *arguments, backend=backend)
    assert result.as_message().content == answer


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize(
    ("code", "tools", "problem"),
    [
        (
            {"cancel": "1 / 0"},
            "",
            (
                "the tool server 'office' crashed in a call of 'look': ZeroDivisionError: division by "
                "zero (MODULE:LINE, in call). Let it answer with an error what the policy is to read, or "
                "set tools.on_crash to answer"
            ),
        ),
        (
            {"cancel": "return 'ok'"},
            "",
            (
                "crashed in a call of 'look': TypeError: it returned 'ok'; expected a "
                "muarl.plugins.ToolResult with a text"
            ),
        ),
        (
            {"cancel": "await anyio.sleep_forever()"},
            "  call_timeout_s: 0.01\n",
            "did not answer a call of 'look' within 0.01 s (tools.call_timeout_s)",
        ),
        (
            {"start": "await anyio.sleep_forever()"},
            "  start_timeout_s: 0.01\n",
            "did not start within 0.01 s (tools.start_timeout_s)",
        ),
        ({"build": "{}['x']"}, "", "could not be built: KeyError: 'x' (MODULE:LINE, in __init__)"),
        ({"start": "{}['x']"}, "", "did not start: KeyError: 'x' (MODULE:LINE, in session)"),
        ({"end": "raise SystemExit"}, "", "failed: SystemExit (MODULE:LINE, in session)"),
        ({"cancel": "raise ToolServerError('the till is shut')"}, "", "the till is shut"),
        ({}, "  hidden: [lok]\n", "has no tool 'lok' (tools.hidden); did you mean 'look'?"),
    ],
)
def test_what_a_tool_server_does_wrong_is_its_fault(
    domain: Callable[..., Domain],
    install: Install,
    tmp_path: Path,
    code: dict[str, str],
    tools: str,
    problem: str,
    backend: str,
) -> None:
    name = install(shop(**code), *POINTS)
    (module,) = tmp_path.glob(f"*/{name}.py")
    with pytest.raises(ToolServerError) as caught:
        anyio.run(call, domain(tools), "look", {"order_id": "W1"}, backend=backend)
    lines = module.read_text().splitlines()
    line = next((n for n, text in enumerate(lines, 1) if text.strip() in code.values()), 0)
    expected = problem.replace("MODULE", str(module)).replace("LINE", str(line))
    assert expected in str(caught.value)


def test_a_crash_may_be_an_answer(domain: Callable[..., Domain], install: Install) -> None:
    install(shop(cancel="1 / 0"), *POINTS)
    result = anyio.run(call, domain("  on_crash: answer\n"), "look", {"order_id": "W1"})
    assert result == ToolResult("1", "look", "tool 'look' failed", is_error=True)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_what_ends_a_dialogue_is_not_blamed_on_the_tool_server(
    domain: Callable[..., Domain], install: Install, backend: str
) -> None:
    install(shop(), *POINTS)
    loaded = domain()

    async def broken_off() -> None:
        async with loaded.server.session(loaded.base.fork()):
            raise LookupError("of the dialogue")

    async def cancelled() -> bool:
        with anyio.CancelScope() as scope:
            async with loaded.server.session(loaded.base.fork()):
                scope.cancel()
                await anyio.sleep_forever()
        return scope.cancelled_caught

    with pytest.raises(LookupError, match="of the dialogue"):
        anyio.run(broken_off, backend=backend)
    assert anyio.run(cancelled, backend=backend)


def test_what_only_mcp_servers_have_is_refused(
    domain: Callable[..., Domain], install: Install
) -> None:
    install(shop(), *POINTS)
    with pytest.raises(SpecError) as caught:
        domain("  state: {orders: {call: look}}\n")
    assert said(caught.value) == [
        (
            "6:3: 'tools': state is for MCP servers; one of a package begins with the dialogue's world "
            "and writes into it itself"
        )
    ]


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        ("3", "made a int; the world must be a mapping at the top"),
        ("{'x': {1}}", "made a world that is not JSON: x is of type set"),
        ("{}['x']", "raised KeyError: 'x' (MODULE:2, in build)"),
        (
            "Lost({})",
            "made a Lost whose `fork` gives a World; override `fresh`",
        ),
    ],
)
def test_a_world_that_is_none_is_refused_where_it_is_named(
    domain: Callable[..., Domain], install: Install, tmp_path: Path, made: str, problem: str
) -> None:
    name = install(
        f"def build(options, folder):\n    return {made}\n"
        "from muarl.plugins import *\n"
        "class Lost(World):\n    def fresh(self):\n        return World({})\n"
        "orders = WorldPlugin(Options, build)\n",
        POINTS[0],
    )
    install(shop(), POINTS[1], package="office")
    (module,) = tmp_path.glob(f"*/{name}.py")
    loaded = domain(world="orders")
    with pytest.raises(SpecError) as caught:
        loaded.base  # noqa: B018
    expected = f"the world 'orders' of shop-plugins 0.1 {problem}"
    (found,) = said(caught.value)
    assert found.startswith("9:11: " + expected.replace("MODULE", str(module)))
