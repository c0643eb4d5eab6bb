"""`${env:NAME}` and `${env:NAME:-default}`: values of a run or grid file that the machine gives.

A variable stands for a whole value. What it holds is one scalar, read as YAML reads a plain one where
the reference stands without quotes, and text where it stands in quotes; it can bring in neither
structure nor another reference. Domains, tasks and rewards have no variables: their content must be
the same everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from muarl.errors import Problem, did_you_mean
from muarl.spec.base import SECRET_KEY
from muarl.spec.document import Node
from muarl.spec.scalar import ScalarError, resolve

BEGINS = "${env:"
"""How a reference begins."""

_REFERENCE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?\}", re.DOTALL)


def is_reference(text: str) -> bool:
    """Whether a text is a reference, well-formed or not, from its first to its last character."""
    return text.startswith(BEGINS) and text.endswith("}")


def fill_in(root: Node, environment: Mapping[str, str]) -> Iterator[Problem]:
    """Put the values of variables in the place of references to them.

    Args:
        root: A run or grid file's document; changed.
        environment: Variables and their values.

    Yields:
        What is wrong with references, each at its place.
    """
    for holder, at, node in _texts(root):
        if BEGINS not in node.data:
            continue
        try:
            value = _value(str(at), node, environment)
        except ValueError as error:
            yield Problem(*node.place, str(error))
            value = None
        holder.children[at] = replace(node, data=value)
        holder.data[at] = value


def refuse(root: Node) -> Iterator[Problem]:
    """What is wrong with references in a file that has none."""
    for _, _, node in _texts(root):
        if is_reference(node.data):
            message = (
                f"{node.data!r}: environment variables are for run and grid files, since the content of all "
                "other files must be the same everywhere; write the value (a tool server gets "
                "variables by name, under `secrets`)"
            )
            yield Problem(*node.place, message)


def _texts(node: Node) -> Iterator[tuple[Node, str | int, Node]]:
    """Texts of a document, each with what holds it and where."""
    for at, child in list(node.children.items()):
        if isinstance(child.data, str):
            yield node, at, child
        else:
            yield from _texts(child)


def _value(key: str, node: Node, environment: Mapping[str, str]) -> object:
    """What a reference stands for.

    Raises:
        ValueError: It is none, it may not stand here, or it stands for nothing.
    """
    found = _REFERENCE.fullmatch(node.data)
    if not found:
        whole = "" if is_reference(node.data) else "a variable stands for a whole value: "
        raise ValueError(
            f"{whole}expected ${{env:NAME}} or ${{env:NAME:-default}}, got {node.data[:60]!r}"
        )
    name, default = found.groups()
    if key.endswith("_env"):
        raise ValueError(f"{key!r} is the name of a variable: write {name}, without ${{env:...}}")
    if SECRET_KEY.search(key):
        raise ValueError(
            f"{key!r} looks like a secret, and what a variable holds is recorded with the run; "
            "secrets are given by name, in keys that end in _env"
        )
    value = environment.get(name) or default
    if value is None:
        lack = "is empty" if name in environment else "is not set"
        hint = "" if name in environment else did_you_mean(name, environment)
        raise ValueError(
            f"the environment variable {name!r} {lack}; set it, or write a default: "
            f"${{env:{name}:-...}}{hint}"
        )
    if BEGINS in value or not value.isprintable():
        raise ValueError(f"the environment variable {name!r} holds what is no plain value")
    try:
        return value if node.quoted else resolve(value)
    except ScalarError as error:
        raise ValueError(f"the environment variable {name!r}: {error}") from error
