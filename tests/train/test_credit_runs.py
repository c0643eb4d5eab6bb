"""Short GRPO runs, one for each credit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from short_run import SHORT, carry_out, ready_model, write_run

from muarl.errors import SpecError
from muarl.spec import load_run
from muarl.train.run_domain import ready_domain

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
    run_file = write_run(tmp_path, grpo=grpo, eval=evaluated, model=ready_model())
    (line,) = carry_out(run_file, tmp_path / "out")
    assert line["trained_tokens"] > 0
    assert line["first_ratio_mean"] == pytest.approx(1, abs=1e-4)
    assert line["credit"].keys() == {"moved", "gap", "outcome"}


def test_items_that_do_not_fit_the_domain_are_refused_where_they_stand(tmp_path: Path) -> None:
    items = [
        {"id": "a", "when": {"any": [{"called": {"tool": "get_ordr"}}, {"gold_world": True}]}},
        {"id": "b", "when": {"sql": {"query": "SELECT 1", "equals": 1}}},
        {"id": "c", "when": {"gold_world": True}},
    ]
    grpo = SHORT["grpo"] | {"credit": {"checklist": {"items": items}}}
    run_file = write_run(tmp_path, grpo=grpo, model=ready_model())
    with pytest.raises(SpecError) as caught:
        anyio.run(ready_domain, load_run(run_file))
    first, second = map(str, caught.value.problems)
    assert "unknown tool 'get_ordr'; did you mean 'get_order'?" in first
    assert "the world is no database" in second
    lines = run_file.read_text().splitlines()
    assert "get_ordr" in lines[int(first.split(":")[1]) - 1]
