from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from measure_kit import said

from muarl.errors import RecordError
from muarl.measure import CATALOGUE, View, measure
from muarl.measure.corpus import describe
from muarl.measure.people import read_dialogues
from muarl.measure.tiers import agreement, judge_tier, tag_tier
from muarl.measure.transcript import Judgement, Line

GOOD = said("Cancel W41.", "Shall I go ahead?", "Yes.", "[do] Done.", "Thanks. ###", reward=1.0)


def write(path: Path, *dialogues: object) -> Path:
    encoded = [d if isinstance(d, bytes) else msgspec.json.encode(d) for d in dialogues]
    path.write_bytes(b"\n".join(encoded) + b"\n")
    return path


def test_dialogues_of_people_come_back_as_they_were(tmp_path: Path) -> None:
    other = msgspec.structs.replace(GOOD, id="b", user="person")
    assert list(read_dialogues(write(tmp_path / "x.jsonl", GOOD, other))) == [GOOD, other]
    assert measure([GOOD, other]).dialogues == 2


def test_the_documented_dialogue_is_read(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "user-metrics.md").read_text(encoding="utf-8")
    shown = msgspec.json.decode(page.partition("```json\n")[2].partition("```")[0])
    (found,) = read_dialogues(write(tmp_path / "x.jsonl", shown))
    figures = measure([found]).figures
    assert figures["premature_disclosure"].value == figures["premature_termination"].value == 0
    assert figures["answers"].value == figures["contract"].value == 1
    assert {t.agreement.share for t in judge_tier([View(found)], CATALOGUE).values()} == {1}


def test_who_speaks_twice_is_taken_together_and_a_greeting_is_left_out(tmp_path: Path) -> None:
    lines = [("agent", "Hello!"), ("user", "Hi."), ("user", "My lamp broke."), ("agent", "Oh.")]
    raw = {"id": "a", "task": "t", "lines": [{"speaker": s, "text": t} for s, t in lines]}
    (found,) = read_dialogues(write(tmp_path / "x.jsonl", raw))
    assert [line.text for line in found.lines] == ["Hi. My lamp broke.", "Oh."]
    assert measure([found]).figures["user_turns"].value == 1


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", GOOD)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert list(read_dialogues(path)) == [GOOD]


@pytest.mark.parametrize("group", ["train", "train/a", "train/1/t", "train/²", "/"])
def test_a_group_is_whatever_people_call_it(group: str) -> None:
    others = [msgspec.structs.replace(GOOD, id=str(i), group=group) for i in range(3)]
    assert describe(others).alarms == []


BAD = {
    "not JSON": (b"{", "not a dialogue"),
    "unknown field": ({"id": "a", "task": "t", "lines": [], "persna": "x"}, "persna"),
    "no lines": ({"id": "a", "task": "t", "lines": []}, "has no lines"),
    "speaker": ({"id": "a", "task": "t", "lines": [{"speaker": "x", "text": ""}]}, "speaker"),
    "outcome": (msgspec.structs.replace(GOOD, outcome="won"), "unknown outcome 'won'; one of comp"),
    "reward": (msgspec.json.encode(GOOD).replace(b'"reward":1.0', b'"reward":2'), "reward"),
    "judgement": (
        msgspec.structs.replace(GOOD, judgements=(Judgement("asks", 9, True, "x"),)),
        "turn 9; the user has 3",
    ),
}


@pytest.mark.parametrize("bad", BAD)
def test_what_is_no_dialogue_is_named_with_its_line(tmp_path: Path, bad: str) -> None:
    content, words = BAD[bad]
    path = write(tmp_path / "x.jsonl", msgspec.structs.replace(GOOD, id="first"), content)
    with pytest.raises(RecordError, match=words) as raised:
        list(read_dialogues(path))
    assert str(raised.value).startswith(f"{path}:2: ")


def test_a_dialogue_comes_once_and_a_file_that_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"x.jsonl:2: dialogue 't/0' is there already, in line 1"):
        list(read_dialogues(write(tmp_path / "x.jsonl", GOOD, GOOD)))
    with pytest.raises(RecordError, match="cannot be read"):
        list(read_dialogues(tmp_path / "none.jsonl"))


