"""The benchmark that fuzzes guided by coverage, for a bounded number of inputs."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fuzz_tally import GUIDED, TALLIES, Tally
from hypothesis import strategies as st

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "fuzz.py"


def test_what_coverage_guides_to_is_accepted_or_refused_without_a_fault() -> None:
    pytest.importorskip("atheris", reason="atheris has wheels for Linux only")
    command = [sys.executable, str(BENCHMARK), "--json", "--inputs", "320", "--seconds", "240"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    for name, one in figures["targets"].items():
        GUIDED[name] = f"{one['inputs']} inputs guided by coverage ({one['became']})"
    found = [finding for one in figures["targets"].values() for finding in one["findings"]]
    assert not found, "\n".join(map(str, found))
    assert figures["findings"] == 0
    assert done.returncode == 0
    # One dialogue makes several calls, and one spoiled spec is none.
    assert all(one["inputs"] > 0 for one in figures["targets"].values())


@pytest.fixture
def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmark_fuzz", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_broken_property_is_kept_once_with_its_input_and_fuzzing_goes_on(
    benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    tally = Tally()
    monkeypatch.setitem(TALLIES, "worlds", tally)
    fuzzer = benchmark.Fuzzer("worlds", inputs=100, seconds=1e9, seed=0)

    def broken(data: st.DataObject) -> None:
        number = data.draw(st.integers(0, 3))
        with tally.one(number):
            assert number != 2, "two"

    fuzzer.fuzz = broken
    fuzzer.at_random()
    (found,) = fuzzer.findings.values()
    assert "AssertionError: two" in found["what"]
    assert found["input"] == "2"
    assert tally.inputs > 3


def test_a_target_that_dies_is_a_finding(
    benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "dies.py").write_text("import os; os._exit(77)")
    monkeypatch.setattr(benchmark, "__file__", str(tmp_path / "dies.py"))
    (found,) = benchmark.fuzz_apart("specs", 1, 1.0, 0)["findings"]
    assert "the process ended with 77" in found["what"]
