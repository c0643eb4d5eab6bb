"""What can be mended in a spec file without asking: its first line, its version, its old form.

Nothing else is: a key that is misspelt may be one of two, and is the author's to decide.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from muarl.errors import Problem, SpecError
from muarl.spec.document import Node, parse_document
from muarl.spec.kinds import is_part_of_run, kind_of_document
from muarl.spec.schema import KINDS, OVERLAY, newest_version, schema_files, schema_name
from muarl.spec.source import read_source
from muarl.spec.versions import is_old, upgraded_text, version_of

_FIRST_LINE = re.compile(r"#\s*yaml-language-server:\s*\$schema=(\S+)")
_SCHEMAS = ("schemas", "specs/schemas")


@dataclass(frozen=True)
class Mended:
    """A file, and what it should be.

    Attributes:
        path: The file.
        text: What it should hold.
        changes: What of that is new, in words; empty if the file is well as it is.
        schema: A schema that nobody wrote yet, which the first line names: file and text.
    """

    path: Path
    text: str
    changes: tuple[str, ...]
    schema: tuple[Path, str] | None

    def write(self) -> None:
        """Write the file, and the schema.

        Raises:
            OSError: The disk says no.
        """
        if self.schema is not None:
            self.schema[0].parent.mkdir(parents=True, exist_ok=True)
            self.schema[0].write_text(self.schema[1], encoding="utf-8")
        if self.changes:
            self.path.write_text(self.text, encoding="utf-8")


def mended(path: Path) -> Mended:
    """Look what of a file can be mended.

    Raises:
        SpecError: It cannot be read, or is no mapping.
    """
    text, root = _read(path)
    kind = kind_of_document(root.data)
    model = KINDS[kind]
    newest = newest_version(model)
    changes: list[str] = []
    if is_old(root, model):
        text = upgraded_text(text, model)
        changes.append(f"version {version_of(root)} became {newest}")
    elif "version" not in root.data:
        text = _with_version(text, root, newest)
        changes.append(f"version {newest} added")
    name = schema_name(OVERLAY if is_part_of_run(root.data) else kind)
    first = _FIRST_LINE.match(text)
    if first is not None and _fits(first[1], path, name):
        return Mended(path, text, tuple(changes), None)
    schema, is_there = _schema(path, name)
    reference = Path(os.path.relpath(schema, path.parent.resolve())).as_posix()
    if first is None or first[1] != reference:
        text = text.partition("\n")[2] if first else text
        text = f"# yaml-language-server: $schema={reference}\n{text}"
        changes.append(f"the first line names {reference}")
    if not is_there:
        changes.append(f"{reference} written")
    return Mended(path, text, tuple(changes), None if is_there else (schema, schema_files()[name]))


def files_of(path: Path) -> list[Path]:
    """A file and, of a domain, its task files; a folder stands for its `domain.yaml`.

    Raises:
        SpecError: It cannot be read.
    """
    path = path / "domain.yaml" if path.is_dir() else path
    _, root = _read(path)
    tasks = root.data.get("tasks")
    patterns = tasks.get("files") if isinstance(tasks, dict) else None
    found = [path]
    for pattern in patterns if isinstance(patterns, list) else ():
        try:
            found += sorted(p for p in path.parent.glob(pattern) if p.is_file())
        except (NotImplementedError, ValueError, OSError, TypeError):
            continue  # checking the domain says what is wrong with the pattern
    return list(dict.fromkeys(found))


def _read(path: Path) -> tuple[str, Node]:
    text = read_source(path)
    root, problems = parse_document(text, str(path))
    if not problems and not (isinstance(root.data, dict) and root.data):
        problems = [Problem(*root.place, "a spec file is a mapping; this is none")]
    if problems:
        raise SpecError(problems)
    return text, root


def _with_version(text: str, root: Node, version: int) -> str:
    """The text with a version before its first key."""
    lines = text.split("\n")
    column = root.place.column - 1
    line = lines[root.place.line - 1]
    before, after = line[:column], line[column:]
    if after.startswith("{"):
        lines[root.place.line - 1] = f"{before}{{version: {version}, {after[1:]}"
    else:
        lines[root.place.line - 1] = f"{before}version: {version}\n{' ' * column}{after}"
    return "\n".join(lines)


def _fits(reference: str, path: Path, name: str) -> bool:
    """Whether a first line names a schema that an editor can find, and the right one."""
    target = path.parent / reference
    return "://" in reference or (target.name == name and target.is_file())


def _schema(path: Path, name: str) -> tuple[Path, bool]:
    """A schema in the folder of a file or above, and whether it is there; else where it belongs."""
    folder = path.parent.resolve()
    for above in (folder, *folder.parents):
        for place in _SCHEMAS:
            if (above / place / name).is_file():
                return above / place / name, True
        if (above / ".git").exists():
            break
    return folder / _SCHEMAS[0] / name, False
