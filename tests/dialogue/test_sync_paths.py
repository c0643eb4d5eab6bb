"""Paths of `device.sync`: keys that hold dots are whole keys, from and to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from phone_kit import DOMAIN, phone_task, write_phones

from muarl.errors import SpecError
from muarl.world import World, plain

ACCOUNT = "{data: {lines: {L1: {active: true}, L2: {active: true}}}}"
PHONE = "{data: {line: L1, airplane: false, service: true, can_call: true}}"
SYNC = """\
    - {from: "lines.{device.line}.active", to: device.service}
    - {python: "sync.py:sync"}
"""


def begun(folder: Path, account: str, phone: str, *steps: str) -> World:
    """The world of a dialogue at its beginning, after these steps."""
    text = DOMAIN.replace(ACCOUNT, f"{{data: {account}}}").replace(PHONE, f"{{data: {phone}}}")
    text = text.replace(SYNC, "".join(f"    - {step}\n" for step in steps))
    assert account in text
    assert phone in text
    return write_phones(folder, domain=text).world_for(phone_task())


COPY = "{from: 'lines.{device.line}.plan', to: device.plan}"


def test_what_a_slot_stands_for_is_one_key(tmp_path: Path) -> None:
    account = "{lines: {a: {b: {plan: below}}, a.b: {plan: whole}}}"
    world = begun(tmp_path, account, "{line: a.b, plan: ''}", COPY)
    assert world["device"]["plan"] == "whole"


def test_what_a_slot_stands_for_is_a_key_that_is_there(tmp_path: Path) -> None:
    """`a` and `plan` together named another line."""
    with pytest.raises(SpecError, match=r"13:7: sync: 'lines.a' is not in the world"):
        begun(tmp_path, "{lines: {a.plan: {plan: x}}}", "{line: a, plan: ''}", COPY)
    with pytest.raises(SpecError, match=r"sync: 'lines.\"a.b\"' is not in the world"):
        begun(tmp_path, "{lines: {a: {b: {plan: x}}}}", "{line: a.b, plan: ''}", COPY)


@pytest.mark.parametrize(
    ("to", "device"),
    [
        ("device.apps.{device.app}", {"v1.2": 7}),
        ("device.apps.v1.2", {"v1.2": 7}),
        ("device.apps.\"v1.2\"", {"v1.2": 7}),
        ("device.apps.new", {"v1.2": 0, "new": 7}),
        ("device.apps.\"v2.0\"", {"v1.2": 0, "v2.0": 7}),
        ("device.apps.{device.other}", {"v1.2": 0, "v2.0": 7}),
        ("device.apps.x-{device.other}", {"v1.2": 0, "x-v2.0": 7}),
    ],
)  # fmt: skip
def test_a_value_is_put_at_a_key_with_dots(tmp_path: Path, to: str, device: Any) -> None:
    world = begun(
        tmp_path,
        "{lines: {L1: {n: 7}}}",
        "{app: v1.2, other: v2.0, apps: {v1.2: 0}}",
        f"{{from: lines.L1.n, to: '{to}'}}",
    )
    assert plain(world["device"]["apps"]) == device


def test_a_slot_may_be_at_a_path_with_dots_and_quotes_and_a_position_in_a_list(
    tmp_path: Path,
) -> None:
    world = begun(
        tmp_path,
        "{lines: {L1: {n: 7, l: [0, 0]}}}",
        "{sim.card: L1, sims: {'0.1': L1}, n: 0, at: 1}",
        "{from: 'lines.{device.sim.card}.n', to: device.n}",
        "{from: 'lines.{device.sims.\"0.1\"}.n', to: 'lines.L1.l.{device.at}'}",
    )
    assert world["device"]["n"] == 7
    assert plain(world["lines"]["L1"]["l"]) == [0, 7]


def test_a_place_that_is_not_there_is_named(tmp_path: Path) -> None:
    account, phone = "{lines: {L1: {n: 7, l: [0]}}}", "{n: 0}"
    for to, missing in (
        ("device.apps.x", "'device.apps'"),
        ("lines.L1.l.1", "'lines.L1.l.1'"),
        ("device.n.x", "'device.n.x'"),
    ):
        with pytest.raises(SpecError) as raised:
            begun(tmp_path, account, phone, f"{{from: lines.L1.n, to: {to}}}")
        said = f"13:7: sync: nothing can be put at '{to}': {missing} is not in the world"
        assert said in str(raised.value)
