"""Files and Python that a domain's file names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from muarl.spec.domain import DomainSpec
from muarl.spec.finding import Finding
from muarl.spec.named_files import leads_outside, no_file, no_python
from muarl.spec.tools import PythonToolsSpec


def domain_file_findings(domain: DomainSpec, folder: Path) -> Iterator[Finding]:
    """Files that are not there or lie elsewhere, and Python that is none."""
    code: dict[tuple[str | int, ...], str | None] = {
        ("world", "python"): domain.world.python,
        domain.tasks.loc: domain.tasks.generator,
        ("expert",): domain.expert,
        **dict(_predicates_in_python(domain)),
    }
    if domain.calls.text is not None:
        code["calls", "text", "convention"] = domain.calls.text.convention
    for index, server in enumerate(domain.tools):
        if isinstance(server, PythonToolsSpec):
            code["tools", index, "python"] = server.python
    if domain.device is not None:
        for index, server in enumerate(domain.device.tools):
            if isinstance(server, PythonToolsSpec):
                code["device", "tools", index, "python"] = server.python
        for index, step in enumerate(domain.device.sync):
            code["device", "sync", index, "python"] = step.python
        if domain.device.world is not None:
            code["device", "world", "python"] = domain.device.world.python
    for loc, reference in code.items():
        if reference is not None and (message := no_python(folder, reference)):
            yield Finding(loc, message)
    files: dict[tuple[str, ...], str | None] = {("world", "file"): domain.world.file}
    if domain.device is not None and domain.device.world is not None:
        files["device", "world", "file"] = domain.device.world.file
    for at, name in files.items():
        if name is not None and (message := _no_file_within(folder, name)):
            yield Finding(at, message)
    for index, name in enumerate(domain.world.sql.files if domain.world.sql else ()):
        if message := _no_file_within(folder, name):
            yield Finding(("world", "sql", "files", index), message)
    for index, pattern in enumerate(domain.tasks.files):
        if message := leads_outside(pattern):
            yield Finding(("tasks", "files", index), message)
            continue
        try:
            found = any(os.path.isfile(path) for path in folder.glob(pattern))
        except (NotImplementedError, ValueError, OSError, RuntimeError):
            yield Finding(
                ("tasks", "files", index), f"{pattern!r} is no path relative to this file"
            )
            continue
        if not found:
            message = f"nothing matches {pattern!r}" if "*" in pattern else no_file(folder, pattern)
            yield Finding(("tasks", "files", index), message)


def _no_file_within(folder: Path, reference: str) -> str:
    if message := leads_outside(reference):
        return message
    return "" if os.path.isfile(folder / reference) else no_file(folder, reference)


def _predicates_in_python(domain: DomainSpec) -> Iterator[tuple[tuple[str | int, ...], str]]:
    for field in ("reward", "training_reward", "metrics"):
        for index, predicate in enumerate(getattr(domain, field) or ()):
            for below, part in predicate.walk():
                if part.python is not None:
                    yield (field, index, *below, "python", "function"), part.python.function
