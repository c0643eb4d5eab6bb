"""The benchmark that fuzzes guided by coverage, for a bounded number of inputs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fuzz_tally import GUIDED

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "fuzz.py"


def test_what_coverage_guides_to_is_accepted_or_refused_without_a_fault() -> None:
    pytest.importorskip("atheris", reason="atheris has wheels for Linux only")
    command = [sys.executable, str(BENCHMARK), "--json", "--inputs", "320", "--seconds", "240"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    for name, one in figures["targets"].items():
        GUIDED[name] = f"{one['inputs']} inputs guided by coverage ({one['became']})"
    assert figures["findings"] == 0, figures["targets"]
    assert done.returncode == 0
    # One dialogue makes several calls, and one spoiled spec is none.
    assert all(one["inputs"] > 0 for one in figures["targets"].values())
