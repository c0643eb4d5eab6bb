"""The files that a domain is made of: what its folder holds, so that nothing need be declared.

A tool may import or read any file beside it, now or in the middle of a dialogue. So every file counts, but
for those that surely no dialogue follows from.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from muarl.spec import DomainSpec
from muarl.spec.schema import KINDS, OVERLAY
from muarl.spec.tools import CommandToolsSpec

MAX_FILES = 20_000
MAX_BYTES = 2 << 30
"""More than that is no domain, but a folder that it happens to lie in."""

_FOR_PEOPLE = re.compile(r"(readme|licen[cs]e|changelog)(\.(md|rst|txt))?", re.IGNORECASE)
_TESTS = re.compile(r"(test_.*|.*_test|conftest)\.py")
_CACHES = ("__pycache__", "node_modules")
_RUN = "spec.resolved.yaml"
_ENVIRONMENT = "pyvenv.cfg"

_SCHEMA = rf"({'|'.join((*KINDS, OVERLAY))})\.v\d+\.json"
_SCHEMA_LINE = re.compile(rf"# yaml-language-server: \$schema=(\S*/)?{_SCHEMA}\s")
_KEY = re.compile(r"^([A-Za-z_]\w*):", re.MULTILINE)


class TooMuch(ValueError):
    """A folder that holds more than a domain can be made of."""


def files_of(spec: DomainSpec, folder: Path) -> dict[str, str]:
    """Each file of a domain, by its path from the domain's folder, and a hash of what is in it.

    These are the files in the folder and below it, and what commands name: `files` with all that it
    holds, and files among their arguments. Left out are hidden files and folders, caches, runs,
    virtual environments, tests in Python, README, LICENSE and CHANGELOG, and spec files with their
    schemas, which are compared by what they say.

    Raises:
        TooMuch: There are more than can be looked at.
    """
    paths = sorted({os.path.relpath(path, folder) for path in _paths(spec, folder)})
    sizes = {path: os.stat(folder / path).st_size for path in paths}
    if len(paths) > MAX_FILES or sum(sizes.values()) > MAX_BYTES:
        raise TooMuch(_too_much(sizes))
    return {_name(path): _hash(folder / path) for path in paths}


def _paths(spec: DomainSpec, folder: Path) -> Iterator[Path]:
    yield from (path for path in _below(folder) if not _is_left_out(path))
    for server in spec.all_servers:
        if isinstance(server, CommandToolsSpec):
            if server.files is not None:
                yield from _below(folder / server.files, whole=True)
            for text in (*server.command, *server.env.values()):
                if not os.path.isabs(text) and os.path.isfile(folder / text):
                    yield folder / text


def _below(folder: Path, *, whole: bool = False) -> Iterator[Path]:
    """Regular files in a folder and its folders, through links; not one twice in a ring of links."""
    entered: set[str] = set()
    count = 0
    for at, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(at)
        if real in entered:
            folders.clear()
            continue
        entered.add(real)
        if not whole:
            folders[:] = [name for name in folders if not _is_apart(Path(at, name))]
        for name in files:
            path = Path(at, name)
            if _is_regular(path):
                yield path
                count += 1
        if count > 10 * MAX_FILES:
            raise TooMuch(f"it holds more than {count:,} files")


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:  # a link that leads nowhere
        return False


def _is_apart(folder: Path) -> bool:
    """Whether nothing of the domain is in a folder that lies in its own."""
    return (
        folder.name.startswith(".")
        or folder.name in _CACHES
        or (folder / _RUN).exists()
        or (folder / _ENVIRONMENT).exists()
        or (folder.name == "runs" and any(folder.glob(f"*/{_RUN}")))
    )


def _is_left_out(path: Path) -> bool:
    return (
        path.name.startswith(".")
        or path.suffix == ".pyc"
        or _FOR_PEOPLE.fullmatch(path.name) is not None
        or _TESTS.fullmatch(path.name) is not None
        or re.fullmatch(_SCHEMA, path.name) is not None
        or (path.suffix in (".yaml", ".yml") and _is_spec(path))
    )


def _is_spec(path: Path) -> bool:
    """Whether this is a file that muarl reads itself; told from its keys, since parsing is slow."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        return False
    keys = set(_KEY.findall(text))
    return _SCHEMA_LINE.match(text) is not None or any(
        {name for name, field in model.model_fields.items() if field.is_required()}
        <= keys
        <= model.model_fields.keys()
        for model in KINDS.values()
    )


def _name(path: str) -> str:
    """A path as text that is the same on all machines, whatever bytes are in it."""
    return Path(path).as_posix().encode("utf-8", "backslashreplace").decode()


def _hash(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:16]
    except PermissionError:
        return "cannot be read"


def _too_much(sizes: dict[str, int]) -> str:
    tops: dict[str, list[int]] = {}
    for path, size in sizes.items():
        tops.setdefault(Path(path).parts[0], []).append(size)
    most = max(tops, key=lambda top: sum(tops[top]) / MAX_BYTES + len(tops[top]) / MAX_FILES)
    return (
        f"it holds {len(sizes):,} files of {sum(sizes.values()) / (1 << 20):,.0f} MiB, most of them "
        f"in {most!r}"
    )
