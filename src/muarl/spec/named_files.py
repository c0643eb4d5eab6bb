"""Files that a spec names, and the Python in them, which is read and never imported."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

from muarl.errors import did_you_mean, nearest_file


def leads_outside(reference: str) -> str:
    """Why what a domain names is not in its folder, or ""; links in the folder may lead anywhere."""
    path = PurePath(reference)
    if not path.is_absolute() and ".." not in path.parts:
        return ""
    return (
        f"{reference!r} leads out of the folder of this file, which holds all that a domain is made of; "
        "put it there, or a link to it"
    )


def no_file(folder: Path, reference: str, what: str = "file") -> str:
    """What to say of a file or folder that is not there, or cannot be read."""
    target = folder / reference
    if os.path.lexists(target):
        return f"{reference!r} is there, but is no {what} that can be read"
    try:
        beside = [entry.name for entry in target.parent.iterdir()]
    except OSError:
        beside = []
    near = nearest_file(target.name, beside)
    hint = f"; did you mean {os.path.join(os.path.dirname(reference), near)!r}?" if near else ""
    return f"no such file: {reference!r}{hint}"


def no_python(folder: Path, reference: str) -> str:
    """Why `file.py:name` cannot be found, or ""; read, never imported."""
    file, _, name = reference.partition(":")
    if not os.path.isfile(folder / file):
        return no_file(folder, file)
    try:
        tree = ast.parse((folder / file).read_bytes())
    except SyntaxError as error:
        at = f"{folder / file}:{error.lineno}:{error.offset}" if error.lineno else file
        return f"{file} is not readable Python: {error.msg} ({at})"
    except (ValueError, RecursionError, MemoryError, OSError) as error:
        return f"{file} is not readable Python: {error}"
    names = set(_top_level_names(tree.body))
    if name in names or "*" in names:
        return ""
    return f"{file} has no {name!r}{did_you_mean(name, sorted(names))}"


def _top_level_names(body: Sequence[ast.stmt]) -> Iterator[str]:
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name):
                yield name
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                yield from (alias.asname or alias.name for alias in aliases)
            case ast.Assign() | ast.AnnAssign():
                yield from (n.id for n in ast.walk(statement) if isinstance(n, ast.Name))
            case ast.If() | ast.Try():
                inner = [s for s in ast.walk(statement) if isinstance(s, ast.stmt)]
                yield from _top_level_names([s for s in inner if s is not statement])
