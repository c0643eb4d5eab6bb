"""Small sound spec files, and ways to spoil them."""

from __future__ import annotations

from pathlib import Path

from muarl.errors import SpecError

DOMAIN = """\
version: 1
id: shop
summary: A shop.
rules: Be kind.
tools:
  python: tools.py:serve
writes: [cancel]
world:
  data:
    orders:
      W1: {status: pending}
tasks:
  files: [tasks.yaml]
personas:
  plain:
    style: plain
  terse:
    style: terse
    weight: 0
    disclose: {order_id: on_request}
user:
  understands:
    confirm: [shall I]
    ask:order_id: [which order]
    done: [anything else]
  phrasings:
    any:
      open: ["I want to {request}."]
      ask:cancel: ["cancel {order_id}", "cancel an order"]
      tell:order_id: ["It is {order_id}."]
      confirm: ["Yes."]
      deny: ["No."]
      unknown: ["I do not know."]
      unclear: ["Sorry?"]
      abandon: ["Bye."]
      stop: ["Thanks."]
reward:
  - gold_world: true
"""

TASKS = """\
version: 1
domain: shop
tasks:
  - id: cancel-1
    goal: Cancel W1.
    personas: [plain, terse]
    user:
      requests:
        - ask: cancel
          facts: [{id: order_id, value: W1}]
    gold:
      - tool: cancel
        arguments: {order_id: W1}
"""

RUN = """\
version: 1
domain: domain.yaml
model: {tiny: {}}
grpo: {iterations: 3}
"""


GRID = """\
version: 1
run: run.yaml
policies:
  cold: {cold_start: run}
  trained: {model: run}
  idle: {trivial: do_nothing}
users:
  own: {scripted: {}}
  other: {scripted: {knobs: {no_follow_up: 1}}}
gain: {cold: cold, trained: trained, user: own}
tasks: 3
"""


TOOLS = """\
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError


def serve(world):
    server = MCPServer("shop")

    @server.tool()
    async def look(order_id: str) -> str:
        return world["orders"][order_id]["status"]

    @server.tool()
    async def cancel(order_id: str) -> str:
        if order_id not in world["orders"]:
            raise ToolError(f"no order {order_id}")
        world["orders"][order_id]["status"] = "cancelled"
        return "ok"

    return server
"""

EXPERT = """\
import re
from muarl.messages import Message, ToolCall


class Expert:
    def __init__(self, task, imperfections, rng):
        self.order = None

    def act(self, history):
        last = history[-1]
        if last.role == "tool":
            return Message(role="assistant", content="Done. Anything else?")
        named = re.search(r"W\\d", last.content)
        self.order = named[0] if named else self.order
        if self.order is None:
            return Message(role="assistant", content="Which order?")
        if "Yes" not in last.content:
            return Message(role="assistant", content=f"Cancel {self.order}, shall I?")
        call = ToolCall(id="1", name="cancel", arguments={"order_id": self.order})
        return Message(role="assistant", content="", tool_calls=(call,))
"""


def write_all(folder: Path) -> None:
    """A domain with tasks, a server and a run, all sound."""
    (folder / "domain.yaml").write_text(DOMAIN)
    (folder / "tasks.yaml").write_text(TASKS)
    (folder / "run.yaml").write_text(RUN)
    (folder / "tools.py").write_text(TOOLS)
    (folder / "expert.py").write_text(EXPERT)


def spoil(path: Path, old: str, new: str) -> None:
    """Replace the first occurrence of `old`, which must be there."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def said(error: SpecError) -> list[str]:
    """Problems as `line:column: message`, without the folder."""
    return [f"{p.line}:{p.column}: {p.message}" for p in error.problems]
