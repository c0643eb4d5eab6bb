"""Tasks that were composed are kept: the same domain is not composed twice, another one is."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio
import pytest
from goal_kit import shop

from muarl.data.proof import prove
from muarl.domain import load_domain
from muarl.domain.kept_tasks import MOST, VARIABLE, kept
from muarl.domain.tasks import TaskSource
from muarl.spec import TaskSpec

GOALS = """
goals = Goals()


@goals.goal()
def cancel(scene):
    free = [k for k, o in scene.world["orders"].items() if o["status"] == "pending"]
    key = scene.pick(free, any_split=True)
    return Wish(
        ask="cancel",
        words="you want order {order_id} cancelled",
        facts={"order_id": key},
        gold=[call("cancel", order_id=key)],
    )
"""
THREE = "splits: {train: 3}"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv(VARIABLE, str(folder))
    return folder


@pytest.fixture
def composed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Splits that were composed, one after another."""
    splits: list[str] = []
    really = TaskSource.generated

    def noted(source: TaskSource, split: str) -> tuple[TaskSpec, ...]:
        splits.append(split)
        return really(source, split)

    monkeypatch.setattr(TaskSource, "generated", noted)
    return splits


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    shop(folder, GOALS)
    said = (folder / "domain.yaml").read_text()
    (folder / "domain.yaml").write_text(said.replace("splits: {train: 4}", THREE))
    return folder


def test_the_same_domain_is_composed_once(folder: Path, cache: Path, composed: list[str]) -> None:
    first = load_domain(folder).tasks("train")
    assert load_domain(folder).tasks("train") == first
    assert len(first) == 3
    assert composed == ["train"]
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("goals.py", "cancelled", "to be cancelled"),
        ("tools.py", "Cancel an order;", "Cancels an order;"),
        ("domain.yaml", "price: 7", "price: 8"),
        ("domain.yaml", THREE, "splits: {train: 2}"),
    ],
)
def test_another_domain_is_composed_anew(
    folder: Path, cache: Path, composed: list[str], file: str, old: str, new: str
) -> None:
    load_domain(folder).tasks("train")
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))
    load_domain(folder).tasks("train")
    assert composed == ["train", "train"]


@pytest.mark.parametrize("spoilt", ["", "[]]", '[{"id": 1}]'])
def test_what_cannot_be_read_is_composed_anew(
    folder: Path, cache: Path, composed: list[str], spoilt: str
) -> None:
    made = load_domain(folder).tasks("train")
    (file,) = cache.iterdir()
    file.write_text(spoilt)
    assert load_domain(folder).tasks("train") == made
    assert load_domain(folder).tasks("train") == made
    assert composed == ["train", "train"]


def test_a_proof_composes_anew_and_compares(folder: Path, cache: Path, composed: list[str]) -> None:
    said = (folder / "goals.py").read_text()
    clock = said.replace('cancelled",', 'cancelled, " + str(time.time_ns()),')
    (folder / "goals.py").write_text("import time\n" + clock)
    load_domain(folder).tasks("train")
    domain = load_domain(folder)
    found = anyio.run(partial(prove, domain, dialogues=0))
    assert any("makes other tasks from the same seed" in str(f.problem) for f in found.findings)
    assert composed == ["train", "train"]


def test_nothing_is_kept_where_it_is_turned_off_or_nothing_can_be_written(
    folder: Path, tmp_path: Path, composed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    for said in ("off", str(tmp_path / "file" / "below")):
        monkeypatch.setenv(VARIABLE, said)
        load_domain(folder).tasks("train")
        load_domain(folder).tasks("train")
    assert composed == ["train"] * 4


def test_the_oldest_go(cache: Path) -> None:
    task = TaskSpec(id="t", goal="g", personas=["p"], gold=[])
    for number in range(MOST + 3):
        kept(str(number), lambda: [task])
    assert len(list(cache.iterdir())) == MOST
