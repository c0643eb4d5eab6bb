"""Short GRPO runs, one for each credit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from short_run import SHORT, carry_out, write_run

CREDITS: dict[str, dict[str, Any]] = {
    "discounted": {"turns": "to_go"},
    "gigpo": {"anchor": "world_and_answer"},
    "information": {},
    "reaction": {},
    "influence": {},
    "checklist": {"items": [{"id": "spoke", "when": {"count": {"of": "turns", "at_least": 2}}}]},
}


@pytest.mark.parametrize(
    "credit",
    [pytest.param(name, marks=[] if name == "checklist" else pytest.mark.slow) for name in CREDITS],
)
def test_a_run_learns_with_each_credit(credit: str, tmp_path: Path) -> None:
    grpo = SHORT["grpo"] | {"iterations": 1, "credit": {credit: CREDITS[credit]}}
    evaluated = {"episodes": 1, "temperatures": [1.0]}
    (line,) = carry_out(write_run(tmp_path, grpo=grpo, eval=evaluated), tmp_path / "out")
    assert line["trained_tokens"] > 0
    assert line["first_ratio_mean"] == pytest.approx(1, abs=1e-4)
    assert line["credit"].keys() == {"moved", "gap", "outcome"}
