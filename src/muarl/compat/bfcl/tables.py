"""Constants of upstream's classes, read from its Python as text: what `Upstream` is asked for.

They take the form in which they are exported where there is no Python: `backend_tables.json` and
`long_context_constants.json`, see `Upstream`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from muarl.compat.python_text import functions, literal, parsed
from muarl.compat.upstream import Upstream as Copy
from muarl.errors import SetupError

TABLES, LONG = "backend_tables.json", "long_context_constants.json"
_CODE = "eval_checker/multi_turn_eval/func_source_code"
_ASKED: Mapping[str, tuple[tuple[str, str], ...]] = {
    "gorilla_file_system": (),
    "math_api": (("MathAPI.si_unit_conversion", "to_meters"),),
    "message_api": (("", "DEFAULT_STATE"),),
    "posting_api": (("", "DEFAULT_STATE"),),
    "ticket_api": (("", "DEFAULT_STATE"),),
    "trading_bot": (
        ("", "DEFAULT_STATE"),
        ("TradingBot.get_symbol_by_name", "symbol_map"),
        ("TradingBot.get_available_stocks", "sector_map"),
    ),
    "travel_booking": (
        ("", "DEFAULT_STATE"),
        ("TravelAPI.get_flight_cost", "base_costs"),
        ("TravelAPI.list_all_airports", "return"),
        ("TravelAPI.compute_exchange_rate", "exchange_rates"),
        ("TravelAPI.get_nearest_airport_by_city", "airport_map"),
        ("TravelAPI.contact_customer_support", "return"),
    ),
    "vehicle_control": (
        ("", "DEFAULT_STATE"),
        ("VehicleControlAPI.find_nearest_tire_shop", "return"),
    ),
}
"""By module of the copy: of which function, under which name; `return` is what it returns."""


def constants(copy: Copy) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tables of the classes, and the long texts.

    Raises:
        SetupError: The copy has neither the classes' Python nor what was exported from it.
    """
    if copy.has(TABLES) and copy.has(LONG):
        return _exported(copy.json(None, TABLES)), copy.json(None, LONG)
    tables = {module: list(_tables(copy, module)) for module in _ASKED}
    assigned = _assigned(_module(copy, "long_context").body)
    return tables, {name: _value(node, name) for name, node in assigned.items()}


def _exported(tables: Any) -> dict[str, Any]:
    """Of exported tables those that are asked for, so that both ways to them give the same."""
    try:
        return {
            module: [
                next(e for e in tables[module] if (e["where"], e["name"]) == wanted)
                for wanted in asked
            ]
            for module, asked in _ASKED.items()
        }
    except (KeyError, TypeError, StopIteration):
        raise SetupError(f"{TABLES} lacks tables of BFCL's classes; is it a whole copy?") from None


def _tables(copy: Copy, module: str) -> Iterator[dict[str, Any]]:
    tree = _module(copy, module) if _ASKED[module] else ast.Module([], [])
    methods = dict(functions(tree))
    for where, name in _ASKED[module]:
        place = f"{name} of {where or module}"
        body = tree.body if not where else getattr(methods.get(where), "body", [])
        nodes = dict(_returned(body)) if name == "return" else _assigned(body)
        if name not in nodes:
            raise SetupError(f"{copy.folder}: {_CODE}/{module}.py has no {place}")
        yield {"where": where, "name": name, "value": _value(nodes[name], place)}


def _module(copy: Copy, name: str) -> ast.Module:
    file = f"{_CODE}/{name}.py"
    return parsed(copy.text(None, file), file)


def _assigned(body: list[ast.stmt]) -> dict[str, ast.expr]:
    found: dict[str, ast.expr] = {}
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                found[name] = value
    return found


def _returned(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for statement in body:
        if isinstance(statement, ast.Return) and statement.value is not None:
            yield "return", statement.value


def _value(node: ast.expr, place: str) -> Any:
    try:
        return _marked(node)
    except ValueError as error:
        raise SetupError(f"{_CODE}: {place}: {error}") from None


def _marked(node: ast.expr) -> Any:
    """A literal's value, with marks for what JSON has not."""
    match node:
        case ast.Constant(value=value) if value is ...:
            return {"__python__": "Ellipsis"}
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_marked(item) for item in items]
        case ast.Set(elts=items):
            return {"__set__": sorted(_marked(item) for item in items)}
        case ast.Call(func=ast.Name(id="set"), args=[], keywords=[]):
            return {"__set__": []}
        case ast.Dict(keys=keys, values=values):
            pairs = [
                (_marked(key), _marked(value))
                for key, value in zip(keys, values, strict=True)
                if key is not None
            ]
            if all(isinstance(key, str) for key, _ in pairs):
                return dict(pairs)
            return {"__pairs__": [[key, value] for key, value in pairs]}
    return literal(node)
