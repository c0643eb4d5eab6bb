"""A small MCP server over stdio, run as a script: `mcp_script.py [fault]`; see `servers.py`.

It speaks the protocol by hand, so that it starts in milliseconds and can break it on purpose.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

OVERSIZED = 5_000_000
"""Characters of a result that nobody asked for."""

TOOLS = {
    "put": {"key": {"type": "string"}, "value": {}},
    "get": {"key": {"type": "string"}},
    "environment": {},
    "folder": {},
}


def serve(fault: str | None) -> None:
    """Answer requests until the input ends."""
    if fault == "raise_at_start":
        raise RuntimeError("no database")
    if fault == "hang_at_start":
        time.sleep(3600)
    if fault == "outlive":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    world: dict[str, Any] = {"made": "up"}
    if fault != "other_world":
        with open(os.environ["MUARL_WORLD"], encoding="utf-8") as file:
            world = json.load(file)
    for line in sys.stdin:
        if fault == "rubbish":
            say("Listening on port 8080")
            continue
        message = json.loads(line)
        if "id" in message:
            reply = answer(message["method"], message.get("params", {}), world, fault)
            line = json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply})
            if fault == "invalid_utf8" and message["method"] == "tools/call":
                say_bytes(line.encode().replace(b'"text": "', b'"text": "caf\xe9 \xff'))
            else:
                say(line)
    if fault == "outlive":
        time.sleep(3600)


def say(line: str) -> None:
    """Write one line to stdout at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def say_bytes(line: bytes) -> None:
    """Write one line that need not be text."""
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def answer(
    method: str, params: dict[str, Any], world: dict[str, Any], fault: str | None
) -> dict[str, Any]:
    """The result or the error of one request."""
    if method == "initialize":
        return result(
            protocolVersion=params["protocolVersion"],
            capabilities={"tools": {}, "resources": {}},
            serverInfo={"name": "small", "version": "1"},
        )
    if method == "tools/list":
        return result(
            tools=[
                {
                    "name": name,
                    "description": f"The tool {name}.",
                    "inputSchema": {"type": "object", "properties": properties},
                }
                for name, properties in TOOLS.items()
            ]
        )
    if method == "tools/call":
        if fault == "raise_in_call":
            return {"error": {"code": -32603, "message": "Internal server error"}}
        try:
            text, bad = call(params["name"], params.get("arguments", {}), world, fault), False
        except KeyError as error:
            text, bad = f"no {error}", True
        if fault == "oversized_result":
            text += " " + "x" * OVERSIZED
        if fault == "half_a_message":
            sys.stdout.write('{"jsonrpc": "2.0", "id": 1, "result": {"content": [{"te')
            sys.stdout.flush()
            sys.exit("killed while it wrote")
        if fault == "half_a_character":
            text += "\ud83d"
        return result(content=[{"type": "text", "text": text}], isError=bad)
    if method == "resources/read" and fault != "no_world":
        text = "not json" if fault == "not_json" else json.dumps(world)
        return result(contents=[{"uri": params["uri"], "text": text}])
    return {"error": {"code": -32601, "message": f"no {method} here"}}


def result(**fields: Any) -> dict[str, Any]:
    """A successful reply."""
    return {"result": fields}


def call(name: str, arguments: dict[str, Any], world: dict[str, Any], fault: str | None) -> str:
    """Run one tool."""
    if fault == "die_in_call":
        sys.exit("the disk is full")
    if fault == "hang_in_call":
        time.sleep(3600)
    if name == "put":
        world[arguments["key"]] = arguments["value"]
        return "ok"
    if name == "get":
        return json.dumps(world[arguments["key"]])
    if name == "folder":
        return os.getcwd()
    return json.dumps(dict(os.environ))


if __name__ == "__main__":
    serve(sys.argv[1] if len(sys.argv) > 1 else None)
