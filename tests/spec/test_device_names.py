"""What may be wrong with a user's device, each at its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from phone_kit import DOMAIN, TASKS, write_phones
from spec_files import said

from muarl.errors import SpecError
from muarl.spec import load_task_files

SCRIPT = """\
user:
  understands:
    "do:fly": ["airplane mode"]
    done: ["done"]
  actions:
    fly: {tool: set_airplane, arguments: {on: true}}
  phrasings:
    any:
      open: ["help"]
      stop: ["bye"]
      "did:fly": ["airplane mode is {airplane}"]
"""
WHOLE = DOMAIN + SCRIPT


def problems(folder: Path, domain: str = WHOLE, tasks: str = TASKS) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load_task_files(write_phones(folder, domain=domain, tasks=tasks).located)
    return said(caught.value)


def test_the_whole_of_it_is_sound(tmp_path: Path) -> None:
    assert load_task_files(write_phones(tmp_path, domain=WHOLE).located)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("tools.py:phone", "tools.py:fone", "9:19: tools.py has no 'fone'; did you mean 'phone'?"),
        ("sync.py:sync", "synk.py:sync", "14:16: no such file: 'synk.py'; did you mean 'sync.py'?"),
        (
            "{data: {line: L1",
            "{file: x.json, data: {line: L1",
            "11:10: 'world': give exactly one of data, file and python",
        ),
        ("to: device.service", "", "13:7: item 1 of 'sync': give either from and to, or python"),
        (
            "to: device.service",
            "too: device.service",
            "13:44: unknown field 'too'; did you mean 'to'?",
        ),
        ("{lines: {L1", "{device: 1, lines: {L1", "7:16: 'device' is where `device.world` lies"),
        (
            "tools: {python: tools.py:account, stateless: true}",
            "tools: {command: [x], world_resource: 'a://b'}",
            "5:23: this server holds the whole world by itself",
        ),
        (
            "tools: {python: tools.py:account, stateless: true}",
            "tools: {python: tools.py:account, state: {a: {call: b}}}",
            "5:35: this server's state is read before and after a dialogue only",
        ),
        ("do:fly", "do:flee", "20:5: unknown action 'flee'; known: fly"),
        ("did:fly", "did:flee", "28:7: unknown action 'flee'; known: fly"),
        ("did:fly", "failed:flee", "28:7: unknown action 'flee'; known: fly"),
        ('"do:fly": ["airplane mode"]', "", "23:5: nobody can ask for it: `understands` has no"),
        (
            "do:fly",
            "does:fly",
            "20:5: unknown act 'does:fly'; known: confirm, refuse, done, ask:<fact>, do:<action>",
        ),
    ],
)
def test_what_is_wrong_with_a_device(tmp_path: Path, old: str, new: str, problem: str) -> None:
    assert old in WHOLE
    found = problems(tmp_path, WHOLE.replace(old, new, 1))
    assert any(problem in one for one in found), found


def test_without_a_device_nobody_calls_her_tools(tmp_path: Path) -> None:
    start, end = WHOLE.index("device:"), WHOLE.index("tasks:")
    alone = WHOLE[:start] + WHOLE[end:]
    alone = alone.replace(
        "[{gold_world: true}]", "[{called: {tool: status, by: user}}, {gold_world: true}]"
    )
    found = problems(tmp_path, alone)
    lacks = "the user has no device to call tools on; give the domain a `device`, or leave `by` out"
    assert f"10:38: {lacks}" in found
    assert "15:3: actions are done on a `device`, which this domain lacks" in found
    found = problems(tmp_path, alone.replace(", by: user", "").replace(SCRIPT, ""))
    assert found == [f"10:58: {lacks}"]
