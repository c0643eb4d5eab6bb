"""A part of the recorded vectors; `benchmarks/conformance.py --only acebench` replays all of them."""

from __future__ import annotations

import json
from itertools import islice

import pytest

from muarl.compat.conformance import Tally

EACH = 8

FILES = [
    "acebench_agent_fuzz_dev",
    "acebench_agent_repaired_dev",
    "acebench_en_agent_multi_step_dev",
    "acebench_en_agent_multi_turn_dev",
    "acebench_zh_agent_multi_step_dev",
    "acebench_zh_agent_multi_turn_dev",
]


@pytest.mark.parametrize("name", FILES)
def test_our_tools_answer_as_the_official_ones(name, fixtures, upstream):
    tally = Tally()
    with (fixtures / f"{name}.jsonl").open() as lines:
        for number, line in enumerate(islice(lines, EACH), start=1):
            tally.add(f"{name}:{number}", json.loads(line), upstream)
    assert tally.calls > 0
    assert tally.wrong == []


def test_a_wrong_verdict_and_a_wrong_answer_are_counted_and_shown(fixtures, upstream):
    with (fixtures / "acebench_en_agent_multi_turn_dev.jsonl").open() as lines:
        record = json.loads(next(lines))
    record["end_to_end_valid"] = not record["end_to_end_valid"]
    record["steps"][0]["output"] = ["another"]
    tally = Tally()
    tally.add("here", record, upstream)
    summary = tally.summary()
    assert (summary["evaluator"], summary["gold"] < 1) == (0.0, True)
    assert "official 'another'" in tally.wrong[0]
