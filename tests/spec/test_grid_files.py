"""Grid files: what they name has to be there, and mistakes are told with their place."""

from __future__ import annotations

from pathlib import Path

import pytest
from spec_files import GRID, said, spoil, write_all

from muarl.errors import SpecError
from muarl.spec import load_grid, load_run
from muarl.spec.kinds import kind_of


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    write_all(tmp_path)
    path = tmp_path / "grid.yaml"
    path.write_text(GRID)
    return path


def test_a_grid_is_known_by_its_fields_and_compares_with_what_the_gain_began_with(
    grid: Path,
) -> None:
    assert kind_of(grid) == "grid"
    spec = load_grid(grid).spec
    assert (spec.first_policy, spec.first_user) == ("cold", "own")
    assert [policy.folder() for policy in spec.policies.values()] == ["run/cold_start", "run", None]
    without = spec.model_copy(update={"gain": None})
    assert (without.first_policy, without.first_user) == ("cold", "own")


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (
            "run: run.yaml",
            "run: rum.yaml",
            "2:6: no such file: 'rum.yaml'; did you mean 'run.yaml'?",
        ),
        ("{cold: cold", "{cold: colt", "10:14: unknown policy 'colt'; did you mean 'cold'?"),
        ("user: own}", "user: owl}", "10:44: unknown user 'owl'; did you mean 'own'?"),
        (
            "trained: trained",
            "trained: cold",
            "10:29: 'cold' cannot have gained over itself; name another policy",
        ),
        (
            "  other: {scripted: {knobs: {no_follow_up: 1}}}\n",
            "",
            "9:7: a gain is kept under other users than its own; add one to `users`",
        ),
        (
            "{trivial: do_nothing}",
            "{}",
            "6:9: 'idle': give exactly one of model, cold_start, expert, chat, trivial and plugin",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place(grid: Path, old: str, new: str, found: str) -> None:
    spoil(grid, old, new)
    with pytest.raises(SpecError) as caught:
        load_grid(grid)
    assert said(caught.value) == [found]


def test_a_grid_is_no_run(grid: Path) -> None:
    with pytest.raises(SpecError, match="this is a grid file"):
        load_run(grid)


def test_a_machine_may_give_values(grid: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUN_FOLDER", "elsewhere")
    spoil(grid, "{model: run}", '{model: "${env:RUN_FOLDER}"}')
    assert load_grid(grid).spec.policies["trained"].model == "elsewhere"


def test_moved_a_grid_means_the_same_files(grid: Path, tmp_path: Path) -> None:
    moved = load_grid(grid).spec.moved(tmp_path, tmp_path / "below")
    assert moved.run == "../run.yaml"
    assert moved.policies["cold"].folder() == "../run/cold_start"
    assert moved.policies["idle"] == load_grid(grid).spec.policies["idle"]
