"""A tool server as somebody else may have written it: it knows nothing of muarl.

It speaks MCP over stdio, a line of JSON a message, with the standard library alone: it starts in the
time Python takes, and there is one per dialogue. Its orders live in this process. In your own
language take an SDK: https://modelcontextprotocol.io/docs/sdk
"""

import json
import sys
from typing import Any

ORDERS: dict[str, dict[str, str]] = {}


def find_order(order_id: str) -> str:
    """Item and status of an order."""
    if order_id not in ORDERS:
        raise LookupError(f"no order {order_id}")
    return f"{ORDERS[order_id]['item']}, {ORDERS[order_id]['status']}"


def cancel_order(order_id: str) -> str:
    """Cancel a pending order. Cannot be undone."""
    if "pending" not in find_order(order_id):
        raise LookupError(f"order is {ORDERS[order_id]['status']}")
    ORDERS[order_id]["status"] = "cancelled"
    return "ok"


def load_orders(orders: dict[str, dict[str, str]]) -> str:
    """Take over orders from elsewhere."""
    ORDERS.update(orders)
    return "ok"


def all_orders() -> str:
    """All orders, as JSON."""
    return json.dumps(ORDERS)


TOOLS: dict[str, tuple[Any, dict[str, str]]] = {
    "find_order": (find_order, {"order_id": "string"}),
    "cancel_order": (cancel_order, {"order_id": "string"}),
    "load_orders": (load_orders, {"orders": "object"}),
    "all_orders": (all_orders, {}),
}
"""Tool to function, and its parameters to their types."""


def schema(name: str) -> dict[str, Any]:
    """What a client is told of a tool."""
    function, parameters = TOOLS[name]
    properties = {parameter: {"type": kind} for parameter, kind in parameters.items()}
    return {
        "name": name,
        "description": function.__doc__,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": list(parameters),
            "additionalProperties": False,
        },
    }


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The result of a call; an error is a result as well, which the model reads."""
    try:
        text, failed = TOOLS[name][0](**arguments), False
    except (LookupError, TypeError) as error:
        text, failed = str(error), True
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The result, or the error, of a request."""
    if method == "initialize":
        result: dict[str, Any] = {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "orders", "version": "1"},
        }
    elif method == "tools/list":
        result = {"tools": [schema(name) for name in TOOLS]}
    elif method == "tools/call":
        result = call(params["name"], params.get("arguments") or {})
    elif method == "ping":
        result = {}
    else:
        return {"error": {"code": -32601, "message": f"no method {method}"}}
    return {"result": result}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:  # else it is a notification, which nobody answers
        reply = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
