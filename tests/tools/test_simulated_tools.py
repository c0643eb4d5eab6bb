"""Tools that an LLM simulates: what contradicts the dialogue's memory is not believed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from muarl.errors import ToolServerError
from muarl.http.chat_client import ChatClient
from muarl.http.transport import HttpReply, HttpRequest
from muarl.messages import ToolCall, ToolResult
from muarl.spec.simulated import SimulatorLlmSpec
from muarl.tools.memory import MemoryToolServer
from muarl.tools.simulated import simulated_server
from muarl.world import World, plain

pytestmark = pytest.mark.anyio

SPEC = SimulatorLlmSpec.model_validate(
    {
        "base_url": "http://127.0.0.1:1/v1",
        "model": "m",
        "tries": 2,
        "tools": {
            "look": {"description": "Status of an order.", "parameters": {"order_id": {}}},
            "cancel": {
                "description": "Cancel a pending order.",
                "parameters": {"order_id": {}},
                "writes": True,
            },
        },
    }
)
MEMORY = {"orders": {"W41": {"status": "pending", "item": "lamp"}}}
READ = {"path": "orders.W41.status", "value": "pending"}
CANCELLED = {"path": "orders.W41.status", "before": "pending", "after": "cancelled"}


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Simulator:
    """An endpoint that answers from a list, and keeps what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[Any] = []

    async def __call__(self, request: HttpRequest) -> HttpReply:
        assert request.body is not None
        self.asked.append(json.loads(request.body)["messages"])
        answer = self.answers.pop(0)
        text = answer if isinstance(answer, str) else json.dumps(answer)
        body = {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}
        return HttpReply(200, json.dumps(body).encode())

    def server(self) -> MemoryToolServer:
        return MemoryToolServer(simulated_server(SPEC, self._client))

    def _client(self) -> ChatClient:
        return ChatClient("http://127.0.0.1:1/v1", "m", send=self)


async def calls(server: MemoryToolServer, world: World, *made: tuple[str, Any]) -> list[ToolResult]:
    async with server.session(world) as session:
        assert [tool.name for tool in session.tools] == ["look", "cancel"]
        return [
            await session.call(ToolCall(f"c{n}", name, arguments))
            for n, (name, arguments) in enumerate(made)
        ]


async def test_an_answer_that_the_memory_bears_out_is_given() -> None:
    simulator = Simulator({"answer": "W41 is pending.", "reads": [READ]})
    world = World(MEMORY)
    (found,) = await calls(simulator.server(), world, ("look", {"order_id": "W41"}))
    assert (found.content, found.is_error) == ("W41 is pending.", False)
    asked = json.loads(simulator.asked[0][1]["content"])
    assert asked["memory"] == MEMORY
    assert asked["arguments"] == {"order_id": "W41"}


async def test_what_it_changes_is_in_the_memory_of_the_next_call() -> None:
    after = {"path": "orders.W41.status", "value": "cancelled"}
    simulator = Simulator(
        {"answer": "Cancelled.", "reads": [READ], "changes": [CANCELLED]},
        {"answer": "It is cancelled.", "reads": [after]},
    )
    world = World(MEMORY)
    await calls(
        simulator.server(), world, ("cancel", {"order_id": "W41"}), ("look", {"order_id": "W41"})
    )
    assert plain(world)["orders"]["W41"]["status"] == "cancelled"
    assert json.loads(simulator.asked[1][1]["content"])["memory"] == plain(world)


@pytest.mark.parametrize(
    ("tool", "answer", "words"),
    [
        ("look", {"answer": "x", "reads": [{**READ, "value": "sent"}]}, "is 'pending', not 'sent'"),
        (
            "look",
            {"answer": "x", "reads": [{"path": "orders.W9.status", "value": "pending"}]},
            "absent",
        ),
        ("look", {"answer": "x", "changes": [CANCELLED]}, "this tool only looks"),
        (
            "look",
            {"answer": "It goes to card 5512."},
            "names '5512', which is nowhere in the memory",
        ),
        ("look", "It is pending.", "no answer of the form asked for"),
        ("look", {"answer": 3}, "no answer of the form asked for"),
        (
            "cancel",
            {"answer": "x", "changes": [{**CANCELLED, "before": "sent"}]},
            "is 'pending' before the change, not 'sent'",
        ),
        (
            "cancel",
            {"answer": "x", "changes": [{"path": "orders.W9.status", "after": "y"}]},
            "there is no 'W9'",
        ),
        (
            "cancel",
            {"answer": "x", "error": True, "changes": [CANCELLED]},
            "refused changes nothing",
        ),
    ],
)
async def test_a_contradiction_is_told_and_asked_for_again(
    tool: str, answer: Any, words: str
) -> None:
    simulator = Simulator(answer, {"answer": "So it is."})
    world = World(MEMORY)
    (found,) = await calls(simulator.server(), world, (tool, {"order_id": "W41"}))
    assert found.content == "So it is."
    assert words in simulator.asked[1][-1]["content"]
    assert plain(world) == MEMORY


async def test_one_that_contradicts_itself_every_time_is_a_fault() -> None:
    wrong = {"answer": "x", "reads": [{**READ, "value": "sent"}]}
    simulator = Simulator(wrong, wrong)
    with pytest.raises(
        ToolServerError,
        match="gave no answer to a call of 'look': contradicts its memory in all of 2 tries",
    ):
        await calls(simulator.server(), World(MEMORY), ("look", {"order_id": "W41"}))


async def test_the_same_call_on_the_same_memory_is_answered_alike_in_all_dialogues() -> None:
    simulator = Simulator({"answer": "Cancelled.", "changes": [CANCELLED]})
    server = simulator.server()
    worlds = [World(MEMORY), World(MEMORY)]
    for world in worlds:
        (found,) = await calls(server, world, ("cancel", {"order_id": "W41"}))
        assert found.content == "Cancelled."
        assert plain(world)["orders"]["W41"]["status"] == "cancelled"
    assert len(simulator.asked) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "order_id: is missing"),
        ({"order_id": 3}, "order_id: must be text"),
        ({"order_id": "W41", "ordr": 1}, "ordr: there is no such parameter"),
    ],
)
async def test_wrong_arguments_are_answered_by_nobody(arguments: Any, words: str) -> None:
    simulator = Simulator()
    (found,) = await calls(simulator.server(), World(MEMORY), ("look", arguments))
    assert found.is_error
    assert words in found.content
    assert simulator.asked == []
