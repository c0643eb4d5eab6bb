"""What can be mended in a spec file without asking: its first line, its version, its old form.

Nothing else is: a key that is misspelt may be one of two, and is the author's to decide.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from muarl.errors import Problem, SpecError
from muarl.spec.document import Node, parse_document
from muarl.spec.kinds import is_part_of_run, kind_of_document
from muarl.spec.schema import KINDS, OVERLAY, newest_version, schema_files, schema_name
from muarl.spec.source import read_source
from muarl.spec.versions import is_old, upgraded_text, version_of

_FIRST_LINE = re.compile(r"#\s*yaml-language-server:\s*\$schema=(\S+)")
_LINE_END = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
"""What ends a line in YAML."""
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
            _replace(self.schema[0], self.schema[1])
        if self.changes:
            _replace(self.path.resolve(), self.text)


def _replace(path: Path, text: str) -> None:
    """Write all of a file or nothing: a disk may be full, and what was there is the author's."""
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o644
    beside, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(beside, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def mended(path: Path) -> Mended:
    """Look what of a file can be mended.

    Raises:
        SpecError: It cannot be read, is no mapping of a kind of ours, or has a form in which it
            cannot be mended for sure.
    """
    text, root = _read(path)
    kind = kind_of_document(root.data)
    model = KINDS[kind]
    if not root.data.keys() & model.model_fields.keys() - {"version"}:
        raise SpecError([Problem(*root.place, "no spec file of muarl: none of its keys is known")])
    expected = root.data
    newest = newest_version(model)
    changes: list[str] = []
    if is_old(root, model):
        text = upgraded_text(text, model)
        expected = parse_document(text, str(path))[0].data
        changes.append(f"version {version_of(root)} became {newest}")
    elif "version" not in root.data:
        text = _with_version(text, root, newest)
        expected = {"version": newest, **root.data}
        changes.append(f"version {newest} added")
    name = schema_name(OVERLAY if is_part_of_run(root.data) else kind)
    first = _FIRST_LINE.match(text)
    if first is not None and _fits(first[1], path, name):
        _same(path, root, text, expected)
        return Mended(path, text, tuple(changes), None)
    schema, is_there = _schema(path, name)
    reference = Path(os.path.relpath(schema, path.parent.resolve())).as_posix()
    if first is None or first[1] != reference:
        if first is not None:  # the rest of its line is the author's
            text = text[: first.start(1)] + reference + text[first.end(1) :]
        else:
            text = f"# yaml-language-server: $schema={reference}{_line_end(text)}{text}"
        changes.append(f"the first line names {reference}")
    if not is_there:
        changes.append(f"{reference} written")
    _same(path, root, text, expected)
    return Mended(path, text, tuple(changes), None if is_there else (schema, schema_files()[name]))


def _same(path: Path, root: Node, text: str, expected: object) -> None:
    """Look that a mended text says what it shall say: YAML has more forms than are looked for here.

    Raises:
        SpecError: It does not.
    """
    try:
        after, problems = parse_document(text, str(path))
        sound = not problems and after.data == expected
    except SpecError:
        sound = False
    if not sound:
        message = "cannot be mended for sure in this form; write `version: 1` as its first key"
        raise SpecError([Problem(*root.place, message)])


def files_of(path: Path) -> list[Path]:
    """A file and, of a domain, its task files; a folder stands for its `domain.yaml`.

    Of what a domain names, only task files in its own folder or below: a domain that somebody sent
    has no say about other files.

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
            found += sorted(p for p in path.parent.glob(pattern) if _is_own(p, path.parent))
        except (NotImplementedError, ValueError, OSError, TypeError):
            continue  # checking the domain says what is wrong with the pattern
    return list(dict.fromkeys(found))


def _is_own(path: Path, folder: Path) -> bool:
    """Whether a file of a domain is one of tasks, and lies in the domain's folder itself."""
    if not path.is_file() or not path.resolve().is_relative_to(folder.resolve()):
        return False
    root, _ = parse_document(read_source(path), str(path))
    return isinstance(root.data, dict) and "tasks" in root.data and "domain" in root.data


def _line_end(text: str) -> str:
    found = _LINE_END.search(text)
    return found[0] if found else "\n"


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
    starts = [0, *(end.end() for end in _LINE_END.finditer(text))]
    column = root.place.column - 1
    place = starts[root.place.line - 1] + column
    before, after = text[:place], text[place:]
    if after.startswith("{"):
        return f"{before}{{version: {version}, {after[1:]}"
    return f"{before}version: {version}{_line_end(text)}{' ' * column}{after}"


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
