"""A spec and the files it came from, so that later findings still name a line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from muarl.errors import Problem, SpecError
from muarl.spec.base import Spec
from muarl.spec.document import Node, Place
from muarl.spec.explain import Loc
from muarl.spec.finding import Finding
from muarl.spec.source import read_source

S = TypeVar("S", bound=Spec)


@dataclass(frozen=True)
class Located(Generic[S]):
    """A spec and where it came from.

    Attributes:
        spec: What the file says, and the overlays over it.
        path: The file, as the user named it; of several, the first.
        root: Its document, with the place of every key and value.
    """

    spec: S
    path: Path
    root: Node

    def resolve(self, reference: str) -> Path:
        """A file named in the spec, which is relative to the spec."""
        return self.path.parent / reference

    def problem(self, loc: Loc, message: str, *, at_key: bool = False) -> Problem:
        """A problem with the field at `loc`, `("tasks", 3, "gold")`.

        Args:
            loc: Path to the field; where it was left out, the nearest mapping above is named.
            message: What is wrong, what was expected, what to do.
            at_key: Point at the key instead of its value.
        """
        loc = self.root.in_file(loc)
        node = self.root.find(loc)
        place = self.root.key_place(loc) if at_key and loc else node.place
        if node.given is not None:  # she knows the path by what she wrote
            message = message.replace(repr(node.data), repr(node.given))
        return Problem(*place, message)

    def problem_within(self, loc: Loc, text: str, at: int, message: str) -> Problem:
        """A problem within the text of the field at `loc`.

        Args:
            loc: Path to the field.
            text: Its text.
            at: Position in the text.
            message: What is wrong, what was expected, what to do.
        """
        place = self.root.find(self.root.in_file(loc)).place
        return Problem(*_place_within(place, text, at), message)

    def refuse(self, findings: Iterable[Finding]) -> None:
        """Raise what was found in this file, if anything.

        Raises:
            SpecError: All findings, in the file's order.
        """
        problems = [self.problem(f.loc, f.message, at_key=f.at_key) for f in findings]
        if problems:
            raise SpecError(in_order(problems))


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Problems by file and place, each said once."""
    return sorted(set(problems), key=lambda p: (p.path, p.line, p.column, p.message))


def _place_within(place: Place, text: str, at: int) -> Place:
    """Where position `at` of a scalar's text stands in its file; at worst, where it begins."""
    if not place.line:
        return place
    source = read_source(Path(place.path)).splitlines()
    line = text.count("\n", 0, at)
    column = at - (text.rfind("\n", 0, at) + 1)
    wanted = text.split("\n")[line]
    first = source[place.line - 1][place.column - 1 :]
    if first.startswith("|"):
        number, indented = place.line + 1 + line, True
    elif line == 0 and first.lstrip("'\"").startswith(wanted):
        number, indented = place.line, False
    else:
        return place
    found = source[number - 1] if number <= len(source) else ""
    begins = len(found) - len(wanted) if indented else found.find(wanted, place.column - 1)
    if begins < 0 or found[begins : begins + len(wanted)] != wanted:
        return place
    return Place(place.path, number, begins + column + 1)
