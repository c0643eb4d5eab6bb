"""Judges of another family rule with evidence; people review on a page; agreement is told honestly."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bad_input import InProcess
from chat_kit import completion, served
from synth_kit import write_synth

from muarl.synth.agreement import agreement
from muarl.synth.verdicts import read_verdicts
from muarl.testing.http_server import HttpRequest


@pytest.fixture
def muarl(capfd: pytest.CaptureFixture[str]) -> InProcess:
    return InProcess(capfd)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


JUDGED = (
    "verify: {{judged: {{agent_family: none, judges: [{{family: llama, model: m, criterion: It was kind., "
    "base_url: '{url}/v1'}}]}}}}"
)


def rules(holds: Callable[[str], bool], quote: str = "") -> Callable[[HttpRequest], Any]:
    """A judge that rules by the dialogue, and quotes its user's first words, or what it is told to."""

    def answer(request: HttpRequest) -> Any:
        asked = request.json()["messages"][-1]["content"]
        said = re.search(r'"user", "text": "(.*?)"', asked)
        assert said is not None
        ruling = {"evidence": quote or said[1], "reason": "Read it.", "holds": holds(asked)}
        return completion(json.dumps(ruling))

    return answer


def test_a_judge_leaves_out_what_does_not_hold_and_shows_by_what(
    muarl: InProcess, tmp_path: Path
) -> None:
    with served(rules(lambda dialogue: "W3" not in dialogue)) as server:
        spec = write_synth(tmp_path, JUDGED.format(url=server.url))
        done = muarl("synth", spec, "--json")
        assert done.code == 0, done.lines
        asked = len(server.requests)
        # Looked at anew, what was ruled is not asked again.
        assert muarl("synth", spec, "--resume").code == 0
        assert len(server.requests) == asked == 6
    found = read_verdicts(Path("runs/synth"))
    (refused,) = (verdict for verdict in found.values() if not verdict.kept)
    assert (refused.stage, refused.kind) == ("judged", "It was kind.")
    (ruling,) = refused.rulings
    assert (ruling.judge, ruling.family, ruling.holds) == ("m", "llama", False)
    assert ruling.evidence == "I want to cancel W3."


def test_what_a_judge_ruled_outlives_a_kill_and_a_file_without_judges(
    muarl: InProcess, tmp_path: Path
) -> None:
    """Its rulings are on disk as they come: before, those of a verification that was killed were lost."""
    with served(rules(lambda _: True)) as server:
        spec = write_synth(tmp_path, JUDGED.format(url=server.url))
        whole = spec.read_text()
        assert muarl("synth", spec).code == 0
        out = Path("runs/synth")
        rulings = (out / "rulings.jsonl").read_bytes()
        (out / "verdicts.jsonl").unlink()  # as a kill before the end leaves it
        (out / "rulings.jsonl").write_bytes(rulings[: len(rulings) - 20])
        assert muarl("synth", spec, "--resume").code == 0
        assert len(server.requests) == 7, "the line that was broken off, and no other"
        spec.write_text(whole.replace("judged:", "user: false, judged:").split("verify:")[0])
        assert muarl("synth", spec, "--resume").code == 0
        spec.write_text(whole)
        assert muarl("synth", spec, "--resume").code == 0
        assert len(server.requests) == 7
    assert all(len(verdict.rulings) == 1 for verdict in read_verdicts(out).values())


def test_a_ruling_without_evidence_leaves_a_dialogue_out(muarl: InProcess, tmp_path: Path) -> None:
    with served(rules(lambda _: True, quote="what nobody said at all")) as server:
        done = muarl("synth", write_synth(tmp_path, JUDGED.format(url=server.url)), "--json")
    assert done.code == 1
    (stage,) = (s for s in json.loads(done.out)["stages"] if s["stage"] == "judged")
    assert stage["reasons"] == {"RewardError": 6}
    assert "quotes what is not in the dialogue" in stage["examples"]["RewardError"]


def test_a_judge_of_the_agents_own_family_is_refused(muarl: InProcess, tmp_path: Path) -> None:
    spec = write_synth(tmp_path, JUDGED.format(url="http://a").replace("none", "Llama"))
    muarl("synth", spec).refuses(2, "the judge 'm' is of the agent's own family")


def data_of(page: str) -> Any:
    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert block is not None
    return json.loads(block[1])


def test_the_page_is_whole_fetches_nothing_and_holds_texts_as_data(
    muarl: InProcess, tmp_path: Path
) -> None:
    spec = write_synth(tmp_path)
    text = (tmp_path / "domain.yaml").read_text()
    hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    (tmp_path / "domain.yaml").write_text(text.replace("rules: Be kind.", f"rules: '{hostile}'"))
    assert muarl("synth", spec).code == 0
    assert muarl("review", "runs/synth", "--page", "page.html", "--dialogues", 4).code == 0
    page = Path("page.html").read_text()
    assert hostile not in page
    assert not re.search(r"(?:src|href)=[\"']?(?:https?:)?//", page)
    assert "default-src 'none'" in page
    shown = data_of(page)["dialogues"]
    assert len(shown) == 4
    assert shown[0]["lines"][0] == ["rules", hostile]
    assert "kept" not in page.partition('id="data"')[2].partition("</script>")[0], "nobody is led"
    muarl("review", "runs/synth", "--page", "page.html").refuses(
        1, "is there already; use --overwrite, or name another place"
    )
    muarl("review", "runs/synth", "--page", "x.html", "--which", "refused").refuses(
        1, "no dialogue"
    )


LOST = {"run_seed": 1, "phase": "x", "iteration": 0, "task_id": "t", "sample": 0}


