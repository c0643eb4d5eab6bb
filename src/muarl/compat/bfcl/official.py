"""The official checker, where the user has installed the package `bfcl-eval`.

It hands its calls to `eval`. So it is given none but calls, nested ones too, of functions that the entry
has with literals by name; whatever else a model wrote stands there as a call of nothing.
"""

from __future__ import annotations

import ast
import itertools
import sys
from collections.abc import Callable, Container, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from muarl.compat.bfcl.checker import Verdict
from muarl.compat.bfcl.entries import Entry
from muarl.compat.bfcl.toolkit import Version
from muarl.compat.python_calls import NotCalls, expression
from muarl.errors import SetupError

_UTILS = "bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils"
_CHECKER = "bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker"
_PACKAGES: dict[Version, str] = {"v3": "bfcl-eval==2025.7.17", "v4": "bfcl-eval==2026.3.23"}
NOTHING = "nothing_that_there_is()"
"""Stands for a call that the official checker is not trusted with: there, too, it is an error."""

_judged = itertools.count()
"""The package keeps instances by the name of a model; each dialogue is judged under a new one."""


def installed(version: Version) -> Path | None:
    """Where the package is, if it is there and has this version's entries."""
    found = find_spec("bfcl_eval")
    for folder in (found.submodule_search_locations or ()) if found is not None else ():
        if (Path(folder) / "data" / f"BFCL_{version}_multi_turn_base.json").is_file():
            return Path(folder)
    return None


def official_verdict(
    entry: Entry, version: Version, model: Sequence[Sequence[Sequence[str]]]
) -> Verdict:
    """What the official checker says of an entry.

    Args:
        entry: The entry.
        version: Of which version.
        model: By turn and step, calls that are safe to evaluate.

    Raises:
        SetupError: The package is not installed, or is of another version.
    """
    check = _checker(version)
    if len(model) != len(entry.ground_truth):  # its runner asks this before it calls the checker
        return Verdict(valid=False, error="multi_turn:force_terminated")
    name = f"muarl{next(_judged)}"
    try:
        said = check(
            [[list(step) for step in turn] for turn in model],
            [list(turn) for turn in entry.ground_truth],
            msgspec.to_builtins(entry),
            entry.id.rpartition("_")[0],
            name,
        )
    finally:
        _forget(name)
    return Verdict(valid=said["valid"], error=said.get("error_type"))


def require(version: Version) -> None:
    """Say so where the package is not there.

    Raises:
        SetupError: It is not installed, or is of another version.
    """
    if installed(version) is None:
        raise SetupError(
            f"the official checker of BFCL {version.upper()} is not installed: pip install --no-deps "
            f"{_PACKAGES[version]}, beside muarl[bfcl]; or import the domain without --official-checker"
        )


def trusted(call: str, functions: Container[str]) -> str:
    """A call, if it is safe to evaluate; else a call of nothing.

    Args:
        call: Its text.
        functions: Those that may be called.
    """
    try:
        body = expression(call)
        is_safe = isinstance(body, ast.Call) and _is_safe(body, functions)
    except (NotCalls, RecursionError):
        is_safe = False
    return call if is_safe else NOTHING


def _is_safe(node: ast.expr, functions: Container[str]) -> bool:
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
            return True
        case ast.List(elts=items):
            return all(_is_safe(item, functions) for item in items)
        case ast.Dict(keys=keys, values=values):
            return all(key is not None and _is_safe(key, functions) for key in keys) and all(
                _is_safe(value, functions) for value in values
            )
        case ast.Call(func=ast.Name(id=name), args=[], keywords=keywords):
            return name in functions and all(
                keyword.arg is not None and _is_safe(keyword.value, functions)
                for keyword in keywords
            )
    return False


def _checker(version: Version) -> Callable[..., Any]:
    require(version)
    try:
        check: Callable[..., Any] = import_module(_CHECKER).multi_turn_checker
    except ImportError as error:
        raise SetupError(f"the official checker of BFCL cannot be imported: {error}") from None
    return check


def _forget(name: str) -> None:
    """Drop the instances of one judgement, which the package keeps for ever."""
    kept = vars(sys.modules[_UTILS])
    for key in [key for key in kept if key.startswith(f"{name}_")]:
        del kept[key]
