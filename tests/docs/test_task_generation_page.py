"""The goals on the page of task generation make sound tasks of every kind that it speaks of."""

from __future__ import annotations

from pathlib import Path

from documents import blocks
from goal_kit import TOOLS

from muarl.domain import load_domain

DOMAIN = """\
version: 1
id: page
summary: The shop of the page.
rules: Cancel only pending orders.
tools: {python: tools.py:serve, stateless: true}
writes: [cancel_order, pay_out]
world: {python: world.py:build}
tasks:
  goals: goals.py:goals
  splits: {train: 60, held_out: 20}
personas:
  plain: {style: plain}
reward: [{gold_world: true}]
"""

WORLD = """\
ITEMS = ["lamp", "vase", "rug", "chair", "desk"]


def build():
    orders = {
        f"W{100 * user + number}": {
            "user_id": f"u{user}",
            "item": ITEMS[(user * number + number // 3) % 5],
            "status": "shipped" if number == 4 else "pending",
            "price": 7,
        }
        for user in range(60)
        for number in range(5)
    }
    return {"users": {f"u{user}": {"credit": 0} for user in range(60)}, "orders": orders}
"""


def test_goals_of_the_page_make_tasks_of_every_kind(tmp_path: Path) -> None:
    page = [b.text for b in blocks() if b.place.startswith("task-generation.md")]
    goals = [text for text in page if "@goals.goal" in text]
    assert len(goals) == 3
    (tmp_path / "goals.py").write_text("\n".join(goals))
    (tmp_path / "domain.yaml").write_text(DOMAIN)
    (tmp_path / "world.py").write_text(WORLD)
    tools = TOOLS.replace('world["accounts"]', 'world["users"]').replace("account", "user_id")
    tools = tools.replace("async def cancel(", "async def cancel_order(")
    (tmp_path / "tools.py").write_text(tools)

    domain = load_domain(tmp_path)
    tasks = [*domain.tasks("train"), *domain.tasks("held_out")]
    asks = {tuple(request.ask for request in task.user.requests) for task in tasks if task.user}
    assert {("cancel",), ("cancel_item",), ("cancel", "cancel")} <= asks
    assert any(ask[-1] == "pay_out" for ask in asks)
    assert any("cancel_item" in ask and len(ask) > 1 for ask in asks)
    idle = [task for task in tasks if not task.gold]
    assert 0 < len(idle) <= 8
