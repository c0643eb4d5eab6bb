"""Upstream's Python, read as text: literals, docstrings and prompts. Nothing is executed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from muarl.errors import SetupError

_MAX_DEPTH = 100
_SLOT = re.compile(r"\{(\w+)\}")


def parsed(source: str, name: str | Path) -> ast.Module:
    """A module as a tree.

    Raises:
        SetupError: It is no Python.
    """
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise SetupError(f"{name}: no Python that can be read: {error}") from None


def literal(node: ast.expr, depth: int = 0) -> Any:
    """The value of a literal; a call `Task(a=1)` is the mapping of its keywords.

    Example:
        >>> literal(ast.parse("Task(id='1', n=[-1, 2.0])", mode="eval").body)
        {'id': '1', 'n': [-1, 2.0]}

    Raises:
        ValueError: It is none; with the line.
    """
    if depth > _MAX_DEPTH:
        raise ValueError(f"line {node.lineno}: nested too deep")
    below = depth + 1
    match node:
        case ast.Constant(value=str() | int() | float() | bool() | None as value):
            return value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [literal(item, below) for item in items]
        case ast.Dict(keys=keys, values=values):
            return {
                literal(key, below): literal(value, below)
                for key, value in zip(keys, values, strict=True)
                if key is not None
            }
        case ast.Call(func=ast.Name(), args=[], keywords=keywords):
            return {k.arg: literal(k.value, below) for k in keywords if k.arg is not None}
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = literal(operand, below)
            if isinstance(value, (int, float)):
                return -value
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            both = literal(left, below), literal(right, below)
            if isinstance(both[0], str) and isinstance(both[1], str):
                return both[0] + both[1]
    raise ValueError(f"line {node.lineno}: {ast.unparse(node)[:60]!r} is no literal")


def lists(module: ast.Module) -> Iterator[tuple[str, ast.List]]:
    """Names at the top of a module that are given a list."""
    for statement in module.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.List() as value):
                yield name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.List() as value):
                yield name, value


def texts(module: ast.Module) -> dict[str, str]:
    """Names at the top of a module that are given a text, also one that is stripped."""
    found = {}
    for statement in module.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str() as text)):
                found[name] = text
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(
                    func=ast.Attribute(value=ast.Constant(value=str() as text), attr="strip"),
                    args=[],
                ),
            ):
                found[name] = text.strip()
    return found


def constants(module: ast.Module) -> dict[str, Any]:
    """Names at the top of a module that are given a literal, also one that names others before it.

    Example:
        >>> constants(ast.parse("A = 'a'; B = {'x': A + 'b'}; C = open(B)"))
        {'A': 'a', 'B': {'x': 'ab'}}
    """
    found: dict[str, Any] = {}
    for statement in module.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            try:
                found[statement.targets[0].id] = literal(_Named(found).visit(statement.value))
            except (ValueError, RecursionError):
                continue
    return found


class _Named(ast.NodeTransformer):
    """Puts texts in the place of their names."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        self._known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        known = self._known.get(node.id)
        return ast.copy_location(ast.Constant(known), node) if isinstance(known, str) else node


def filled(text: str, values: Mapping[str, str]) -> str:
    """A text with names in braces filled in, as far as they are known.

    In one pass, and never by `str.format`, which can do more than fill in names.

    Example:
        >>> filled("{a} {b} {a.__class__}", {"a": "{b}"})
        '{b} {b} {a.__class__}'
    """
    return _SLOT.sub(lambda slot: values.get(slot[1], slot[0]), text)


def functions(module: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Functions at the top of a module, and methods as `Class.method`."""
    for statement in module.body:
        if isinstance(statement, ast.FunctionDef):
            yield statement.name, statement
        elif isinstance(statement, ast.ClassDef):
            for member in statement.body:
                if isinstance(member, ast.FunctionDef):
                    yield f"{statement.name}.{member.name}", member


def template(function: ast.FunctionDef) -> str | None:
    """The longest f-string in a function, with what is filled in as `{name}`; None if it has none."""
    found = [_slotted(n) for n in ast.walk(function) if isinstance(n, ast.JoinedStr)]
    return max(found, key=len, default=None)


def _slotted(joined: ast.JoinedStr) -> str:
    parts = []
    for part in joined.values:
        if isinstance(part, ast.Constant):
            parts.append(str(part.value))
        elif isinstance(part, ast.FormattedValue):
            parts.append("{" + ast.unparse(part.value) + "}")
    return "".join(parts)


_ARGUMENT = re.compile(r"(\w+)\s*(?:\([^)]*\))?:\s*(.*)")
_SECTION = re.compile(
    r"(Args|Arguments|Parameters|Params|Returns?|Yields?|Raises|Examples?|Attributes):\s*$"
)


def described(docstring: str) -> tuple[str, Mapping[str, str]]:
    """What a docstring in Google's style says of a function, and of its parameters.

    The first line stands by itself: an empty line follows it, as in what upstream's schemas say.
    """
    lines = docstring.split("\n")
    starts = [i for i, line in enumerate(lines) if _SECTION.fullmatch(line)]
    about = lines[: starts[0]] if starts else lines
    first, rest = about[0].strip(), "\n".join(about[1:]).strip()
    description = f"{first}\n\n{rest}" if rest else first
    parameters: dict[str, str] = {}
    for start in starts:
        if not lines[start].startswith(("Args", "Arguments", "Parameters", "Params")):
            continue
        parameters |= _arguments(lines[start + 1 :])
    return description, parameters


def _arguments(lines: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    name = ""
    indent: int | None = None
    for line in lines:
        if line.strip() and not line.startswith((" ", "\t")):
            break
        depth = len(line) - len(line.lstrip())
        if line.strip() and indent is None:
            indent = depth
        match = _ARGUMENT.fullmatch(line.strip()) if depth == indent else None
        if match:
            name = match[1]
            found[name] = [match[2]]
        elif name:
            found[name].append(line.strip())
    return {name: "\n".join(said).strip() for name, said in found.items()}
