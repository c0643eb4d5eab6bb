"""A user's copy of a public benchmark: where its files are, and which version they are.

Nothing is downloaded and nothing of it is executed: Python is read as text. A copy is somebody else's, and
may be made to harm: what leads out of it is not followed, what is too large is not read, and JSON is taken
as strictly as the standard has it (of two equal keys the last counts, as for upstream's own code).
"""

from __future__ import annotations

import ast
import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from muarl.compat.python_text import parsed
from muarl.errors import SetupError

LARGEST = 256 * 2**20
"""Bytes of a file; the largest that there is has 14 million."""


_GZIP = zlib.MAX_WBITS | 16
"""What tells `zlib` of the header that gzip writes."""


def blob_id(data: bytes) -> str:
    """What git calls a file: SHA-1 of a header and its content.

    Example:
        >>> blob_id(b"")
        'e69de29bb2d1d6434b8b29ae775ad8c2e48c5391'
    """
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def data_id(value: Any) -> str:
    """The same for data that was read from Python: of its JSON with sorted keys."""
    return blob_id(json.dumps(value, sort_keys=True).encode())


@cache
def known_files() -> Mapping[str, Mapping[str, str]]:
    """File of a benchmark to the ids of its known contents; to the versions that have it."""
    known: Mapping[str, Mapping[str, str]] = json.loads(
        files("muarl.compat").joinpath("known_files.json").read_text(encoding="utf-8")
    )
    return known


class Upstream:
    """The files of a copy, found in any of its known layouts, and checked as they are read.

    Attributes:
        read: Each file that was read, by its name in `known_files`, and its id.
        unknown: Those whose content is of no known version, likewise.
    """

    def __init__(self, folder: Path, layouts: Sequence[str], where: Mapping[str, str]) -> None:
        """Look into a folder.

        Args:
            folder: The copy.
            layouts: Folders below it that may hold what is looked for, the first of them first.
            where: Where files are to be had that a copy may lack, by name.
        """
        self.folder = folder
        self.read: dict[str, str] = {}
        self.unknown: dict[str, str] = {}
        self._roots = [root for layout in layouts if (root := folder / layout).is_dir()]
        self._bounds = [
            folder.resolve(),
            *(folder.resolve().parent for at in layouts if at == ".."),
        ]
        self._where = where

    def path(self, *names: str) -> Path | None:
        """Where the first of some files is that is there; `.gz` may be left out."""
        for name in names:
            for root in self._roots:
                for path in (root / name, root / f"{name}.gz"):
                    if path.is_file():
                        return path
        return None

    def has(self, *names: str) -> bool:
        """Whether one of some files is there."""
        return self.path(*names) is not None

    def data(self, called: str | None, *names: str) -> bytes:
        """A file's content.

        Args:
            called: What it is called in `known_files`; None where its content is noted once it is
                understood.
            names: Its paths in the layouts; the first that is there counts.

        Raises:
            SetupError: It is not there; says where it is to be had.
        """
        path = self.path(*names)
        if path is None:
            where = self._where.get(called or "", "")
            raise SetupError(
                f"{self.folder} has no {names[0]}, which is needed"
                + (f"; {where}" if where else "; is it a whole copy?")
            )
        content = self.content(path)
        if called is not None:
            self.note(called, blob_id(content))
        return content

    def content(self, path: Path) -> bytes:
        """The content of a file that was found in the copy, unzipped.

        Raises:
            SetupError: It lies elsewhere, is too large, or cannot be read.
        """
        if not any(path.resolve().is_relative_to(bound) for bound in self._bounds):
            raise SetupError(
                f"{path} leads out of {self.folder}, and is not followed; copy it there"
            )
        try:
            with path.open("rb") as file:
                content = file.read(LARGEST + 1)
            if path.suffix == ".gz":
                content = zlib.decompressobj(_GZIP).decompress(content, LARGEST + 1)
        except (OSError, zlib.error) as error:
            raise SetupError(f"{path} cannot be read: {error}") from None
        if len(content) > LARGEST:
            raise SetupError(f"{path} is larger than {LARGEST} bytes, as nothing of a benchmark is")
        return content

    def module(self, path: Path) -> ast.Module:
        """A file of Python as a tree; errors as of `content`, or that it is no Python."""
        return parsed(as_text(self.content(path), path), path)

    def text(self, called: str | None, *names: str) -> str:
        """A text; arguments and errors as of `data`.

        Raises:
            SetupError: It is none.
        """
        return as_text(self.data(called, *names), self.path(*names))

    def json(self, called: str | None, *names: str) -> Any:
        """A JSON file; arguments and errors as of `data`.

        Raises:
            SetupError: It is none.
        """
        return as_json(self.data(called, *names), str(self.path(*names)))

    def note(self, called: str, content_id: str) -> None:
        """That a file was read, and what was in it."""
        self.read[called] = content_id
        if content_id not in known_files().get(called, {}):
            self.unknown[called] = content_id

    def versions(self, called: str) -> str | None:
        """Which versions have what was read; None if none is known."""
        return known_files().get(called, {}).get(self.read.get(called, ""))

    def refuse_unknown(self) -> None:
        """Say so where a file is of no known version.

        Raises:
            SetupError: Names each, and the versions that are known.
        """
        if not self.unknown:
            return
        lines = [
            f"{name} ({content_id[:12]}; known: {_named(known_files().get(name, {}))})"
            for name, content_id in sorted(self.unknown.items())
        ]
        raise SetupError(
            "of no version that is known here: " + ", ".join(lines) + ". Scores on it are "
            "comparable with nothing published; --accept-unknown imports it all the same"
        )


def as_text(content: bytes, path: Path | None) -> str:
    """Bytes as a text.

    Raises:
        SetupError: They are none in UTF-8.
    """
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise SetupError(f"{path}: no text in UTF-8: {error}") from None


def as_json(text: bytes | str, place: str) -> Any:
    """A value that is written in JSON.

    Raises:
        SetupError: It is none; says where it stands.
    """
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError) as error:
        raise SetupError(f"{place}: no JSON: {error or 'nested too deep'}") from None


def _named(known: Mapping[str, str]) -> str:
    named: Iterable[str] = (
        f"{content_id[:12]} = {version}" for content_id, version in known.items()
    )
    return ", ".join(named) or "none"
