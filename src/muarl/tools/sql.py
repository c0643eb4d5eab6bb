"""Tools that are SQL: an MCP server of the official SDK over a world of tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from mcp.server import Server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool

from muarl.errors import ToolServerError, did_you_mean
from muarl.spec.sql import SqlGuardSpec, SqlToolSpec, json_schema
from muarl.world import World, WorldProxy
from muarl.world.sql import Database, Exhausted, Refused, RowError, SqlWorld
from muarl.world.sql.transaction import Transaction

_SLOT = re.compile(r"\{([^{}]*)\}")


class _Answer(Exception):
    """What the policy reads where a call did nothing."""


def sql_server(tools: Mapping[str, SqlToolSpec]) -> Callable[[World], Server]:
    """What builds the server over a world; it keeps nothing of it, so it can be shared.

    Args:
        tools: Tool name to tool; checked against the world's tables already.
    """
    offered = [
        Tool(name=name, description=tool.description, input_schema=json_schema(tool))
        for name, tool in tools.items()
    ]

    def sql(world: World) -> Server:
        async def list_tools(_context: Any, _params: Any) -> ListToolsResult:
            return ListToolsResult(tools=offered)

        async def call_tool(_context: Any, params: CallToolRequestParams) -> CallToolResult:
            try:
                said = call(tools[params.name], world, params.arguments or {})
            except (Exhausted, RowError):
                raise  # the domain's SQL asked for too much, or wrote what no world can hold
            except (_Answer, Refused) as error:
                return CallToolResult(content=[_text(str(error))], is_error=True)
            return CallToolResult(content=[_text(said)])

        return Server("sql", on_list_tools=list_tools, on_call_tool=call_tool)

    return sql


def call(tool: SqlToolSpec, world: World, arguments: Mapping[str, Any]) -> str:
    """Call a tool: guards, statements and query in one transaction.

    Raises:
        _Answer: An argument is wrong, or a guard failed.
        Refused: SQLite would not do it.
        Exhausted: It took more of the machine than a call may.
        RowError: What was written is none of a world.
        ToolServerError: The world is none of tables.
    """
    given = _bound(tool, arguments)

    def work(transaction: Transaction) -> str:
        for guard in tool.guards:
            _check(guard, transaction, given)
        for statement in tool.statements:
            transaction.write(statement, given)
        if tool.query is None:
            return "ok" if tool.result is None else _worded(tool.result, given)
        return _answer(tool, transaction.query(tool.query, given, tool.max_rows + 1), given)

    return _database(world).transact(world, work)


def _database(world: World) -> Database:
    behind = world.behind if isinstance(world, WorldProxy) else world
    if not isinstance(behind, SqlWorld):
        raise ToolServerError("tools in SQL were called over a world that is none of tables")
    return behind.database


def _bound(tool: SqlToolSpec, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A value for every parameter.

    Raises:
        _Answer: Everything wrong with the arguments.
    """
    wrong = [
        f"{name}: there is no such parameter{did_you_mean(name, tool.parameters)}"
        for name in arguments
        if name not in tool.parameters
    ]
    bound: dict[str, Any] = {}
    for name, parameter in tool.parameters.items():
        value = arguments.get(name)
        if value is None:
            bound[name] = parameter.default
            if parameter.required:
                wrong.append(f"{name}: is missing")
        elif problem := parameter.problem(value):
            wrong.append(f"{name}: {problem}")
        else:
            # A model may write 3 for a real number, or 3.0 for a whole one.
            kind = {"integer": int, "number": float}.get(parameter.type)
            bound[name] = value if kind is None else kind(value)
    if wrong:
        raise _Answer(f"wrong arguments: {'; '.join(wrong)}")
    return bound


def _check(guard: SqlGuardSpec, transaction: Transaction, given: Mapping[str, Any]) -> None:
    row = next(iter(transaction.query(guard.query, given, 1)), {})
    if next(iter(row.values()), None) in (None, 0):
        raise _Answer(_worded(guard.error, {**given, **row}))


def _answer(tool: SqlToolSpec, rows: list[dict[str, Any]], given: Mapping[str, Any]) -> str:
    shown = rows[: tool.max_rows]
    if not rows:
        return tool.empty
    if tool.result is None:
        said = msgspec.json.encode(shown).decode()
    else:
        said = tool.separator.join(_worded(tool.result, {**given, **row}) for row in shown)
    more = f"\n[the first {len(shown)} rows; there are more]" if len(rows) > len(shown) else ""
    return said + more


def _worded(template: str, values: Mapping[str, Any]) -> str:
    def said(slot: re.Match[str]) -> str:
        value = values.get(slot[1])
        return "none" if value is None else str(value)

    return _SLOT.sub(said, template)


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)
