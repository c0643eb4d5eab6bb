"""Copies of upstream's files, imported as a user would."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from muarl.cli import main
from muarl.domain import Domain, load_domain


def imported(
    folders: pytest.TempPathFactory, benchmark: str, data: Path, domain: str, *options: str
) -> Domain:
    folder = folders.mktemp(benchmark)
    say = ["import", benchmark, "--from", str(data), "--to", str(folder), "--domain", domain]
    assert main([*say, *options]) == 0
    return load_domain(folder / domain)


def tau2_copy(data: Path, to: Path, domain: str) -> Path:
    """What an import of one domain reads, in a folder of its own."""
    for part in (f"domains/{domain}", "user_simulator", "tool_schemas"):
        shutil.copytree(data / part, to / part)
    for path in to.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return to
