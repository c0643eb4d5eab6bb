"""`muarl users`: what simulated users are like, in columns."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from bad_input import InProcess

from muarl.cli.users import is_worst
from muarl.evaluate.statistics import Interval
from muarl.measure import CATALOGUE, Line, Transcript


@pytest.fixture
def rollout(muarl: InProcess, run_file: Path, out: Path) -> Path:
    """The folder of a rollout of six dialogues."""
    assert muarl("rollout", run_file, "--expert", "--episodes", 6, "--out", out).code == 0
    return out


def people(path: Path, *openings: str) -> Path:
    talks = [
        Transcript(
            id=str(number),
            task=f"task-{number}",
            lines=(Line("user", opening), Line("agent", "Done."), Line("user", "Bye.", stop=True)),
            user="person",
            persona="calm" if number % 2 else "hasty",
            reward=1.0,
        )
        for number, opening in enumerate(openings)
    ]
    path.write_bytes(b"\n".join(map(msgspec.json.encode, talks)))
    return path


def test_a_run_and_people_stand_side_by_side(
    muarl: InProcess, rollout: Path, tmp_path: Path
) -> None:
    folks = people(tmp_path / "folks.jsonl", "Please cancel it.", "Where is my lamp?")
    answered = muarl("users", rollout, folks)
    assert answered.code == 0
    head, dialogues, faults, reward, *rows = answered.out.splitlines()
    assert head.split() == ["out", "folks"]
    assert dialogues.split()[:2] == ["dialogues", "6"]
    assert "2 on 2 tasks" in dialogues
    assert faults.split()[1:] == ["0", "(0", "users')", "0", "(0", "users')"]
    assert reward.split()[:2] == ["reward", "1.000"]
    assert "17 register" in rows
    (polite,) = (row for row in rows if row.strip().startswith("polite_turns"))
    assert "0.250 [" in polite
    assert any("out: tags and words agree on" in row for row in rows)


def test_columns_can_be_personas(muarl: InProcess, tmp_path: Path) -> None:
    folks = people(tmp_path / "folks.jsonl", "Please cancel it.", "Where is my lamp?")
    assert muarl("users", folks, "--by", "persona").out.split("\n")[0].split() == ["hasty", "calm"]
    assert muarl("users", folks, "--by", "user").out.split("\n")[0].split() == ["person"]


def test_a_persona_with_a_line_end_in_it_breaks_no_table(muarl: InProcess, tmp_path: Path) -> None:
    folks = people(tmp_path / "folks.jsonl", "Please cancel it.", "Where is my lamp?")
    folks.write_text(folks.read_text().replace('"hasty"', '"in\\na\\thurry"'))
    table = muarl("users", folks, "--by", "persona").out.splitlines()
    assert table[0].split() == [r"in\na\thurry", "calm"]
    assert table[1].startswith("dialogues")


def test_a_reference_shows_what_is_further_away_than_its_own_halves(
    muarl: InProcess, tmp_path: Path
) -> None:
    short = people(tmp_path / "short.jsonl", *["Please cancel it."] * 12)
    long = people(tmp_path / "long.jsonl", *["Cancel my order of the lamp from last week."] * 12)
    answered = muarl("users", long, "--reference", short)
    assert "long: words_per_turn (all) is" in answered.out
    assert "long: success is off by 0.000 (27 calibration)" in answered.out
    found = json.loads(muarl("users", long, "--reference", short, "--json").out)
    beside = found["columns"]["long"]["beside"]
    (words,) = (
        d for d in beside["distances"] if (d["name"], d["outcome"]) == ("words_per_turn", "success")
    )
    assert (words["value"], words["halves"]) == (3.0, 0.0)
    assert found["columns"]["long"]["measured"]["figures"]["words_per_turn"]["value"] == 5


def test_what_is_no_corpus_is_one_line(muarl: InProcess, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text("{}\n")
    answered = muarl("users", bad)
    assert answered.code != 0
    assert len(answered.lines) == 1
    assert f"{bad}:1: not a dialogue" in answered.lines[0]
    assert "no episodes.journal" in muarl("users", tmp_path).lines[0]
    folks = people(tmp_path / "x.jsonl", "Hi.")
    assert "two corpora are called 'x'" in muarl("users", folks, folks).lines[0]


def test_a_column_is_worst_only_where_its_interval_is_apart() -> None:
    def of(low: float, high: float) -> Interval:
        return Interval((low + high) / 2, low, high, 9, "wilson")

    lower, higher = CATALOGUE["role_flips"], CATALOGUE["contract"]
    assert is_worst(lower, of(0.5, 0.6), [of(0.1, 0.4), of(0.2, 0.45)])
    assert not is_worst(lower, of(0.5, 0.6), [of(0.1, 0.55)])
    assert is_worst(higher, of(0.1, 0.2), [of(0.3, 0.4)])
    assert not is_worst(higher, of(0.3, 0.4), [of(0.1, 0.2)])
    assert not is_worst(CATALOGUE["words_per_turn"], of(5, 6), [of(1, 2)])
    assert not is_worst(lower, of(0.5, 0.6), [])
    assert not is_worst(lower, of(0.5, 0.6), [Interval(0.1, None, None, 1, "wilson")])


def test_a_file_without_dialogues_is_no_corpus(muarl: InProcess, tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").write_text("\n")
    answered = muarl("users", tmp_path / "none.jsonl")
    assert answered.code == 1
    assert "none.jsonl: no dialogue in it" in "".join(answered.lines)


def test_a_reference_that_tells_nothing_says_so(muarl: InProcess, tmp_path: Path) -> None:
    folks = people(tmp_path / "folks.jsonl", "Please cancel it.", "Where is my lamp?")
    one = people(tmp_path / "one.jsonl", "Please cancel it.")
    assert "folks: no distance: too few dialogues" in muarl("users", folks, "--reference", one).out
