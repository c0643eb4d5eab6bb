"""YAML 1.2 documents as plain data, with the place of every key and value.

The text is hostile: tags are refused, keys are text and given once, and size, depth and the
expansion of aliases are bounded. ruamel.yaml does the parsing; what the events mean is decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    StreamEndEvent,
)
from ruamel.yaml.reader import ReaderError

from muarl.errors import Problem, SpecError
from muarl.spec.scalar import ScalarError, resolve

MAX_CHARS = 16_000_000
"""Longest file that is read."""
MAX_NODES = 2_000_000
"""Most values in a file, aliases expanded."""
MAX_DEPTH = 64
"""Deepest nesting, aliases expanded."""

_HINTS = {
    "'\\t'": "indent with spaces, not tabs",
    "mapping values are not allowed": "indent it like its neighbours, and quote text with ': '",
    "cannot start any token": "put the text in quotes",
    "escape character": "write the backslash twice, or use single quotes",
    "quoted scalar": "close the quote",
    "stream end": "close the bracket",
}
"""Part of the parser's message to what usually mends it; the first that fits is said."""


class Place(NamedTuple):
    """Where something stands.

    Attributes:
        path: The file as the user named it, or the argument of the command line.
        line: 1-based line; 0 where there are none.
        column: 1-based column, 0 likewise.
    """

    path: str
    line: int
    column: int


@dataclass(slots=True)
class Node:
    """A value and where it stands.

    Attributes:
        data: None, bool, int, float, str, or a list or str-keyed dict of such.
        place: Where the value begins.
        children: Key or index to the nodes below.
        keys: For a mapping, where each key stands.
        quoted: For a text, whether it was written as one, in quotes or as a block.
        mended: For a mapping, where an overlay last spoke of it, if one did.
        given: For a path that is now relative to another folder, what was written.
        size: Values in it, itself included, aliases expanded.
        height: Levels of nesting, itself included, aliases expanded.
    """

    data: Any
    place: Place
    children: dict[str | int, Node] = field(default_factory=dict)
    keys: dict[str, Place] = field(default_factory=dict)
    quoted: bool = False
    mended: Place | None = None
    given: str | None = None
    size: int = 1
    height: int = 1

    def in_file(self, loc: Sequence[str | int]) -> tuple[str | int, ...]:
        """A path in the model as a path in the file.

        A model's path holds more: the tag of a variant, `<PythonToolsSpec>`, and the 0 of a list of
        one that the file gives without a list.
        """
        node: Node | None = self
        path: list[str | int] = []
        for part in loc:
            if is_tag(part) or (part == 0 and node and not isinstance(node.data, list)):
                continue
            path.append(part)
            node = node and node.children.get(part)
        return tuple(path)

    def find(self, loc: Sequence[str | int]) -> Node:
        """The node at `loc`, or the deepest one above it that exists."""
        node = self
        for part in loc:
            if part not in node.children:
                break
            node = node.children[part]
        return node

    def key_place(self, loc: Sequence[str | int]) -> Place:
        """Where the key that `loc` ends with stands; a list item has no key, only its value."""
        *above, last = loc
        node = self.find(above)
        return node.keys.get(str(last)) or node.find([last]).place


def is_tag(part: str | int) -> bool:
    """Whether a part of a path names a variant of a union, and nothing in the file."""
    return isinstance(part, str) and part.startswith("<") and part.endswith(">")


def parse_document(text: str, path: str) -> tuple[Node, list[Problem]]:
    """Read one document.

    Args:
        text: The file's text.
        path: The file as the user named it, for messages.

    Returns:
        The document and the problems that leave it readable: duplicate keys (the first counts),
        tags, keys that are not text, numbers that are not finite.

    Raises:
        SpecError: It cannot be read: broken syntax, several documents, too big, too deep.
    """
    reader = _Reader(text, path)
    return reader.document(), reader.problems


