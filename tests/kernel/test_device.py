from __future__ import annotations

import pytest
import torch

from muarl.errors import SetupError
from muarl.kernel.device import device_for


def gpus(monkeypatch: pytest.MonkeyPatch, count: int, rank: str | None) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    if rank is None:
        monkeypatch.delenv("LOCAL_RANK", raising=False)
    else:
        monkeypatch.setenv("LOCAL_RANK", rank)


@pytest.mark.parametrize(
    ("asked", "count", "rank", "device"),
    [
        ("auto", 0, "3", "cpu"),
        ("auto", 1, None, "cuda:0"),
        ("auto", 8, "3", "cuda:3"),
        ("cuda", 8, "7", "cuda:7"),
        ("cpu", 8, "3", "cpu"),
    ],
)
def test_each_process_of_a_machine_has_a_gpu_of_its_own(
    asked: str, count: int, rank: str | None, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus(monkeypatch, count, rank)
    assert str(device_for(asked)) == device  # type: ignore[arg-type]


@pytest.mark.parametrize("rank", [None, "2"])
def test_a_machine_without_a_gpu_is_told_so_in_the_same_words_by_each_process(
    rank: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus(monkeypatch, 0, rank)
    with pytest.raises(
        SetupError, match=r"^model.device: cuda: torch sees no GPU .* cpu, or [^0-9]*$"
    ):
        device_for("cuda")


@pytest.mark.parametrize(("asked", "count"), [("cuda", 2), ("auto", 2)])
def test_a_process_without_a_gpu_is_told_so(
    asked: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus(monkeypatch, count, "2")
    with pytest.raises(SetupError, match=f"needs a GPU of its own, and torch sees {count}"):
        device_for(asked)  # type: ignore[arg-type]
