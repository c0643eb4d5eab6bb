"""Long texts of a spec in files of their own: `rules: {file: rules.md}`.

The text takes the mapping's place as the spec is read, so that what a domain says is the same, and has
the same hash, whichever way it is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from muarl.errors import Problem, SpecError
from muarl.spec.document import Node
from muarl.spec.named_files import leads_outside, no_file
from muarl.spec.source import read_source


def read_in(root: Node, patterns: Iterable[tuple[str, ...]], folder: Path) -> Iterator[Problem]:
    """Put the texts of files in the place of the mappings that name them.

    Args:
        root: A spec's document; changed.
        patterns: Paths of texts; `*` stands for any key.
        folder: The files are relative to it.

    Yields:
        What is wrong with the files.
    """
    for pattern in patterns:
        for holder, key in list(_at(root, pattern)):
            node = holder.children[key]
            if not isinstance(node.data, dict) or list(node.data) != ["file"]:
                continue
            name = node.children["file"]
            if not isinstance(name.data, str):
                continue
            text = ""
            try:
                if message := leads_outside(name.data):
                    yield Problem(*name.place, message)
                elif not (folder / name.data).is_file():
                    yield Problem(*name.place, no_file(folder, name.data))
                else:
                    text = read_source(folder / name.data).rstrip("\n")
            except SpecError as error:
                yield from error.problems
            except (OSError, ValueError) as error:
                yield Problem(*name.place, f"{name.data!r} is no path: {error}")
            holder.children[key] = replace(node, data=text, children={}, keys={})
            holder.data[key] = text


def _at(node: Node, pattern: tuple[str, ...]) -> Iterator[tuple[Node, str]]:
    """What holds a value at a path, and its key there."""
    first, *rest = pattern
    for key in list(node.children) if first == "*" else [first]:
        if isinstance(key, str) and (child := node.children.get(key)) is not None:
            if rest:
                yield from _at(child, tuple(rest))
            else:
                yield node, key
