"""What the tools of tau-bench and tau2-bench are shown as: from the user's copy, word by word.

tau-bench writes its schemas out. tau2-bench makes them of signatures and docstrings as it runs; so
their forms are kept here, and what they say is read from the copy's docstrings.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from muarl.compat.python_text import described, functions, literal
from muarl.compat.upstream import Upstream, data_id
from muarl.errors import SetupError

Schema = dict[str, Any]
"""`{name, description, parameters}` of a function, as chat endpoints have it."""

_SIDES = {"assistant": "tools.py", "user": "user_tools.py"}
_MODELS = {"assistant": "data_model.py", "user": "user_data_model.py"}


def tau1_schemas(upstream: Upstream, domain: str) -> list[Schema]:
    """The schemas of a domain of tau-bench, in the order in which its agent is shown them.

    Raises:
        SetupError: The copy holds them in no known form.
    """
    if upstream.has(f"tool_schemas/{domain}.json"):
        given = upstream.json(None, f"tool_schemas/{domain}.json")
        schemas = [tool["function"] for tool in given]
    else:
        schemas = _written_out(upstream, domain)
    upstream.note(f"tau1/{domain}/tools", data_id(schemas))
    return schemas


def _written_out(upstream: Upstream, domain: str) -> list[Schema]:
    """What the tools' classes return, read as literals."""
    folder = f"tau_bench/envs/{domain}/tools"
    found = upstream.path(f"{folder}/__init__.py")
    if found is None:
        raise SetupError(f"{upstream.folder} has no {folder}, which is needed; is it a whole copy?")
    by_class = {}
    for path in sorted(found.parent.glob("*.py")):
        module = upstream.module(path)
        for name, function in functions(module):
            if name.endswith(".get_info"):
                try:
                    by_class[name.partition(".")[0]] = _returned(function)["function"]
                except (ValueError, KeyError, TypeError) as error:
                    raise SetupError(f"{path}: {name} returns no schema: {error}") from None
    order = _order(upstream.module(found))
    return [by_class[name] for name in order if name in by_class] or list(by_class.values())


def _returned(function: ast.FunctionDef) -> Any:
    for statement in ast.walk(function):
        if isinstance(statement, ast.Return) and statement.value is not None:
            return literal(statement.value)
    raise ValueError("nothing is returned")


def _order(module: ast.Module) -> list[str]:
    """The classes that a list at the top of a module names."""
    for statement in module.body:
        match statement:
            case ast.Assign(value=ast.List(elts=items)):
                return [item.id for item in items if isinstance(item, ast.Name)]
    return []


def tau2_schemas(upstream: Upstream, domain: str) -> dict[str, list[Schema]]:
    """The schemas of both sides of a domain of tau2-bench, `assistant` and `user`.

    Raises:
        SetupError: The copy has neither code nor recorded schemas.
    """
    recorded = f"tool_schemas/{domain}.json"
    if upstream.has(recorded):
        given = upstream.json(None, recorded)
        schemas = {side: [tool["function"] for tool in given.get(side, ())] for side in _SIDES}
    else:
        schemas = {
            side: list(_told(upstream, domain, side, forms))
            for side, forms in tool_forms()[domain].items()
        }
    if not schemas["assistant"]:
        raise SetupError(
            f"{upstream.folder} has no {_code(domain, 'tools.py')[0]}, whose docstrings say what the "
            "tools do; is it a whole copy?"
        )
    for side, tools in schemas.items():
        if tools:
            upstream.note(f"tau2/{domain}/{_SIDES[side]}", data_id(tools))
    return schemas


@cache
def tool_forms() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """Domain to side to tool to its parameters, without a word about them."""
    text = files("muarl.compat.tau").joinpath("tool_forms.json").read_text(encoding="utf-8")
    forms: Mapping[str, Mapping[str, Mapping[str, Any]]] = json.loads(text)
    return forms


def _told(upstream: Upstream, domain: str, side: str, forms: Mapping[str, Any]) -> Iterator[Schema]:
    """Those of the forms that the copy has a tool for, with what it says about them."""
    path = upstream.path(*_code(domain, _SIDES[side]))
    if path is None:
        return
    module = upstream.module(path)
    docstrings = {
        name.rpartition(".")[2]: ast.get_docstring(function) or ""
        for name, function in functions(module)
        if function.decorator_list
    }
    models = _models(upstream, upstream.path(*_code(domain, _MODELS[side])))
    for name, form in forms.items():
        if name in docstrings:
            description, parameters = described(docstrings[name])
            yield {
                "name": name,
                "description": description,
                "parameters": _worded(form, parameters, models),
            }


def _worded(
    form: Mapping[str, Any], said: Mapping[str, str], models: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    """Parameters with a description at each property that something is said of."""
    worded = {**form, "properties": _each(form["properties"], said)}
    if "$defs" in form:
        worded["$defs"] = {
            name: _of_model(model, models.get(name, {})) for name, model in form["$defs"].items()
        }
    return worded


def _of_model(model: Mapping[str, Any], said: Mapping[str, str]) -> Mapping[str, Any]:
    if "properties" in model:  # an enumeration has none
        model = {**model, "properties": _each(model["properties"], said)}
    return _with(model, said[_ITSELF]) if _ITSELF in said else model


def _each(properties: Mapping[str, Any], said: Mapping[str, str]) -> dict[str, Any]:
    return {
        name: _with(form, said[name]) if name in said else form for name, form in properties.items()
    }


def _with(form: Mapping[str, Any], description: str) -> dict[str, Any]:
    """A form with its description where pydantic writes it: keys are in order."""
    return dict(sorted({**form, "description": description}.items()))


_ITSELF = ""
"""Stands for a class among what is said of its fields."""


def _models(upstream: Upstream, path: Path | None) -> dict[str, dict[str, str]]:
    """Class to field to its description, in a data model of the copy's."""
    if path is None:
        return {}
    module = upstream.module(path)
    return {
        model.name: dict(_fields(model)) for model in module.body if isinstance(model, ast.ClassDef)
    }


def _fields(model: ast.ClassDef) -> Iterator[tuple[str, str]]:
    if docstring := ast.get_docstring(model):
        yield _ITSELF, docstring
    for statement in model.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Call(keywords=keywords)):
                for keyword in keywords:
                    if keyword.arg == "description":
                        yield name, str(literal(keyword.value))


def _code(domain: str, file: str) -> Sequence[str]:
    return (
        f"src/tau2/domains/{domain}/{file}",
        f"tau2/domains/{domain}/{file}",
        f"domains/{domain}/{file}",
    )
