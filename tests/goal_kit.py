"""A shop whose tasks are made of goals that a test gives."""

from __future__ import annotations

from pathlib import Path

from muarl.domain import Domain, load_domain

DOMAIN = """\
version: 1
id: shop
summary: A shop.
rules: Cancel nothing that is shipped.
tools: {python: tools.py:serve, stateless: true}
writes: [cancel, pay_out, rename]
world:
  data:
    orders:
      W11: {account: A1, item: lamp, status: pending, price: 5}
      W12: {account: A1, item: vase, status: shipped, price: 7}
      W21: {account: A2, item: lamp, status: pending, price: 5}
      W22: {account: A2, item: lamp, status: pending, price: 6}
    accounts: {A1: {credit: 0, nick: ann}, A2: {credit: 0, nick: bob}}
tasks:
  goals: goals.py:goals
  splits: {train: 4}
personas:
  plain: {style: plain}
  forgetful: {style: forgetful, disclose: {order_id: never}}
  fickle: {style: fickle, changes_mind: true}
reward: [{gold_world: true}]
"""

TOOLS = """\
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError


def serve(world):
    server = MCPServer("shop")

    @server.tool()
    async def find_orders(account: str) -> str:
        "Orders of an account."
        return ", ".join(k for k, o in world["orders"].items() if o["account"] == account)

    @server.tool()
    async def get_order(order_id: str) -> str:
        "An order."
        return str(dict(world["orders"][order_id]))

    @server.tool()
    async def cancel(order_id: str) -> str:
        "Cancel an order; what was paid becomes credit."
        order = world["orders"][order_id]
        if order["status"] == "cancelled":
            raise ToolError("cancelled already")
        order["status"] = "cancelled"
        world["accounts"][order["account"]]["credit"] += order["price"]
        return "ok"

    @server.tool()
    async def pay_out(account: str) -> str:
        "Pay out all credit."
        world["accounts"][account]["credit"] = 0
        return "ok"

    @server.tool()
    async def rename(account: str, nick: str) -> str:
        "Give an account another nick name."
        world["accounts"][account]["nick"] = nick
        return "ok"

    return server
"""

IMPORTS = """\
from muarl.goals import Goals, Scene, Unfit, Wish, call, user_call

"""


def of_a_new_order(name: str, status: str, which: str, item: str = "rug") -> str:
    """A goal: an order that the task brings along is wanted cancelled.

    Args:
        name: Of the goal.
        status: Of the order.
        which: What the call is: `gold`, or `forbidden`.
        item: What was ordered.
    """
    return f"""
@goals.goal()
def {name}(scene):
    key = scene.name(lambda rng: f"W{{rng.randrange(100, 1000)}}")
    scene.bring({{"orders": {{key: {{"account": "A1", "item": "{item}", "status": "{status}", "price": 3}}}}}})
    return Wish(
        ask="cancel",
        words="you want order {{order_id}} cancelled",
        facts={{"order_id": key}},
        {which}=[call("cancel", order_id=key)],
    )
"""


CANCEL = "\ngoals = Goals(**OPTIONS)\n" + of_a_new_order("cancel", "pending", "gold")
"""Goals of `OPTIONS`, one of which wants an order cancelled that the task brings along."""


def shop(folder: Path, goals: str, *, domain: str = DOMAIN) -> Domain:
    """A domain in a folder.

    Args:
        folder: An empty one.
        goals: The source of `goals.py`, but for what it imports.
        domain: `domain.yaml`.
    """
    (folder / "domain.yaml").write_text(domain)
    (folder / "tools.py").write_text(TOOLS)
    (folder / "goals.py").write_text(IMPORTS + goals)
    return load_domain(folder)
