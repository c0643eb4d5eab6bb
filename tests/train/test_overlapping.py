"""Training on what must stay unseen: refused, or accepted with a reason that is on record (law L10)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from proof_shop import generated
from spec_files import write_all

from muarl.errors import SpecError
from muarl.report.run_folder import read_run_folder
from muarl.spec import Located, RunSpec, load_run
from muarl.suite import load_domain_of
from muarl.train.overlapping import overlap_lines, own_up
from muarl.train.progress import Silent
from muarl.train.run_domain import refuse_unfit
from muarl.train.run_folder import RunFolder

RUN = """\
version: 1
domain: shop
model: {tiny: {}}
grpo: {tasks_per_iteration: 2}
"""
UNSEEN = '{"id": "q1", "text": "where is my lamp"}\n{"id": "q2", "messages": [{"role": "user", "content": "W1 it is, of A7"}]}\n'


class Noting(Silent):
    """Keeps what is noted."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    write_all(tmp_path / "shop")
    generated(tmp_path / "shop", 'goal="",', 'goal=f"You want {order} of A7 cancelled.",')
    (tmp_path / "unseen.jsonl").write_text(UNSEEN)
    return tmp_path


def run(shop: Path, more: str) -> Located[RunSpec]:
    (shop / "run.yaml").write_text(RUN + more)
    return load_run(shop / "run.yaml")


def test_training_on_what_is_to_stay_unseen_is_refused_with_its_line_and_the_pair_L10(
    shop: Path,
) -> None:
    located = run(shop, "overlap:\n  against:\n    quiz: unseen.jsonl\n")
    with pytest.raises(SpecError) as refused:
        refuse_unfit(located, load_domain_of(located))
    assert "run.yaml:7:11: what is trained on overlaps with 'quiz'" in str(refused.value)
    assert "'q2' like 'train-1'" in str(refused.value)
    assert "say under `overlap.accepted` why" in str(refused.value)


def test_dialogues_that_a_cold_start_imitates_are_looked_at_too_L10(shop: Path) -> None:
    asked = '{"messages": [{"role": "user", "content": "%s"}, {"role": "assistant", "content": "done"}]}\n'
    (shop / "chat.jsonl").write_text(asked % "the brass lantern of K98, please, in Porto")
    (shop / "unseen.jsonl").write_text(asked % "the brass lantern of K98, please, in Porto")
    more = "cold_start: {file: chat.jsonl, episodes: 1}\noverlap: {against: {quiz: unseen.jsonl}}\n"
    located = run(shop, more)
    with pytest.raises(SpecError, match="what is trained on overlaps with 'quiz'"):
        refuse_unfit(located, load_domain_of(located))


def test_a_set_that_is_not_there_is_named_with_its_line(shop: Path) -> None:
    located = run(shop, "overlap:\n  against:\n    quiz: unsene.jsonl\n")
    with pytest.raises(SpecError, match=r"run\.yaml:7:11: .*there is no such file"):
        refuse_unfit(located, load_domain_of(located))


def test_sets_that_share_nothing_are_no_hindrance(shop: Path) -> None:
    (shop / "unseen.jsonl").write_text('{"text": "where is my lamp"}')
    located = run(shop, "overlap: {against: {quiz: unseen.jsonl}}\n")
    refuse_unfit(located, load_domain_of(located))
    assert list(overlap_lines(located, load_domain_of(located))) == []


def test_an_overlap_that_is_accepted_is_on_record_with_its_reason_L10(shop: Path) -> None:
    located = run(
        shop,
        "eval: {split: train}\n"
        "overlap: {against: {quiz: unseen.jsonl}, accepted: as the paper did it}\n",
    )
    domain = load_domain_of(located)
    refuse_unfit(located, domain)
    evaluated, quiz = overlap_lines(located, domain)
    assert evaluated == {
        "against": "split train, which is evaluated",
        "shared": 3,
        "tasks": 3,
        "exact": 3,
        "pairs": [[f"train-{i}", f"train-{i}"] for i in range(3)],
        "accepted": "as the paper did it",
    }
    assert (quiz["against"], quiz["shared"], quiz["tasks"]) == ("quiz", 1, 2)


def test_a_run_owns_up_as_it_begins_and_once_L10(shop: Path) -> None:
    located = run(
        shop,
        "eval: {split: train}\n"
        "overlap: {against: {quiz: unseen.jsonl}, accepted: as the paper did it}\n",
    )
    folder, progress = RunFolder(shop), Noting()
    for _ in range(2):
        own_up(located, load_domain_of(located), folder, progress)
    told = [(line["kind"], line["against"]) for line in folder.lines()]
    assert told == [("overlap", "split train, which is evaluated"), ("overlap", "quiz")]
    assert progress.notes == [
        (
            "3 of 3 items of split train, which is evaluated overlap with what is trained on; "
            "accepted: as the paper did it"
        ),
        "1 of 2 items of quiz overlap with what is trained on; accepted: as the paper did it",
    ]


def test_the_report_tells_of_it_L10(tmp_path: Path) -> None:
    (tmp_path / "spec.resolved.yaml").write_text("version: 1\ndomain: shop\n")
    (tmp_path / "versions.json").write_text("{}")
    line = {
        "against": "quiz",
        "shared": 1,
        "tasks": 2,
        "exact": 0,
        "pairs": [],
        "accepted": "why not",
    }
    (tmp_path / "metrics.jsonl").write_text(json.dumps({"kind": "overlap", **line}) + "\n")
    assert read_run_folder(tmp_path).notices == [
        (
            "1 of the 2 items of quiz overlap with what was trained on (0 are the same). "
            "It was accepted: why not"
        )
    ]


def test_paths_of_sets_follow_the_file_that_names_them(shop: Path) -> None:
    (shop / "over").mkdir()
    (shop / "over" / "more.yaml").write_text(
        "version: 1\noverlap: {against: {quiz: ../unseen.jsonl}}\n"
    )
    (shop / "run.yaml").write_text(RUN)
    located = load_run(shop / "run.yaml", shop / "over" / "more.yaml")
    assert located.spec.overlap.against == {"quiz": "unseen.jsonl"}
    moved = located.spec.moved(shop, shop / "runs" / "one")
    assert moved.overlap.against == {"quiz": "../../unseen.jsonl"}