class _Reader:
    """Turns the event stream of one file into nodes."""

    def __init__(self, text: str, path: str) -> None:
        self.problems: list[Problem] = []
        self._text, self._path = text, path
        self._anchors: dict[str, Node] = {}
        self._events = YAML(typ="safe", pure=True).parse(text)
        self._read_to = Place(path, 1, 1)

    def document(self) -> Node:
        if len(self._text) > MAX_CHARS:
            message = f"the file is longer than {MAX_CHARS:,} characters; split it"
            self._give_up(self._place(), message)
        self._next()  # the stream's start
        start = self._next()
        if isinstance(start, StreamEndEvent):
            return Node(None, Place(self._path, 1, 1))
        if isinstance(start, DocumentStartEvent) and start.version not in (None, (1, 2)):
            self._note(self._place(start.start_mark), "specs are YAML 1.2; remove the %YAML line")
        root = self._node(self._next(), 1)
        self._next()  # the document's end
        if not isinstance(more := self._next(), StreamEndEvent):
            self._give_up(
                self._place(more.start_mark), "a second document begins here; a spec file holds one"
            )
        return root

    def _next(self) -> Any:
        try:
            event = next(self._events)
        except ReaderError as error:
            before = self._text[: error.position]
            line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
            place = Place(self._path, line, column)
            self._give_up(place, f"the character {chr(error.character)!r} is not allowed in YAML")
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            self._give_up(self._place(mark), f"not valid YAML: {_in_words(error)}")
        except (YAMLError, ValueError, OverflowError) as error:
            # Escapes of impossible characters escape ruamel as bare arithmetic errors.
            said = f"not valid YAML: what follows holds an escape of no character: {error}"
            self._give_up(self._read_to, said)
        self._read_to = self._place(event.end_mark)
        return event

    def _node(self, event: Any, depth: int) -> Node:
        place = self._place(event.start_mark)
        if isinstance(event, AliasEvent):
            if event.anchor not in self._anchors:
                self._give_up(place, f"alias *{event.anchor} names no anchor that ends before it")
            return self._anchors[event.anchor]
        if depth > MAX_DEPTH:
            self._give_up(place, f"nested more than {MAX_DEPTH} levels deep")
        if event.ctag is not None:
            self._note(place, f"tag {str(event.ctag)[:60]!r} is not allowed; write plain data")
        if isinstance(event, ScalarEvent):
            node = Node(self._scalar(event), place, quoted=event.style is not None)
        elif isinstance(event, MappingStartEvent):
            node = self._mapping(place, depth)
        else:
            node = self._sequence(place, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _sequence(self, place: Place, depth: int) -> Node:
        node = Node([], place)
        while not isinstance(event := self._next(), SequenceEndEvent):
            self._attach(node, len(node.data), self._node(event, depth + 1))
        return node

    def _mapping(self, place: Place, depth: int) -> Node:
        node = Node({}, place)
        while not isinstance(event := self._next(), MappingEndEvent):
            key_place = self._place(event.start_mark)
            key = self._key(self._node(event, depth + 1), event)
            value = self._node(event := self._next(), depth + 1)
            if isinstance(event, ScalarEvent) and event.style is None and not event.value:
                value.place = key_place  # the parser puts what is not there on a later line
            if key is None:
                continue
            if key in node.keys:
                first = node.keys[key].line
                self._note(key_place, f"duplicate key {key!r}; first given on line {first}")
                continue
            node.keys[key] = key_place
            self._attach(node, key, value)
        return node

    def _key(self, key: Node, event: Any) -> str | None:
        """The key's text; what is no text is noted and left out."""
        if key.data == "<<" and getattr(event, "style", None) is None:
            self._note(key.place, "merge keys (<<) are not YAML 1.2; write the fields out")
        elif isinstance(key.data, str):
            return key.data
        elif isinstance(event, ScalarEvent):
            text = event.value
            self._note(key.place, f"keys are text; put it in quotes: {text!r}")
        else:
            self._note(key.place, "keys are text, not lists or mappings")
        return None

    def _attach(self, node: Node, at: str | int, child: Node) -> None:
        node.children[at] = child
        if isinstance(node.data, list):
            node.data.append(child.data)
        else:
            node.data[at] = child.data
        node.size += child.size
        node.height = max(node.height, child.height + 1)
        if node.size > MAX_NODES or node.height > MAX_DEPTH:
            what = f"{MAX_NODES:,} values" if node.size > MAX_NODES else f"{MAX_DEPTH} levels"
            self._give_up(child.place, f"aliases expand to more than {what}")

    def _scalar(self, event: ScalarEvent) -> Any:
        text: str = event.value
        try:
            # JSON writes a rare character as two escapes; apart, they are no characters.
            text = text.encode("utf-16", "surrogatepass").decode("utf-16")
            return resolve(text) if event.style is None and event.ctag is None else text
        except UnicodeDecodeError:
            self._note(self._place(event.start_mark), "half of a surrogate pair is not a character")
        except ScalarError as error:
            self._note(self._place(event.start_mark), str(error))
        return None

    def _place(self, mark: Any = None) -> Place:
        """Where a mark of the parser's is; none: somewhere in the file."""
        at = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        return Place(self._path, *at)

    def _note(self, place: Place, message: str) -> None:
        self.problems.append(Problem(*place, message))

    def _give_up(self, place: Place, message: str) -> NoReturn:
        self._note(place, message)
        raise SpecError(self.problems) from None


def _in_words(error: MarkedYAMLError) -> str:
    """The parser's own words, where the broken construct begins, and what usually mends it."""
    begins = f" that begins on line {error.context_mark.line + 1}" if error.context_mark else ""
    said = f"{error.context}{begins}: {error.problem}" if error.context else str(error.problem)
    hint = next((hint for part, hint in _HINTS.items() if part in said), "")
    return f"{said}; {hint}" if hint else said
