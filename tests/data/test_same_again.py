"""What a domain gives twice differently cannot be trained on: tools, tasks and worlds that are not determined."""

from __future__ import annotations

from pathlib import Path

import pytest
from proof_shop import Break, break_tools, generated
from spec_files import spoil, write_all

from muarl.data.proof import Check, Proof, prove
from muarl.domain import load_domain

pytestmark = pytest.mark.anyio


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_all(tmp_path)
    return tmp_path


def said(proof: Proof) -> list[str]:
    return [
        f"{f.check} {f.problem.line}:{f.problem.column}: {f.problem.message}"
        for f in proof.findings
    ]


def _above(code: str, old: str, new: str) -> Break:
    """Tools with code at the top of the module, and one passage replaced."""

    def breakage(folder: Path) -> None:
        spoil(folder / "tools.py", "def serve", f"{code}\n\n\ndef serve")
        break_tools(old, new)(folder)

    return breakage


@pytest.mark.parametrize(
    "breakage",
    [
        _above("import itertools\nCOUNT = itertools.count()", '"ok"', 'f"ok {next(COUNT)}"'),
        _above("import random", '"ok"', 'f"ok {random.random()}"'),
        _above(
            "SEEN = set()",
            'return "ok"',
            'again = order_id in SEEN; SEEN.add(order_id); return "again" if again else "ok"',
        ),
    ],
    ids=["a counter in the module", "a draw", "what was seen before"],
)
async def test_a_writing_tool_whose_answer_does_not_follow_from_its_world_is_found(
    folder: Path, breakage: Break
) -> None:
    breakage(folder)
    proof = await prove(load_domain(folder))
    (finding,) = said(proof)
    assert finding.startswith("again 5:1: task 'cancel-1': cancel {'order_id': 'W1'} answers 'ok")
    assert finding.endswith("keep state in the world, draw nothing and ask no clock")


async def test_a_tool_that_only_looks_is_asked_again_too(folder: Path) -> None:
    _above(
        "import random", 'return world["orders"]', 'return str(random.random()) or world["orders"]'
    )(folder)
    proof = await prove(load_domain(folder))
    (finding,) = said(proof)
    assert finding.startswith("again 5:1: task 'cancel-1': look {'order_id': 'W1'} answers '0.")


async def test_a_clock_that_is_written_into_the_world_is_found(folder: Path) -> None:
    _above(
        "import time",
        'world["orders"][order_id]["status"] = "cancelled"',
        'world["orders"][order_id] = {"status": "cancelled", "at": time.time_ns()}',
    )(folder)
    spoil(
        folder / "domain.yaml",
        "- gold_world: true",
        "- world: {path: orders.W1.status, equals: cancelled}",
    )
    proof = await prove(load_domain(folder))
    (finding,) = said(proof)
    assert finding.startswith(
        "again 5:1: task 'cancel-1': the same calls (cancel), made once more, lead to another world: "
        "orders.W1.at: "
    )


async def test_one_tool_is_one_finding_however_many_tasks_there_are(folder: Path) -> None:
    generated(folder)
    _above("import random", '"ok"', "str(random.random())")(folder)
    proof = await prove(load_domain(folder))
    assert [finding.check for finding in proof.findings] == [Check.AGAIN]


async def test_a_generator_that_draws_without_the_seed_is_found_at_the_first_task(
    folder: Path,
) -> None:
    generated(folder, 'goal=""', 'goal=f"{random.random()}" if index else ""')
    spoil(folder / "gen.py", "from muarl", "import random\n\nfrom muarl")
    proof = await prove(load_domain(folder))
    finding = said(proof)[0]
    assert finding.startswith(
        "again 13:11: gen.py:generate makes other tasks from the same seed: the first of split "
        "'train' that differs is 'train-1', goal: '0."
    )
    assert finding.endswith("; draw from `random.Random(seed)` alone")


async def test_a_world_that_is_built_otherwise_the_second_time_is_found(folder: Path) -> None:
    spoil(
        folder / "domain.yaml",
        "  data:\n    orders:\n      W1: {status: pending}\n",
        "  python: world.py:build\n",
    )
    (folder / "world.py").write_text(
        "import time\n\n\ndef build():\n"
        "    return {'orders': {'W1': {'status': 'pending'}}, 'at': time.time_ns()}\n"
    )
    proof = await prove(load_domain(folder))
    finding = said(proof)[0]
    assert finding.startswith("again 9:11: world.py:build builds another world when it is called")
