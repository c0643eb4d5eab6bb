"""A tool that holds up the event loop is found while it does; one that awaits is left alone."""

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


async def proved(folder: Path, look: str) -> tuple[Proof, list[str]]:
    """The proof of a shop whose tool `look` does something first, and its steps.

    `FLAG` in what it does is a file that appears once it was found.
    """
    flag = folder / "found"
    write_all(folder)
    new = f'    {look.replace("FLAG", repr(str(flag)))}\n        return world["orders"]'
    spoil(folder / "tools.py", LOOK, new)
    spoil(folder / "tools.py", "from mcp", "import os\nimport time\nimport anyio\nfrom mcp")
    steps: list[str] = []

    def on_step(step: str) -> None:
        steps.append(step)
        if step.startswith("stands still: "):
            flag.touch()

    return await prove(load_domain(folder), on_step=on_step), steps


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
    proof, steps = await proved(tmp_path, look)
    (finding,) = proof.findings
    assert finding.check is Check.SERVER
    assert "a tool holds up the event loop (" in finding.problem.message
    assert "in look): all dialogues wait" in finding.problem.message
    assert f"{tmp_path / 'tools.py'}:1" in finding.problem.message
    assert steps[-1] == f"stands still: {finding.problem.message}"


AWAITS = """async def look(order_id: str) -> str:
        await anyio.sleep(0.25)"""
IN_A_THREAD = """def look(order_id: str) -> str:
        time.sleep(0.25)"""


@pytest.mark.parametrize("look", [AWAITS, IN_A_THREAD], ids=["awaits", "in a thread"])
async def test_a_tool_that_leaves_the_loop_alone_is_sound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: str
) -> None:
    monkeypatch.setattr(watch, "_AT_ONCE_S", 0.15)
    monkeypatch.setattr(watch, "_IN_ALL_S", 0.15)
    proof, _ = await proved(tmp_path, look)
    assert proof.findings == []
