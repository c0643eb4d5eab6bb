"""Every spec file in this repository is valid, and an editor finds its schema."""

from __future__ import annotations

from pathlib import Path

import pytest

from muarl.spec import load_domain_spec, load_grid, load_run, load_synth, load_task_files
from muarl.spec.kinds import kind_of

ROOT = Path(__file__).parents[2]
DOMAINS = sorted((ROOT / "domains").glob("*/domain.yaml"))
SPECS = sorted((ROOT / "specs").glob("*.yaml"))
RUNS = [path for path in SPECS if kind_of(path) == "run"]
SYNTHS = [path for path in SPECS if kind_of(path) == "synth"]
GRIDS = [path for path in SPECS if kind_of(path) == "grid"]


def test_there_are_some() -> None:
    assert DOMAINS
    assert RUNS
    assert GRIDS
    assert SYNTHS


@pytest.mark.parametrize("path", DOMAINS, ids=lambda path: path.parent.name)
def test_a_shipped_domain_is_valid(path: Path) -> None:
    load_task_files(load_domain_spec(path))


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_a_shipped_run_is_valid(path: Path) -> None:
    load_run(path)


@pytest.mark.parametrize("path", GRIDS, ids=lambda path: path.stem)
def test_a_shipped_grid_is_valid_and_so_is_its_run(path: Path) -> None:
    grid = load_grid(path)
    load_run(grid.resolve(grid.spec.run))


@pytest.mark.parametrize("path", SYNTHS, ids=lambda path: path.stem)
def test_a_shipped_synthesis_is_valid(path: Path) -> None:
    load_synth(path)


@pytest.mark.parametrize("path", [*DOMAINS, *SPECS], ids=lambda path: str(path.relative_to(ROOT)))
def test_the_first_line_names_the_schema(path: Path) -> None:
    first = path.read_text().partition("\n")[0]
    schema = first.removeprefix("# yaml-language-server: $schema=")
    assert schema != first
    assert (path.parent / schema).is_file()