def test_what_cannot_be_measured_is_refused_and_not_left_out(tmp_path: Path) -> None:
    silent = msgspec.structs.replace(GOOD, lines=(Line("agent", "Hello, how can I help?"),))
    with pytest.raises(
        RecordError, match=r"x.jsonl:1: nobody speaks as the user in dialogue 't/0'"
    ):
        list(read_dialogues(write(tmp_path / "x.jsonl", silent)))
    for figure, words in (
        ("role_flip", "counted turn by turn; did you mean 'role_flips'"),
        ("user_turns", "'user_turns', which is no figure that is counted turn by turn"),
    ):
        judged = msgspec.structs.replace(GOOD, judgements=(Judgement(figure, 0, False),))
        with pytest.raises(RecordError, match=words):
            list(read_dialogues(write(tmp_path / "x.jsonl", judged)))


def test_a_dialogue_that_nests_without_end_is_no_dialogue(tmp_path: Path) -> None:
    deep = '{"x":' + "[" * 5000 + "]" * 5000 + "}"
    use = f'{{"tool":"t","arguments":{deep}}}'
    line = f'{{"id":"a","task":"t","lines":[{{"speaker":"user","text":"Hi.","uses":[{use}]}}]}}'
    (tmp_path / "x.jsonl").write_text(line)
    with pytest.raises(RecordError, match=r"x.jsonl:1: not a dialogue"):
        list(read_dialogues(tmp_path / "x.jsonl"))


def test_tags_stand_beside_their_agreement_with_the_words() -> None:
    def tagged(*acts: str) -> View:
        marked = iter(acts)
        lines = tuple(
            msgspec.structs.replace(x, act=next(marked)) if x.speaker == "user" else x
            for x in GOOD.lines
        )
        return View(msgspec.structs.replace(GOOD, lines=lines))

    assert tag_tier([View(GOOD)]) is None
    honest = tag_tier([tagged("open", "confirm", "stop")])
    assert honest is not None
    assert honest.agreement.share == honest.agreement.kappa == 1
    lying = tag_tier([tagged("open", "deny", "stop"), tagged("open", "confirm", "stop")])
    assert lying is not None
    assert (lying.agreement.n, lying.agreement.share) == (4, 0.75)
    assert lying.acts == {"confirm": 0.25, "deny": 0.25, "stop": 0.5}
    assert lying.acts_by_words == {"confirm": 0.5, "stop": 0.5}


def test_agreement_takes_out_chance() -> None:
    assert agreement("aaab", "aaab").kappa == 1
    assert agreement("aaaa", "aaaa").kappa is None
    assert agreement("aabb", "abab").kappa == 0
    assert agreement("", "").share is None


def test_a_judgement_needs_its_evidence_word_by_word() -> None:
    judged = msgspec.structs.replace(
        GOOD,
        judgements=(
            Judgement("polite_turns", 2, True, "Thanks"),
            Judgement("polite_turns", 0, True, "please"),  # she never said that
            Judgement("polite_turns", 1, True, "Yes"),  # the words do not say so
            Judgement("polite_turns", 0, False),
            Judgement("user_turns", 0, True, "Cancel"),  # not counted turn by turn
        ),
    )
    found = judge_tier([View(judged)], CATALOGUE)
    assert list(found) == ["polite_turns"]
    polite = found["polite_turns"]
    assert (polite.value, polite.by_words, polite.unproved) == (2 / 3, 1 / 3, 1)
    assert polite.agreement.share == pytest.approx(2 / 3)


def test_seconds_and_costs_are_told_where_they_are_known() -> None:
    assert "latency_p95" not in measure([GOOD]).figures
    lines = (
        Line("user", "Hi.", seconds=2.0, cost=0.1),
        Line("agent", "Hm."),
        Line("user", "Ok.", cost=0.2),
    )
    timed = msgspec.structs.replace(GOOD, lines=lines)
    figures = measure([timed]).figures
    assert figures["latency_p95"].value == 2
    assert figures["user_cost"].value == pytest.approx(0.3)
