"""A part of the recorded BFCL vectors; `benchmarks/conformance.py` replays all of them."""

from __future__ import annotations

import json
from itertools import islice

import pytest

from muarl.compat.conformance import Tally

FUZZ_EVERY = 16
"""Of the random episodes each so many-th, so that every class is met."""

FILES = [
    f"bfcl_{version}_{part}_dev"
    for version in ("v3", "v4")
    for part in ("multi_turn_base", "multi_turn_long_context", "multi_turn_miss_func", "evaluator")
]


def replayed(lines, name, upstream):
    tally = Tally()
    for number, line in enumerate(lines, start=1):
        tally.add(f"{name}:{number}", json.loads(line), upstream)
    assert tally.calls > 0
    return tally.wrong


@pytest.mark.parametrize("name", FILES)
def test_gold_calls_and_verdicts_are_the_official_ones(name, fixtures, upstream):
    with (fixtures / f"{name}.jsonl").open() as lines:
        assert replayed(islice(lines, 3), name, upstream) == []


@pytest.mark.parametrize("version", ["v3", "v4"])
def test_random_calls_of_every_class_answer_as_the_official_ones(version, fixtures, upstream):
    name = f"bfcl_{version}_fuzz_dev"
    with (fixtures / f"{name}.jsonl").open() as lines:
        assert replayed(islice(lines, 0, None, FUZZ_EVERY), name, upstream) == []
