"""Calls that do not end: found while they go on, with what was called; what awaits is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from spec_files import spoil, write_all

from muarl.data.proof import Check, Proof, prove, watch
from muarl.domain import load_domain

pytestmark = pytest.mark.anyio

LOOK = '    async def look(order_id: str) -> str:\n        return world["orders"]'


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def proved(folder: Path, look: str, *, call_timeout_s: float = 30) -> tuple[Proof, list[str]]:
    """The proof of a shop whose tool `look` does something first, and the remarks made meanwhile.

    `FLAG` in what it does is a file that appears once it was found.
    """
    flag = folder / "found"
    write_all(folder)
    python = "python: tools.py:serve\n"
    spoil(folder / "domain.yaml", python, f"{python}  call_timeout_s: {call_timeout_s}\n")
    new = f'    {look.replace("FLAG", repr(str(flag)))}\n        return world["orders"]'
    spoil(folder / "tools.py", LOOK, new)
    spoil(folder / "tools.py", "from mcp", "import os\nimport time\nimport anyio\nfrom mcp")
    remarks: list[str] = []

    def on_remark(remark: str) -> None:
        remarks.append(remark)
        flag.touch()

    def on_stuck(proof: Proof) -> None:
        on_remark(proof.findings[-1].problem.message)

    return await prove(load_domain(folder), on_remark=on_remark, on_stuck=on_stuck), remarks


HOLDS = """async def look(order_id: str) -> str:
        while not os.path.exists(FLAG):
            time.sleep(0.01)"""
COMPUTES = """async def look(order_id: str) -> str:
        while not os.path.exists(FLAG):
            sum(range(1000))"""


@pytest.mark.parametrize("at_once_s", [0.2, 1e9], ids=["long", "often"])
@pytest.mark.parametrize("look", [HOLDS, COMPUTES], ids=["waits", "computes"])
async def test_a_tool_that_holds_up_the_loop_is_named_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: str, at_once_s: float
) -> None:
    monkeypatch.setattr(watch, "_AT_ONCE_S", at_once_s)
    monkeypatch.setattr(watch, "_IN_ALL_S", 0.2)
    proof, remarks = await proved(tmp_path, look)
    (finding,) = proof.findings
    assert (finding.check, finding.task_id) == (Check.SERVER, "cancel-1")
    assert finding.problem.message.startswith(
        'task \'cancel-1\': call look {"order_id": "W1"}: a tool'
    )
    assert "a tool holds up the event loop (" in finding.problem.message
    assert "in look): all dialogues wait" in finding.problem.message
    assert f"{tmp_path / 'tools.py'}:1" in finding.problem.message
    (remark,) = remarks
    assert finding.problem.message.endswith(remark)


AWAITS = """async def look(order_id: str) -> str:
        await anyio.sleep(0.5)"""
IN_A_THREAD = """def look(order_id: str) -> str:
        time.sleep(0.5)"""


@pytest.mark.parametrize("look", [AWAITS, IN_A_THREAD], ids=["awaits", "in a thread"])
async def test_a_tool_that_leaves_the_loop_alone_is_sound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: str
) -> None:
    monkeypatch.setattr(watch, "_AT_ONCE_S", 0.4)
    monkeypatch.setattr(watch, "_IN_ALL_S", 0.4)
    proof, _ = await proved(tmp_path, look)
    assert proof.findings == []


HOLDS_A_THREAD = HOLDS.removeprefix("async ")


@pytest.mark.parametrize("look", [HOLDS, HOLDS_A_THREAD], ids=["in the loop", "in a thread"])
async def test_a_call_that_no_deadline_ends_is_named_with_task_arguments_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: str
) -> None:
    monkeypatch.setattr(watch, "_AT_ONCE_S", 1e9)
    monkeypatch.setattr(watch, "_GRACE_S", 0.5)
    proof, (remark, *_) = await proved(tmp_path, look, call_timeout_s=1)
    assert remark.startswith(
        'task \'cancel-1\': call look {"order_id": "W1"}: the call does not end'
    )
    assert f"({tmp_path / 'tools.py'}:1" in remark
    assert "Give what it waits for a deadline" in remark
    assert remark in [finding.problem.message for finding in proof.findings]


@pytest.mark.parametrize(
    ("look", "call_timeout_s", "said"),
    [
        (
            "async def look(order_id: str) -> str:\n        await anyio.sleep(60)",
            1,
            "did not answer",
        ),
        ("async def look(order_id: str) -> str:\n        order_id.x", 30, "AttributeError"),
    ],
    ids=["hangs", "crashes"],
)
async def test_a_call_whose_server_fails_is_named_with_task_and_arguments(
    tmp_path: Path, look: str, call_timeout_s: float, said: str
) -> None:
    proof, _ = await proved(tmp_path, look, call_timeout_s=call_timeout_s)
    (finding,) = proof.findings
    assert (finding.check, finding.task_id) == (Check.SERVER, "cancel-1")
    assert 'task \'cancel-1\': call look {"order_id": "W1"}: ' in finding.problem.message
    assert said in finding.problem.message
