"""Tables and long texts of upstream's classes, read from the data that a user has."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Protocol

from muarl.errors import RecordError


class JsonFiles(Protocol):
    """Where JSON files are read from."""

    def json(self, path: str) -> Any:
        """The file at a path."""


class Upstream:
    """`backend_tables.json` and `long_context_constants.json` of one version.

    The first is a list by module of `{where, name, value}`: constants of the classes, where in their
    module they stand. `__pairs__` stands for a dict whose keys are no texts, `__set__` for a set,
    `__python__` for a name of Python's own.
    """

    def __init__(self, files: JsonFiles, folder: str) -> None:
        """Read from `folder` of `files`, when first asked."""
        self._files = files
        self._folder = folder

    @cached_property
    def _tables(self) -> Mapping[tuple[str, str, str], Any]:
        return {
            (module, entry["where"], entry["name"]): entry["value"]
            for module, entries in self._files.json(f"{self._folder}/backend_tables.json").items()
            for entry in entries
        }

    @cached_property
    def long(self) -> Mapping[str, Any]:
        """The long-context constants, by name."""
        constants: Any = self._files.json(f"{self._folder}/long_context_constants.json")
        return {name: _python(value) for name, value in constants.items()}

    def default_state(self, module: str) -> dict[str, Any]:
        """What an instance of a module's class has where its configuration says nothing."""
        default: Any = self._tables.get((module, "", "DEFAULT_STATE"), {})
        return {key: _python(value) for key, value in default.items()}

    def table(self, module: str, where: str, name: str) -> Any:
        """A constant: of which function, under which name.

        Raises:
            RecordError: The data do not have it.
        """
        if (module, where, name) not in self._tables:
            place = f"{self._folder}/backend_tables.json"
            raise RecordError(f"upstream data: {place} has no {name!r} of {where} in {module!r}")
        return self._tables[module, where, name]

    def pairs(self, module: str, where: str, name: str) -> list[tuple[Any, Any]]:
        """A constant that is a dict by pairs, in its order."""
        return [(tuple(key), value) for key, value in self.table(module, where, name)["__pairs__"]]


def _python(value: Any) -> Any:
    """A value whose marks are resolved; dicts keep their keys as texts, sets become lists."""
    if isinstance(value, list):
        return [_python(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("__python__") == "Ellipsis":
        return ...
    if "__set__" in value:
        return list(value["__set__"])
    if "__pairs__" in value:
        return {str(key): _python(item) for key, item in value["__pairs__"]}
    return {key: _python(item) for key, item in value.items()}
