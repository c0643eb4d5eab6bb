"""Every spec file in this repository is valid, and an editor finds its schema."""

from __future__ import annotations

from pathlib import Path

import pytest

from muarl.spec import load_domain_spec, load_run, load_task_files

ROOT = Path(__file__).parents[2]
DOMAINS = sorted((ROOT / "domains").glob("*/domain.yaml"))
RUNS = sorted((ROOT / "specs").glob("*.yaml"))


def test_there_are_some() -> None:
    assert DOMAINS
    assert RUNS


@pytest.mark.parametrize("path", DOMAINS, ids=lambda path: path.parent.name)
def test_a_shipped_domain_is_valid(path: Path) -> None:
    load_task_files(load_domain_spec(path))


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_a_shipped_run_is_valid(path: Path) -> None:
    load_run(path)


@pytest.mark.parametrize("path", [*DOMAINS, *RUNS], ids=lambda path: str(path.relative_to(ROOT)))
def test_the_first_line_names_the_schema(path: Path) -> None:
    first = path.read_text().partition("\n")[0]
    schema = first.removeprefix("# yaml-language-server: $schema=")
    assert schema != first
    assert (path.parent / schema).is_file()
