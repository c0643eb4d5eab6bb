"""The text of a spec file, or a problem that says why there is none."""

from __future__ import annotations

from pathlib import Path

from muarl.errors import Problem, SpecError, nearest_file
from muarl.opened_file import opened_file
from muarl.spec.document import MAX_CHARS

_ENDINGS = (".yaml", ".yml")


def read_source(path: Path) -> str:
    """The file's text.

    Raises:
        SpecError: It is not there, not readable, too big, or not UTF-8.
    """
    try:
        with opened_file(path) as file:
            raw = file.read(4 * MAX_CHARS + 1)
        if len(raw) > 4 * MAX_CHARS:
            raise SpecError([Problem(str(path), 0, 0, "the file is too big for a spec; split it")])
    except FileNotFoundError:
        raise SpecError([Problem(str(path), 0, 0, f"no such file{_near(path)}")]) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        message = f"cannot be read: {why}{_within(path)}"
        raise SpecError([Problem(str(path), 0, 0, message)]) from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
        message = f"byte 0x{raw[error.start]:02x} is not UTF-8; save the file as UTF-8"
        line = before.count(b"\n") + 1
        raise SpecError([Problem(str(path), line, column, message)]) from None


def _within(folder: Path) -> str:
    """A spec in a folder that was named in its place: a run's, or the one at hand."""
    specs = [entry.name for entry in _entries(folder) if entry.suffix in _ENDINGS]
    best = min(
        sorted(specs), key=lambda name: name not in ("spec.resolved.yaml", "run.yaml"), default=""
    )
    return f"; did you mean '{folder / best}'?" if best else ""


def _near(path: Path) -> str:
    """A spec or a folder with a name like the missing one that does exist beside it."""
    beside = [
        entry.name for entry in _entries(path.parent) if entry.suffix in _ENDINGS or entry.is_dir()
    ]
    near = nearest_file(path.name, beside)
    return f"; did you mean '{path.with_name(near)}'?" if near else ""


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except (OSError, ValueError):
        return []
