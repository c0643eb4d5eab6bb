"""What tells the weights that GRPO began with from others."""

from __future__ import annotations

from pathlib import Path

import pytest

from muarl.errors import RecordError
from muarl.train.began_with import (
    COUNTER,
    LEARNED,
    began_with,
    learned_last,
    refuse_another_beginning,
    refuse_another_run,
)
from muarl.train.plan import BatchRecord


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model in two pieces."""
    for name in ("config.json", "model-1.safetensors", "model-2.safetensors", "tokenizer.json"):
        (tmp_path / name).write_bytes(name.encode())
    return tmp_path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.json", b"config.jsom"),
        ("model-2.safetensors", b"model-2.safetensorr"),
        ("model-2.safetensors", b""),
        ("model-3.safetensors", b""),
    ],
)
def test_another_config_or_byte_of_weights_is_another_beginning(
    folder: Path, name: str, content: bytes
) -> None:
    before = began_with(folder)
    refuse_another_beginning(folder, began_with(folder), {COUNTER: before})
    (folder / name).write_bytes(content)
    with pytest.raises(RecordError, match="does not hold the weights that GRPO began with"):
        refuse_another_beginning(folder, began_with(folder), {COUNTER: before})


def test_what_weights_do_not_depend_on_is_none(folder: Path) -> None:
    before = began_with(folder)
    (folder / "tokenizer.json").write_bytes(b"")
    assert began_with(folder) == before


def test_a_checkpoint_that_does_not_say_passes(folder: Path) -> None:
    refuse_another_beginning(folder, began_with(folder), {"stage": "grpo", "iteration": 1})


@pytest.mark.parametrize(
    ("groups", "refused"),
    [
        ([(1, "cancel-1", 0), (1, "return-2", 0)], False),
        ([(1, "return-2", 0), (1, "cancel-1", 0)], True),
        ([(1, "cancel-1", 0), (1, "return-2", 1)], True),
        ([(1, "cancel-1", 0)], True),
    ],
)
def test_a_checkpoint_that_learned_from_other_groups_is_another_runs(
    groups: list[tuple[int, str, int]], refused: bool
) -> None:
    own = BatchRecord(1, [(1, "cancel-1", 0), (1, "return-2", 0)])
    counters = {"stage": "grpo", "iteration": 2, LEARNED: learned_last(own)}
    records = [BatchRecord(0, []), BatchRecord(1, groups), BatchRecord(2, [])]
    if not refused:
        return refuse_another_run(Path("checkpoint"), Path("batches.jsonl"), records, counters)
    with pytest.raises(RecordError, match="iteration 2 in checkpoint learned from other groups"):
        refuse_another_run(Path("checkpoint"), Path("batches.jsonl"), records, counters)


def test_batches_that_are_not_known_refuse_nothing() -> None:
    counters = {"stage": "grpo", "iteration": 2, LEARNED: "0"}
    refuse_another_run(Path("checkpoint"), Path("batches.jsonl"), [BatchRecord(0, [])], counters)
    refuse_another_run(
        Path("checkpoint"), Path("batches.jsonl"), [BatchRecord(1, [])], {"iteration": 2}
    )