def reviews(page: Path, reviewer: str, accepts: Callable[[str], bool]) -> Path:
    """What the page saves."""
    said = [
        {"key": one["key"], "accepts": accepts(one["task"]), "comment": f"by {reviewer}"}
        for one in data_of(page.read_text())["dialogues"]
    ]
    path = Path(f"{reviewer}.json")
    path.write_text(json.dumps({"version": 1, "reviewer": reviewer, "reviews": said}))
    return path


def test_reviews_leave_dialogues_out_and_stay_when_all_is_looked_at_anew(
    muarl: InProcess, tmp_path: Path
) -> None:
    (tmp_path / "shop").mkdir()  # a domain's folder holds nothing else
    spec = write_synth(tmp_path / "shop")
    assert muarl("synth", spec).code == 0
    page = Path("page.html")
    muarl("review", "runs/synth", "--page", page)
    ada = reviews(page, "ada", lambda task: task != "cancel-1")
    bob = reviews(page, "bob", lambda task: task not in ("cancel-1", "cancel-2"))
    done = muarl("review", "runs/synth", "--take", ada, bob)
    assert done.code == 0, done.lines
    kept, between, *checks = done.out.splitlines()
    assert kept == "4 dialogues kept, 6 before"
    said = json.loads(Path("runs/synth/yield.json").read_text())
    assert (said["made"], said["kept"], said["stages"][-1]["stage"]) == (6, 4, "review")
    assert between.startswith("ada, bob: agree on 0.833 of 6, kappa 0.571 [")
    assert [line.partition(" [")[0] for line in checks] == [
        "ada, the checks: agree on 0.833 of 6, kappa 0.000",
        "bob, the checks: agree on 0.667 of 6, kappa 0.000",
    ]
    again = muarl("synth", spec, "--resume", "--json")
    assert again.code == 0, again.lines
    table = json.loads(again.out)
    assert {key: table[key] for key in said} == said
    assert (table["made"], table["kept"]) == (6, 4)
    assert table["stages"][-1]["reasons"] == {"rejected by a reviewer": 2}
    # The last word of a reviewer counts.
    muarl("review", "runs/synth", "--take", reviews(page, "bob", lambda _: True))
    done = muarl("review", "runs/synth", "--take", reviews(page, "ada", lambda _: True))
    assert done.out.startswith("6 dialogues kept, 5 before")
    kept = read_verdicts(Path("runs/synth")).values()
    assert all(verdict.kept and len(verdict.reviews) == 2 for verdict in kept)


def test_checks_that_kept_what_was_not_selected_are_not_said_to_have_refused_it(
    muarl: InProcess, tmp_path: Path
) -> None:
    (tmp_path / "shop").mkdir()
    spec = write_synth(tmp_path / "shop", "select: {at_most: 2}")
    assert muarl("synth", spec).code == 0
    muarl("review", "runs/synth", "--page", "page.html")
    # The same name in other spacing is the same person, who would else agree with herself.
    first = reviews(Path("page.html"), "ada", lambda _: True)
    second = reviews(Path("page.html"), " ada ", lambda _: True)
    done = muarl("review", "runs/synth", "--take", first, second)
    assert done.out.splitlines() == [
        "2 dialogues kept, 2 before",
        "ada, the checks: agree on all 6, which say the same: kappa is not known",
    ]
    stages = json.loads(Path("runs/synth/yield.json").read_text())["stages"]
    assert [(one["stage"], one["seen"]) for one in stages[-2:]] == [("review", 6), ("select", 6)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "expected reviews as the page saves them"),
        ('{"version": 2, "reviewer": "a", "reviews": []}', "expected reviews"),
        ('{"version": 1, "reviewer": " ", "reviews": []}', "`reviewer` is empty"),
        (
            json.dumps(
                {"version": 1, "reviewer": "a", "reviews": [{"accepts": True, "key": LOST}]}
            ),
            "x/0/t/0 is not in this folder",
        ),
        (
            json.dumps(
                {
                    "version": 1,
                    "reviewer": "a",
                    "reviews": [{"accepts": yes, "key": LOST} for yes in (True, False)],
                }
            ),
            "a both accepts and rejects x/0/t/0",
        ),
        ('{"version": 1, "reviewer": "the checks", "reviews": []}', "no person is called"),
    ],
)
def test_what_is_no_review_is_refused(
    muarl: InProcess, tmp_path: Path, text: str, words: str
) -> None:
    assert muarl("synth", write_synth(tmp_path)).code == 0
    Path("a.json").write_text(text)
    muarl("review", "runs/synth", "--take", "a.json").refuses(1, words)
    muarl("review", "runs/synth", "--take", "gone.json").refuses(1, "cannot be read")


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        # Cohen (1960) gives kappa for such tables; worked by hand: p 0.7, e 0.5.
        ((20, 5, 10, 15), "agree on 0.700 of 50, kappa 0.400 [0.118, 0.614]"),
        ((15, 0, 0, 15), "agree on 1.000 of 30, kappa 1.000 [0.773, 1.000]"),
        ((0, 5, 5, 0), "agree on 0.000 of 10, kappa -1.000 [-1.000, -0.445]"),
        ((5, 0, 0, 0), "agree on all 5, which say the same: kappa is not known"),
        ((0, 0, 0, 0), "nothing in common"),
    ],
)
def test_agreement_is_told_with_its_interval(counts: tuple[int, ...], words: str) -> None:
    kinds = [(True, True), (True, False), (False, True), (False, False)]
    pairs = [pair for pair, count in zip(kinds, counts, strict=True) for _ in range(count)]
    assert str(agreement(pairs)) == words
