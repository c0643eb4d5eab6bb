from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import _labelled

DIALOGUES = _labelled.load()


def test_what_a_reader_counted_in_forty_dialogues_is_counted_exactly() -> None:
    assert len(DIALOGUES) == 40
    assert _labelled.miscounted(DIALOGUES) == []


@pytest.mark.parametrize("part", _labelled.PARTS)
def test_text_patterns_see_what_a_reader_saw(part: str) -> None:
    of_part = [dialogue for dialogue in DIALOGUES if dialogue.part == part]
    assert len(of_part) == 20
    assert _labelled.f1(_labelled.cue_counts(of_part).values()) >= 0.95


def test_a_reader_who_saw_something_else_is_told() -> None:
    (first, *_) = DIALOGUES
    speaker, labels = first.labels[0]
    first.labels[0] = (speaker, labels - {"polite", "+tracking"} | {"unclear"})
    try:
        assert len(_labelled.miscounted(DIALOGUES)) == 1
        (mistake,) = _labelled.mistakes([first])
        assert "'polite', 'unclear'" in mistake
    finally:
        first.labels[0] = (speaker, labels)
