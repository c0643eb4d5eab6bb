"""Proofs of domains whose user acts: sync settles, her part can be asked for, all tools are of use."""

from __future__ import annotations

from pathlib import Path

import pytest
from phone_kit import DOMAIN, TASKS, write_phones

from muarl.data.proof import Proof, prove

pytestmark = pytest.mark.anyio

SCRIPT = """\
user:
  understands:
    "do:land": ["turn it off"]
    refuse: ["cannot"]
    done: ["done"]
  actions:
    land: {tool: set_airplane, arguments: {on: false}}
  phrasings:
    any:
      open: ["help, line L1 is dead"]
      stop: ["bye"]
      unclear: ["what?"]
      abandon: ["no"]
"""
WHOLE = DOMAIN + SCRIPT
PLAYED = TASKS.replace(
    "    goal: Have", "    user: {requests: [{ask: help}]}\n    goal: Line L1: have"
)


@pytest.fixture
def anyio_backend() -> str:
    return "trio"


async def proof(folder: Path, domain: str = WHOLE, tasks: str = PLAYED, **files: str) -> Proof:
    tasks = tasks.replace("goal: Line L1: have", "goal: Have line L1 again and")
    return await prove(write_phones(folder, domain=domain, tasks=tasks, **files))


def said(found: Proof) -> list[str]:
    return [f"{f.check.value} {f.problem.message}" for f in found.findings]


async def test_two_sides_in_step_are_sound_and_no_trivial_policy_does_both(tmp_path: Path) -> None:
    tasks = PLAYED.replace("ask: help", "ask: help, facts: [{id: line, value: L1}]")
    domain = WHOLE.replace('open: ["help, line L1 is dead"]', 'open: ["help, {line} is dead"]')
    found = await proof(tmp_path, domain, tasks)
    assert said(found) == []
    assert found.user_tools == ["set_airplane", "status"]
    assert found.floor["ask_for_everything"]["train"].value == 0.0


@pytest.mark.parametrize(
    ("sync", "why"),
    [
        (
            'def sync(world):\n    world["device"]["runs"] = world["device"].get("runs", 0) + 1\n',
            (
                "sync run again it changes something (task 'both'): device.runs: 1 -> 2; let it write "
                "only what follows from the rest of the world"
            ),
        ),
        (
            (
                "import itertools\nNUMBERS = itertools.count()\n\n\ndef sync(world):\n"
                '    device = world["device"]\n'
                '    if device.get("seen") != world["lines"]["L1"]["active"]:\n'
                '        device["number"] = next(NUMBERS)\n'
                '        device["seen"] = world["lines"]["L1"]["active"]\n'
            ),
            "sync the same calls lead to two worlds (task 'both', after gold call 1): ",
        ),
    ],
)
async def test_a_sync_that_counts_or_draws_is_found(tmp_path: Path, sync: str, why: str) -> None:
    found = said(await proof(tmp_path, sync=sync))
    assert any(one.startswith(why) for one in found), found


async def test_a_deed_that_nobody_can_ask_for_is_found(tmp_path: Path) -> None:
    found = said(await proof(tmp_path, WHOLE.replace("{on: false}", "{on: true}")))
    assert (
        "reach task 'both': nobody can ask the scripted user to make gold call 2, 'set_airplane' "
        "with these arguments; add it under user.actions"
    ) in found


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ("{tool: set_airplan}", "unknown tool 'set_airplan'; did you mean 'set_airplane'?"),
        (
            "{tool: set_airplane, arguments: {onn: true}}",
            "unknown argument 'onn'; did you mean 'on'? (of tool 'set_airplane')",
        ),
    ],
)
async def test_an_action_without_a_tool_of_hers_is_found_though_no_gold_call_is_it(
    tmp_path: Path, action: str, why: str
) -> None:
    """The domain was called sound, and asked for it she read out an error of her tool."""
    asked = WHOLE.replace('    "do:land"', '    "do:fly": ["turn it on"]\n    "do:land"')
    found = await proof(tmp_path, asked.replace("    land: {", f"    fly: {action}\n    land: {{"))
    assert said(found) == [f"names {why}"]
    assert found.findings[0].problem.line == 25


async def test_a_tool_of_hers_that_is_no_read_and_none_of_use_are_found(tmp_path: Path) -> None:
    hidden = WHOLE.replace("  writes: [set_airplane]\n", "  writes: []\n")
    found = said(await proof(tmp_path, hidden))
    assert any(
        one.startswith("reads tool 'set_airplane', which `device.writes` does not name")
        for one in found
    ), found


async def test_names_of_tools_are_those_of_the_side_that_calls(tmp_path: Path) -> None:
    found = said(await proof(tmp_path, tasks=PLAYED.replace(", by: user", "")))
    assert "names task 'both': unknown tool 'set_airplane'; did you mean 'set_line'?" in found
    wrong = WHOLE.replace("[{gold_world: true}]", "[{called: {tool: get_line, by: user}}]")
    found = said(await proof(tmp_path, wrong))
    assert "names unknown tool 'get_line'; did you mean 'set_airplane'?" in found
