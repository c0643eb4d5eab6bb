"""The handset: sound, and solved only by both sides together."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import anyio
import pytest

from muarl.data.proof import Proof, prove
from muarl.domain import Domain, load_domain
from muarl.messages import ToolCall
from muarl.spec import TaskSpec

HANDSET = Path(__file__).parents[2] / "domains" / "handset"


@cache
def handset() -> Domain:
    return load_domain(HANDSET)


def test_a_sample_of_it_is_sound() -> None:
    async def main() -> Proof:
        return await prove(handset(), limit=24, dialogues=24)

    found = anyio.run(main)
    assert [str(finding.problem) for finding in found.findings] == []
    assert found.skipped == []
    assert all(mean.value == 1 for mean in found.expert.values())
    assert {name: means["train"].value for name, means in found.floor.items()}.keys() >= {
        "ask_for_everything"
    }
    assert all(m.value is not None and m.value <= 0.15 for m in found.floor["do_nothing"].values())


def status_bar(task: TaskSpec, *calls: tuple[str, str, dict[str, str]]) -> str:
    """What the phone shows after some calls of either side."""

    async def main() -> str:
        async with handset().sides(handset().world_for(task)) as sides:
            for who, tool, arguments in calls:
                side = sides["agent" if who == "agent" else "user"]
                result = await side.call(ToolCall("c", tool, arguments))
                assert not result.is_error
            return (await sides["user"].call(ToolCall("look", "status_bar", {}))).content

    return anyio.run(main)


def faulty(**fault: object) -> TaskSpec:
    """A task whose line or phone is not as it should be."""
    line = {"status": "active", "bill": "paid", "gb_left": 3}
    phone = {"number": "5550000", "airplane_mode": "off", "mobile_data": "on", "registered": True}
    line |= {key: value for key, value in fault.items() if key in line}
    phone |= {key: value for key, value in fault.items() if key in phone}
    world = {"lines": {"5550000": line}, "device": phone}
    return TaskSpec(id="t", goal="Mend it.", personas=["plain"], gold=[], world=world)


NUMBER = {"number": "5550000"}


@pytest.mark.parametrize(
    ("task", "mending", "lacks"),
    [
        (faulty(airplane_mode="on"), [("user", "set_airplane_mode", {"to": "off"})], "signal"),
        (faulty(mobile_data="off"), [("user", "set_mobile_data", {"to": "on"})], "internet"),
        (faulty(gb_left=0), [("agent", "add_data", NUMBER)], "internet"),
        (
            faulty(status="suspended", registered=False),
            [("agent", "resume_line", NUMBER), ("user", "restart", {})],
            "signal",
        ),
    ],
)
def test_what_is_wrong_shows_on_the_phone_until_it_is_mended(
    task: TaskSpec, mending: list[tuple[str, str, dict[str, str]]], lacks: str
) -> None:
    for done in range(len(mending)):
        assert f'"{lacks}":"none"' in status_bar(task, *mending[:done])
    assert status_bar(task, *mending).startswith('{"signal":"good","internet":"good"')


def test_a_restart_before_the_line_is_resumed_does_not_help() -> None:
    task = faulty(status="suspended", registered=False)
    calls = [("user", "restart", {}), ("agent", "resume_line", NUMBER)]
    assert '"signal":"none"' in status_bar(task, *calls)
