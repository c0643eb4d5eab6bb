"""What tells the weights that GRPO began with from others."""

from __future__ import annotations

from pathlib import Path

import pytest

from muarl.errors import RecordError
from muarl.train.began_with import COUNTER, began_with, refuse_another_beginning


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
