"""`muarl synth` makes, verifies and counts; it goes on after a kill, and refuses what cannot be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bad_input import SOURCE, InProcess
from chat_kit import completion, served, shop_agent
from spec_files import spoil
from synth_kit import write_synth

from muarl.record import StoredEpisodes
from muarl.spec import load_synth
from muarl.synth.verdicts import read_verdicts

KILLED = Path(__file__).with_name("killed_synthesis.py")


@pytest.fixture
def muarl(capfd: pytest.CaptureFixture[str]) -> InProcess:
    return InProcess(capfd)


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_synth(tmp_path)


def test_dialogues_are_made_verified_and_counted(
    muarl: InProcess, spec: Path, tmp_path: Path
) -> None:
    done = muarl("synth", spec)
    assert done.code == 0, done.lines
    lines = done.out.splitlines()
    assert lines[0] == "6 of 6 dialogues kept"
    assert [line.split()[0] for line in lines[1:-3]] == [
        "ended",
        "replay",
        "reward",
        "identifiers",
        "user",
        "copies",
    ]
    assert [line.split()[0] for line in lines[-3:-1]] == ["made:", "kept:"]
    assert lines[-1] == "runs/synth"
    out = tmp_path / "runs" / "synth"
    verdicts = read_verdicts(out)
    episodes = list(StoredEpisodes([out / "episodes.journal"]))
    assert {episode.key for episode in episodes} == set(verdicts)
    assert all(verdict.kept for verdict in verdicts.values())
    assert json.loads((out / "yield.json").read_text())["kept"] == 6
    # It is a run's folder, for every verb that reads one.
    assert muarl("replay", out).out.startswith("6 episodes are as recorded")


def test_what_was_made_is_looked_at_anew_without_being_made_again(
    muarl: InProcess, spec: Path, tmp_path: Path
) -> None:
    assert muarl("synth", spec).code == 0
    journal = tmp_path / "runs" / "synth" / "episodes.journal"
    before = journal.read_bytes()
    spec.write_text(spec.read_text() + "verify: {rules: [{preceded: {by: look}}]}\n")
    done = muarl("synth", spec, "--resume", "--json")
    assert done.code == 1, "nothing is kept"
    table = json.loads(done.out)
    assert (table["made"], table["kept"]) == (6, 0)
    (rules,) = (stage for stage in table["stages"] if stage["stage"] == "rules")
    assert rules["reasons"] == {"preceded look": 6}
    assert journal.read_bytes() == before
    spoil(spec, "{expert: {}}", "{expert: {imperfections: {}}}")
    assert muarl("synth", spec, "--resume").code == 1, "the same, in other words"
    spoil(spec, "dialogues: 6", "dialogues: 7")
    muarl("synth", spec, "--resume").refuses(1, "was run with another spec", lines=2)


def test_killed_again_and_again_it_comes_to_the_same_L9(
    muarl: InProcess, spec: Path, tmp_path: Path
) -> None:
    spec.write_text(spec.read_text() + "rollout: {concurrency: 2}\n")
    assert muarl("synth", spec, "--out", "whole").code == 0
    done = subprocess.run(
        [sys.executable, str(KILLED), str(spec), "killed", "3"],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    whole, killed = (
        sorted(StoredEpisodes([Path(name) / "episodes.journal"]), key=lambda e: str(e.key))
        for name in ("whole", "killed")
    )
    assert [e.samples for e in killed] == [e.samples for e in whole]
    assert read_verdicts(Path("killed")) == read_verdicts(Path("whole"))
    assert (tmp_path / "killed" / "yield.json").read_text() == (
        tmp_path / "whole" / "yield.json"
    ).read_text()


def test_the_agent_may_be_an_llm_behind_an_endpoint(muarl: InProcess, spec: Path) -> None:
    with served(shop_agent) as server:
        llm = f"{{base_url: {server.url}/v1, model: some-model}}"
        spoil(spec, "{expert: {}}", f"{{llm: {llm}}}")
        done = muarl("synth", spec)
        assert done.code == 0, done.lines
    assert done.out.startswith("6 of 6 dialogues kept")
    asked = [json.loads(request.body) for request in server.requests]
    assert {request["model"] for request in asked} == {"some-model"}
    assert [tool["function"]["name"] for tool in asked[0]["tools"]] == ["look", "cancel"]
    # Its own calls come back to it in the same form, with their answers.
    (last,) = (r["messages"] for r in asked[-1:])
    call, answer = last[-2:]
    assert call["tool_calls"][0]["function"]["name"] == "cancel"
    assert answer == {"role": "tool", "content": "ok", "tool_call_id": call["tool_calls"][0]["id"]}


def test_what_an_llm_calls_wrongly_is_its_own_mistake(muarl: InProcess, spec: Path) -> None:
    with served(lambda _: completion("", ("cancel", "{broken"))) as server:
        spoil(spec, "{expert: {}}", f"{{llm: {{base_url: {server.url}/v1, model: m}}}}")
        done = muarl("synth", spec, "--json")
    assert done.code == 1
    assert json.loads(done.out)["stages"][0]["reasons"] == {"truncated_turns": 6}


def test_an_endpoint_that_says_nothing_is_a_fault(muarl: InProcess, spec: Path) -> None:
    spec.write_text(spec.read_text() + "rollout: {attempts: 1, max_fault_rate: 1.0}\n")
    with served(lambda _: completion()) as server:
        spoil(spec, "{expert: {}}", f"{{llm: {{base_url: {server.url}/v1, model: m}}}}")
        done = muarl("synth", spec, "--json")
    assert done.code == 1
    (first, *_) = json.loads(done.out)["stages"]
    assert first["reasons"] == {"PolicyError": 6}
    assert "answered with neither a text nor a call" in first["examples"]["PolicyError"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("domain: domain.yaml", "domain: gone.yaml", "synth.yaml:2:9: no such file: 'gone.yaml'"),
        ("{expert: {}}", "{model: gone}", "no such file: 'gone'"),
        ("{expert: {}}", "{model: m, expert: {}}", "give exactly one of expert, model and llm"),
        ("{expert: {}}", "{}", "give exactly one of expert, model and llm"),
        ("dialogues: 6", "dialogues: 0", "greater than"),
        ("dialogues: 6", "dialouges: 6", "did you mean 'dialogues'?"),
        ("dialogues: 6", "split: trian", "synth.yaml:3:8: unknown split 'trian'; did you mean"),
        (
            "licence: CC-BY-4.0",
            "verify: {rules: [{preceded: {by: lok}}]}",
            "tool 'lok'; did you mean 'look'?",
        ),
        (
            "licence: CC-BY-4.0",
            "user: {model: {}}",
            "a user is a `model`, and there is none for her; say which: `user_model`",
        ),
        (
            "{expert: {}}",
            "{llm: {base_url: 'http://a/v1', model: m, api_key_env: NO_KEY}}",
            "NO_KEY",
        ),
    ],
)
def test_what_is_wrong_is_said_before_a_folder_is_made(
    muarl: InProcess, spec: Path, old: str, new: str, words: str
) -> None:
    spoil(spec, old, new)
    done = muarl("synth", spec)
    assert done.code in (1, 2)
    said = "\n".join(done.lines)
    assert "Traceback" not in said
    assert words in said, said
    assert not Path("runs").exists()


def test_a_dry_run_says_what_would_be_done(muarl: InProcess, spec: Path) -> None:
    done = muarl("synth", spec, "--dry-run")
    assert done.code == 0
    assert "min_reward: 1.0" in done.out
    assert not Path("runs").exists()


def test_files_and_values_are_laid_over_it_as_over_a_run(
    muarl: InProcess, spec: Path, tmp_path: Path
) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "own.yaml").write_text("version: 1\nbase: [../synth.yaml]\nseed: 3\n")
    (tmp_path / "few.yaml").write_text("version: 1\ndialogues: 2\n")
    words = ["more/own.yaml", "few.yaml", "--set", "verify.near=0.9"]
    dry = muarl("synth", *words, "--dry-run")
    assert dry.code == 0, dry.lines
    Path("whole.yaml").write_text(dry.out)
    whole = load_synth("whole.yaml").spec
    assert (whole.seed, whole.dialogues, whole.verify.near) == (3, 2, 0.9)
    assert whole.domain == "domain.yaml"
    done = muarl("synth", *words)
    assert done.code == 0, done.lines
    assert done.out.splitlines()[-1] == "runs/own-few"
    assert muarl("check", spec, "few.yaml", "--limit", 2).code == 0
    muarl("synth", spec, "--set", "verify.neer=1").refuses(
        2, "--set verify.neer=1: unknown field 'neer'; did you mean 'near'?"
    )


@pytest.mark.parametrize("agent", ["expert", "llm"])
def test_a_suite_has_dialogues_of_each_of_its_domains(
    muarl: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        path = write_synth(tmp_path / name)
    (tmp_path / "both.yaml").write_text(
        "version: 1\nid: both\nsummary: Two shops.\nmembers:\n"
        "  a: {file: one/domain.yaml, splits: {train: train}}\n"
        "  b: {file: two/domain.yaml, splits: {train: train}}\n"
    )
    spec = tmp_path / "synth.yaml"
    spec.write_text(path.read_text() + "verify: {near: null, rules: [{preceded: {by: look}}]}\n")
    spoil(spec, "domain: domain.yaml", "domain: both.yaml")
    spoil(spec, "preceded: {by: look}", "called: {tool: cancel}")
    with served(shop_agent) as server:
        if agent == "llm":
            llm = f"{{llm: {{base_url: {server.url}/v1, model: m}}}}"
            spoil(spec, "{expert: {}}", llm)
        done = muarl("synth", spec, "--out", "made")
    assert done.code == 0, done.lines
    assert done.out.startswith("6 of 6 dialogues kept")
    kept = read_verdicts(Path("made"))
    assert {key.task_id.split(".")[0] for key in kept} == {"a", "b"}
    assert muarl("review", "made", "--page", "page.html").code == 0
    assert muarl("export", "made", "--what", "dialogues", "--out", "rows.jsonl").code == 0
    spoil(spec, "tool: cancel", "tool: cancle")
    muarl("synth", spec, "--out", "x").refuses(2, "did you mean 'cancel'?")


def test_the_domain_may_have_no_expert(muarl: InProcess, spec: Path, tmp_path: Path) -> None:
    spoil(tmp_path / "domain.yaml", "expert: expert.py:Expert\n", "")
    muarl("synth", spec).refuses(2, "the domain names no expert")


def test_a_file_of_another_kind_is_named(muarl: InProcess, spec: Path, tmp_path: Path) -> None:
    muarl("synth", tmp_path / "run.yaml").refuses(2, "this is a run file")
    muarl("train", spec).refuses(2, "this is a synth file")
