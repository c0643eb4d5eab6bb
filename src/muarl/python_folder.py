"""Python that a spec names: imported from the folder where it is, and blamed on its author."""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from muarl.authors import PACKAGES, RAISED, blame, let_others_pass, place
from muarl.errors import MuarlError, SpecError
from muarl.spec import Located
from muarl.spec.explain import in_words

_CALLED: dict[tuple[str | int, ...], str] = {
    ("expert",): "Expert(task, imperfections, rng)",
    ("tasks", "python"): "generate(split, seed, count)",
    ("world", "python"): "build()",
}
"""Where the domain's file names code, and how that is called."""


class PythonFolder:
    """Imports an author's own Python, as modules of a package that stands for its folder."""

    def __init__(self, located: Located[Any], name: str, folder: Path | None = None) -> None:
        """Prepare; nothing is imported yet.

        Args:
            located: The spec that names the Python.
            name: Of whom it is, in the package's name.
            folder: Where the Python is; None: that of the spec's file.
        """
        self._located = located
        folder = (folder or located.path.parent).resolve()
        tag = hashlib.sha256(os.fsencode(folder)).hexdigest()[:8]
        self._package = f"{PACKAGES}{re.sub(r'[^0-9A-Za-z]', '_', name)}_{tag}"
        if self._package not in sys.modules:
            package = types.ModuleType(self._package)
            package.__path__ = [str(folder)]
            sys.modules[self._package] = package

    def load(self, reference: str, loc: tuple[str | int, ...]) -> Any:
        """Resolve `file.py:name`, which the spec names at `loc`.

        Raises:
            SpecError: No such file or name, or importing it raised.
        """
        file, _, name = reference.partition(":")
        module_name = file.removesuffix(".py").replace("/", ".")
        try:
            module = importlib.import_module(f"{self._package}.{module_name}")
        except MuarlError:
            raise
        except ModuleNotFoundError as error:
            message = f"{reference!r} cannot be imported: {error}{place(error)}"
            raise self._problem(loc, message) from error
        except RAISED as error:  # boundary: the author's module raises anything
            let_others_pass(error)
            raise self._problem(loc, f"importing {file} raised {blame(error)}") from error
        if not hasattr(module, name):
            raise self._problem(loc, f"{file} has no {name!r}")
        return getattr(module, name)

    def call(self, reference: str, loc: tuple[str | int, ...], *arguments: Any) -> Any:
        """Call what `reference` names.

        Raises:
            SpecError: It cannot be imported, or it raised; a ValueError says what is wrong itself.
        """
        made = self.load(reference, loc)
        with self.blaming(reference, loc):
            return made(*arguments)

    @contextmanager
    def blaming(self, reference: str, loc: tuple[str | int, ...]) -> Iterator[None]:
        """Within the block code of what `reference` names runs, and what it raises is its author's.

        Raises:
            SpecError: It raised; a ValueError says what is wrong itself.
        """
        try:
            yield
        except MuarlError:
            raise
        except ValidationError as error:
            raise self._problem(loc, f"{reference}: {in_words(error)}{place(error)}") from error
        except ValueError as error:
            said = " ".join(str(error).split())
            raise self._problem(loc, f"{reference}: {said}{place(error)}") from error
        except RAISED as error:  # boundary: the author's code raises anything
            let_others_pass(error)
            wrong_call = isinstance(error, TypeError) and not place(error)
            takes = f"; it is called as {_CALLED[loc]}" if wrong_call and loc in _CALLED else ""
            raise self._problem(loc, f"{reference} raised {blame(error)}{takes}") from error

    def _problem(self, loc: tuple[str | int, ...], message: str) -> SpecError:
        return SpecError([self._located.problem(loc, message)])
