"""A part of the recorded vectors; `benchmarks/conformance.py` replays all of them."""

from __future__ import annotations

import json
from itertools import islice

import pytest

from muarl.compat.conformance import Tally, records, replayed
from muarl.errors import RecordError

EACH = 8
"""Records of a file: enough to meet every tool, few enough for seconds."""

FILES = [
    "acebench_agent_fuzz_dev",
    "acebench_agent_repaired_dev",
    "acebench_en_agent_multi_step_dev",
    "acebench_en_agent_multi_turn_dev",
    "acebench_zh_agent_multi_step_dev",
    "acebench_zh_agent_multi_turn_dev",
    "tau1_airline_fuzz_dev",
    "tau1_airline_test_dev",
    "tau1_retail_fuzz_dev",
    "tau1_retail_test_dev",
    "tau2_airline_dev",
    "tau2_airline_evaluator_dev",
    "tau2_airline_fuzz_dev",
    "tau2_mock_dev",
    "tau2_mock_evaluator_dev",
    "tau2_mock_fuzz_dev",
    "tau2_retail_dev",
    "tau2_retail_evaluator_dev",
    "tau2_retail_fuzz_dev",
    "tau2_telecom_base_dev",
    "tau2_telecom_evaluator_dev",
    "tau2_telecom_fuzz_dev",
]


@pytest.mark.parametrize("name", FILES)
def test_our_tools_answer_as_the_official_ones(name, fixtures, upstream):
    tally = Tally()
    with (fixtures / f"{name}.jsonl").open() as lines:
        for number, line in enumerate(islice(lines, EACH), start=1):
            tally.add(f"{name}:{number}", json.loads(line), upstream)
    assert tally.calls > 0
    assert tally.wrong == []


def test_a_record_of_an_unknown_benchmark_is_an_error_that_names_the_known_ones(upstream):
    with pytest.raises(RecordError, match=r"'chess'; known: .*tau1"):
        replayed({"benchmark": "chess"}, upstream)


@pytest.mark.parametrize("line", ['{"benchmark": "zzz"', '["tau1"]'])
def test_a_line_that_is_no_record_is_named(tmp_path, line):
    (tmp_path / "held.jsonl").write_text(f"\n{line}\n")
    with pytest.raises(RecordError, match=r"held\.jsonl:2: "):
        list(records(tmp_path))


def test_an_exception_of_ours_is_a_difference_and_what_follows_is_counted(fixtures, upstream):
    record = first_record(fixtures, "tau1_retail_test_dev")
    broken = json.loads(json.dumps(record))
    del broken["actions"][1]["output"]
    tally = Tally()
    tally.add("one", broken, upstream)
    tally.add("other", record, upstream)
    assert 0 < tally.summary()["gold"] < 1
    (wrong,) = tally.wrong
    assert wrong.startswith("one: tau1 retail test after ")
    assert wrong.endswith("call 0 find_user_id_by_name_zip: raised KeyError('output')")


def first_record(fixtures, name):
    with (fixtures / f"{name}.jsonl").open() as lines:
        return json.loads(next(lines))


def test_a_wrong_answer_is_counted_and_shown(fixtures, upstream):
    record = first_record(fixtures, "tau1_retail_test_dev")
    record["actions"][0]["output"] = "somebody else"
    tally = Tally()
    tally.add("here", record, upstream)
    assert tally.summary()["gold"] < 1
    assert "official 'somebody else'" in tally.wrong[0]


def test_a_wrong_verdict_is_counted(fixtures, upstream):
    record = first_record(fixtures, "acebench_en_agent_multi_turn_dev")
    record["end_to_end_valid"] = not record["end_to_end_valid"]
    tally = Tally()
    tally.add("here", record, upstream)
    assert tally.summary()["evaluator"] == 0
