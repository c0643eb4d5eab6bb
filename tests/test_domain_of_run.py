"""A run and its domain must fit together."""

from __future__ import annotations

from pathlib import Path

import pytest
from spec_files import spoil, write_all

from muarl.errors import SpecError
from muarl.spec import load_run
from muarl.suite import load_domain_of


def test_the_domain_is_found_beside_the_run_file(tmp_path: Path) -> None:
    write_all(tmp_path)
    spoil(tmp_path / "run.yaml", "grpo: {iterations: 3}", "eval: {split: train}")
    assert load_domain_of(load_run(tmp_path / "run.yaml")).spec.id == "shop"


def test_splits_that_the_domain_does_not_have_are_problems_of_the_run_file(tmp_path: Path) -> None:
    write_all(tmp_path)
    spoil(tmp_path / "run.yaml", "iterations: 3", "split: trian")
    run = load_run(tmp_path / "run.yaml")
    with pytest.raises(SpecError) as caught:
        load_domain_of(run)
    assert [str(problem) for problem in caught.value.problems] == [
        f"{tmp_path / 'run.yaml'}:1:1: unknown split 'held_out'; known: train",
        f"{tmp_path / 'run.yaml'}:4:15: unknown split 'trian'; did you mean 'train'?",
    ]
