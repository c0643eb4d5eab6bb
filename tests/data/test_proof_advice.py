"""What is said of a newcomer's mistakes tells her what to do."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from proof_shop import Break, break_domain, break_tools
from spec_files import spoil, write_all

from muarl.data.proof import prove
from muarl.domain import load_domain

REWARD = "  - gold_world: true"


@pytest.mark.parametrize(
    ("breakage", "said"),
    [
        (
            break_domain(REWARD, f"{REWARD}\n  - all: [{{called: {{tool: look}}}}]"),
            ("look was not called successfully; `called` wants look, and no gold call is one: `gold` "
            "lists all that must be called, reads too; add it there"),
        ),
        (
            break_tools('return "ok"', "return 3"),
            ("crashed in a call of 'cancel': it returned 3, which is not what its annotation says "
            "(input should be a valid string); let it return that, or correct what stands after"),
        ),
        (
            break_tools('-> str:\n        if order_id not in world["orders"]',
                        '-> list[int]:\n        return [1, "x"]\n        if not world'),
            ("it returned 'x' at 1, which is not what its annotation says (input should be a valid "
            "integer"),
        ),
    ],
    ids=["a read that no gold call is", "another type", "another type inside"],
)  # fmt: skip
def test_a_mistake_is_said_with_what_to_do(tmp_path: Path, breakage: Break, said: str) -> None:
    write_all(tmp_path)
    breakage(tmp_path)
    proof = anyio.run(prove, load_domain(tmp_path))
    (finding,) = proof.findings
    assert said in finding.problem.message


def test_what_is_never_to_be_called_is_not_asked_for_in_gold(tmp_path: Path) -> None:
    write_all(tmp_path)
    break_domain(REWARD, "  - not: {called: {tool: cancel}}")(tmp_path)
    proof = anyio.run(prove, load_domain(tmp_path))
    messages = [finding.problem.message for finding in proof.findings]
    assert any("not 1: not called cancel" in message for message in messages)
    assert not any("no gold call is one" in message for message in messages)


def test_an_argument_that_a_tool_does_not_have_is_named_with_the_nearest(tmp_path: Path) -> None:
    write_all(tmp_path)
    spoil(tmp_path / "tasks.yaml", "arguments: {order_id: W1}", "arguments: {oder_id: W1}")
    proof = anyio.run(prove, load_domain(tmp_path))
    (finding,) = proof.findings
    assert str(finding.problem) == (
        f"{tmp_path / 'tasks.yaml'}:13:21: task 'cancel-1': unknown argument 'oder_id'; did you mean "
        "'order_id'? (of tool 'cancel')"
    )


def test_a_misspelt_part_of_a_tasks_world_is_named_with_the_nearest(tmp_path: Path) -> None:
    write_all(tmp_path)
    task = "    gold:\n"
    spoil(tmp_path / "tasks.yaml", task, f"    world: {{order: {{}}}}\n{task}")
    proof = anyio.run(prove, load_domain(tmp_path))
    (finding,) = proof.findings
    assert str(finding.problem) == (
        f"{tmp_path / 'tasks.yaml'}:11:13: task 'cancel-1': the domain's world has no 'order'; did you "
        "mean 'orders'? Else give the domain's world that key too, were it empty"
    )


def test_an_expert_that_returns_a_text_is_told_what_to_return(tmp_path: Path) -> None:
    write_all(tmp_path)
    spoil(tmp_path / "domain.yaml", "reward:", "expert: expert.py:Expert\nreward:")
    spoil(tmp_path / "expert.py", 'return Message(role="assistant", content="Which order?")',
          'return "Which order?"')  # fmt: skip
    spoil(tmp_path / "domain.yaml", "weight: 0", "weight: 1")
    spoil(tmp_path / "domain.yaml", "style: plain", "style: plain\n    weight: 0")
    proof = anyio.run(prove, load_domain(tmp_path))
    (finding,) = proof.findings
    assert "the agent's `act` returned 'Which order?', which is no message of an" in str(finding)
    assert "let it return Message('assistant', 'a text for the user')" in str(finding)


@pytest.mark.parametrize(
    ("predicate", "finding"),
    [
        (
            "never_called: {tool: cancel, arguments: {oder_id: W9}}",
            "unknown argument 'oder_id'; did you mean 'order_id'? (of tool 'cancel')",
        ),
        (
            "not: {all: [{called: {tool: look, arguments: {x: 1}}}]}",
            "unknown argument 'x'; known: order_id (of tool 'look')",
        ),
        (
            "not: {preceded: {by: look, same: [oder_id]}}",
            "unknown argument 'oder_id'; did you mean 'order_id'? (of tool 'cancel')",
        ),
        (
            "world: {path: ordres.W1.status, changed: false}",
            "no world of a task has 'ordres'; did you mean 'orders'?",
        ),
        (
            "not: {world: {path: orders.W1.statsu, equals: lost}}",
            "no world of a task has 'orders.W1.statsu'; did you mean 'status'?",
        ),
        ("world: {path: refunds.W1, changed: false}", "no world of a task has 'refunds'"),
    ],
)
def test_a_predicate_that_watches_over_nothing_is_found(
    tmp_path: Path, predicate: str, finding: str
) -> None:
    """Each holds after the gold calls, and after any others: it is misspelt."""
    write_all(tmp_path)
    spoil(tmp_path / "domain.yaml", REWARD, f"{REWARD}\n  - {predicate}")
    proof = anyio.run(prove, load_domain(tmp_path))
    assert [found.problem.message for found in proof.findings] == [finding]


@pytest.mark.parametrize(
    "predicate",
    [
        "world: {path: orders.W1.status, equals: cancelled}",
        # What only a mistake would make is in no world.
        "world: {path: orders.W2, changed: false}",
        "world: {path: orders.W1.refund, changed: false}",
    ],
)
def test_a_path_that_a_mistake_would_make_may_lead_nowhere(tmp_path: Path, predicate: str) -> None:
    write_all(tmp_path)
    spoil(tmp_path / "domain.yaml", REWARD, f"{REWARD}\n  - {predicate}")
    assert anyio.run(prove, load_domain(tmp_path)).sound


@pytest.mark.parametrize("fuzz", [0, 3])
def test_a_domain_without_tasks_is_told_so_and_is_not_sound(tmp_path: Path, fuzz: int) -> None:
    write_all(tmp_path)
    (tmp_path / "tasks.yaml").write_text("version: 1\ndomain: shop\ntasks: []\n")
    proof = anyio.run(lambda: prove(load_domain(tmp_path), fuzz=fuzz))
    assert [str(finding.problem) for finding in proof.findings] == [
        (
            f"{tmp_path / 'domain.yaml'}:12:1: there are no tasks, so that nothing can be proved, played or "
            "learned; write one"
        )
    ]
