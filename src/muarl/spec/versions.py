"""Old forms of spec files: each is read as the one that follows it, up to today's.

A change of a file kind's form that breaks old files gives its model a new `version` and enters a
function into `UPGRADES`, which changes a document of the version before in place. `rename` keeps a key's
comment and place. The same functions let old files be read, and let `muarl check --fix` rewrite them
with their comments.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from muarl.errors import OldVersionWarning, Problem
from muarl.spec.base import Spec
from muarl.spec.document import Node, Place, parse_document
from muarl.spec.schema import KINDS, newest_version
from muarl.version import __version__

Upgrade = Callable[[CommentedMap], None]
"""Changes a whole document of one version into one of the next; the `version` itself is seen to."""

UPGRADES: dict[str, dict[int, Upgrade]] = {kind: {} for kind in KINDS}
"""Kind of file and version to what makes the next version of it."""

_INDENTED_LIST = re.compile(
    r"^( *)[^\s#-][^\n]*:[ \t]*(?:#[^\n]*)?\n(?: *(?:#[^\n]*)?\n)*\1 +- ", re.MULTILINE
)


def version_of(root: Node) -> int | None:
    """The version that a document says it has; None if it says none that is a number."""
    version = root.data.get("version")
    return version if type(version) is int else None


def too_new(root: Node, model: type[Spec]) -> Problem | None:
    """What to say of a document that a later muarl wrote."""
    version, newest = version_of(root), newest_version(model)
    if version is None or version <= newest:
        return None
    return Problem(
        *root.children["version"].place,
        f"version {version} is newer than muarl {__version__} reads ({newest}); write {newest}, or "
        "use the muarl that the file was written for",
    )


def is_old(root: Node, model: type[Spec]) -> bool:
    """Whether a document has an old form that can be upgraded."""
    version = version_of(root)
    return version is not None and version in UPGRADES.get(_kind(model), {})


def upgraded(root: Node, text: str, model: type[Spec]) -> Node:
    """An old document as it would be today; what stands in the file keeps its place in it.

    Args:
        root: The document, of which `is_old` holds.
        text: Its text.
        model: Today's.
    """
    path = root.place.path
    warnings.warn(
        f"{path}: version {version_of(root)} of a {_kind(model)} file is old; "
        f"`muarl check --fix {path}` rewrites it as version {newest_version(model)}",
        OldVersionWarning,
        stacklevel=2,
    )
    document = _upgraded(text, model)
    new, _ = parse_document(_written(document, text), path)
    _stand(new, document, root.place)
    return new


def upgraded_text(text: str, model: type[Spec]) -> str:
    """The text of an old file in today's form, with its comments."""
    return _written(_upgraded(text, model), text)


def rename(mapping: CommentedMap, old: str, new: str) -> None:
    """Give a key another name; it keeps its order, its comment and its place in the file."""
    if old not in mapping:
        return
    order = list(mapping).index(old)
    comment, place = mapping.ca.items.pop(old, None), mapping.lc.data.get(old)
    mapping.insert(order, new, mapping.pop(old))
    if comment is not None:
        mapping.ca.items[new] = comment
    mapping.lc.data[new] = place


def _kind(model: type[Spec]) -> str:
    return next((kind for kind, one in KINDS.items() if one is model), "")


def _upgraded(text: str, model: type[Spec]) -> CommentedMap:
    document: CommentedMap = _round_trip().load(text)
    upgrades, newest = UPGRADES[_kind(model)], newest_version(model)
    for version in range(document["version"], newest):
        upgrades[version](document)
    document["version"] = newest
    return document


def _written(document: CommentedMap, text: str) -> str:
    yaml = _round_trip()
    if _INDENTED_LIST.search(text):
        yaml.indent(mapping=2, sequence=4, offset=2)
    out = io.StringIO()
    yaml.dump(document, out)
    return out.getvalue()


def _round_trip() -> YAML:
    yaml = YAML(typ="rt", pure=True)
    yaml.preserve_quotes = True
    yaml.width = 2**16  # lines stay as they are
    return yaml


def _stand(node: Node, source: Any, place: Place) -> None:
    """Let a document stand where its source does in the file; what is new, where its holder does."""
    node.place = place
    for at, child in node.children.items():
        marks = source.lc.data.get(at) if isinstance(source, (CommentedMap, CommentedSeq)) else None
        value = place
        if marks is not None:
            value = Place(place.path, marks[-2] + 1, marks[-1] + 1)
        if isinstance(at, str):
            node.keys[at] = Place(place.path, marks[0] + 1, marks[1] + 1) if marks else place
        _stand(child, source[at] if marks is not None else None, value)
