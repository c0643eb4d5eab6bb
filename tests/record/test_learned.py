from __future__ import annotations

import pytest

from muarl.errors import RecordError
from muarl.record.learned import Learned, LearnedLine, append_learned, read_learned


def test_what_is_appended_is_read_and_of_an_iteration_written_again_the_last(tmp_path):
    path = tmp_path / "learned.jsonl"
    assert read_learned(path) == {}
    for iteration, turns in ((0, [1.0]), (1, [2.0]), (1, [3.0])):
        episode = Learned(f"train/{iteration}/t/0", turns, [[-0.5], None])
        append_learned(path, LearnedLine(iteration, [episode]))
    found = read_learned(path)
    assert {key: one.turns for key, one in found.items()} == {
        "train/0/t/0": [1.0],
        "train/1/t/0": [3.0],
    }
    assert found["train/0/t/0"].trainer_logprobs == [[-0.5], None]


def test_a_torn_line_is_left_out_and_the_next_takes_its_place(tmp_path):
    path = tmp_path / "learned.jsonl"
    append_learned(path, LearnedLine(0, [Learned("a", [1.0])]))
    with path.open("a") as file:
        file.write('{"iteration": 1, "epis')
    assert read_learned(path).keys() == {"a"}
    append_learned(path, LearnedLine(1, [Learned("b", [1.0])]))
    assert read_learned(path).keys() == {"a", "b"}


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"iteration": 1}',
        '{"iteration": "x", "episodes": []}',
        '{"a": ' + "[" * 5_000 + "]" * 5_000 + "}",
    ],
    ids=str.__len__,
)
def test_a_damaged_line_is_named(tmp_path, line):
    path = tmp_path / "learned.jsonl"
    path.write_text(line + "\n" + '{"iteration": 1, "episodes": []}\n')
    with pytest.raises(RecordError, match=r"learned\.jsonl:1: damaged"):
        read_learned(path)
