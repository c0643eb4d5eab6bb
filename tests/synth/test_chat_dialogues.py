"""Dialogues leave as chat rows with all that is known of them, and come back to the same tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bad_input import InProcess, write_shop
from spec_files import spoil
from synth_kit import write_synth

from muarl.data.expert import byte_renderer
from muarl.errors import SpecError
from muarl.record import EpisodeKey, StoredEpisodes
from muarl.synth.chat_file import read_chat
from muarl.synth.imported import as_episode, imported

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"id": "W1"}'}}
SOUND: list[dict[str, Any]] = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Look at W1."},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "pending"},
    {"role": "assistant", "content": "It is pending."},
]


@pytest.fixture
def muarl(capfd: pytest.CaptureFixture[str]) -> InProcess:
    return InProcess(capfd)


@pytest.fixture
def made(muarl: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a synthesis that left one dialogue out."""
    monkeypatch.chdir(tmp_path)
    spec = write_synth(tmp_path, "verify: {near: null}")
    spoil(tmp_path / "tasks.yaml", "arguments: {order_id: W6}", "arguments: {order_id: W5}")
    assert muarl("synth", spec, "--out", "made").code == 0
    return Path("made")


def test_what_was_kept_is_exported_with_all_that_is_known_of_it(
    muarl: InProcess, made: Path
) -> None:
    done = muarl("export", made, "--what", "dialogues", "--out", "rows.jsonl")
    assert done.out == "5 dialogues in rows.jsonl\n"
    rows = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    first = rows[0]
    assert [message["role"] for message in first["messages"]] == [
        *("system", "user", "assistant", "user", "assistant", "tool", "assistant")
    ]
    assert [tool["function"]["name"] for tool in first["tools"]] == ["look", "cancel"]
    assert first["licence"] == "CC-BY-4.0"
    assert first["provenance"]["agent"] == "expert"
    assert first["provenance"]["task_id"] == "cancel-0"
    assert first["verification"] == {
        "passed": ["ended", "replay", "reward", "identifiers", "user"],
        "reward": 1.0,
        "rulings": [],
        "reviews": [],
    }
    assert "cancel-5" not in {row["provenance"]["task_id"] for row in rows}


def test_samples_of_a_synthesis_are_those_of_what_was_kept(muarl: InProcess, made: Path) -> None:
    done = muarl("export", made, "--what", "samples", "--out", "rows.jsonl")
    assert done.out == "5 samples in rows.jsonl; left out: 1 dialogues that were not kept\n"
    rows = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    assert "cancel-5" not in {row["task_id"] for row in rows}


@pytest.mark.parametrize("form", ["parquet", "hf"])
def test_tables_hold_the_same(muarl: InProcess, made: Path, form: str) -> None:
    out = f"rows.{form}"
    said = [] if form == "parquet" else ["--format", form]  # which its name says
    done = muarl("export", made, "--what", "dialogues", *said, "--out", out)
    assert done.code == 0, done.lines
    if form == "hf":
        import datasets

        rows = datasets.load_from_disk(out).to_list()
    else:
        import pyarrow.parquet

        rows = pyarrow.parquet.read_table(out).to_pylist()
    muarl("export", made, "--what", "dialogues", "--out", "rows.jsonl")
    lines = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    assert [row["provenance"] for row in rows] == [line["provenance"] for line in lines]
    assert [json.loads(row["tools"]) for row in rows] == [line["tools"] for line in lines]
    # What a table says comes in too.
    table = "".join(json.dumps(row) + "\n" for row in rows)
    Path("table.jsonl").write_text(table)
    assert read_chat(Path("table.jsonl")) == read_chat(Path("rows.jsonl"))


def test_what_is_imported_has_the_very_tokens_that_were_recorded_L1(
    muarl: InProcess, made: Path
) -> None:
    muarl("export", made, "--what", "dialogues", "--out", "rows.jsonl")
    episodes = imported(
        Path("rows.jsonl"),
        byte_renderer(),
        run_seed=0,
        phase="cold_start",
        count=100,
        context_tokens=10**6,
    )
    recorded = {e.key.task_id: e.samples for e in StoredEpisodes([made / "episodes.journal"])}
    assert len(episodes) == 5
    for episode in episodes:
        (ours,), (theirs,) = episode.samples, recorded[episode.key.task_id]
        assert ours.token_ids == theirs.token_ids
        assert ours.loss_mask() == theirs.loss_mask()


def test_a_folder_that_was_not_verified_has_no_dialogues_to_export(
    muarl: InProcess, made: Path
) -> None:
    (made / "verdicts.jsonl").unlink()
    done = muarl("export", made, "--what", "dialogues", "--out", "rows.jsonl")
    done.refuses(2, "its dialogues were not verified. Make some with: muarl synth")
    muarl("export", made, made, "--what", "dialogues", "--out", "x").refuses(2, "reads one folder")


def lines_of(*dialogues: Any) -> Path:
    path = Path("chat.jsonl")
    path.write_text("".join(json.dumps(one) + "\n" for one in dialogues))
    return path


def test_chat_of_others_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with_dict = json.loads(json.dumps(SOUND))
    with_dict[2]["tool_calls"][0]["function"]["arguments"] = {"id": "W1"}
    one, other = read_chat(lines_of({"messages": SOUND}, {"messages": with_dict, "tools": []}))
    assert one.messages == other.messages
    assert one.messages[2].tool_calls[0].arguments == {"id": "W1"}
    assert one.messages[3].name == "look"
    assert one.licence == "unstated"


def test_a_dialogue_may_end_with_the_answer_to_a_call_as_one_that_was_handed_over_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    whole, handed_over = read_chat(lines_of({"messages": SOUND}, {"messages": SOUND[:-1]}))
    key = EpisodeKey(0, "cold_start", 0, "t", 0)
    (first,), (second,) = (
        as_episode(one, byte_renderer(), key).samples for one in (whole, handed_over)
    )
    cut = len(second.token_ids)
    assert first.token_ids[:cut] == second.token_ids
    assert first.loss_mask()[:cut] == second.loss_mask()
    assert second.loss_mask()[-1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: m.append(m[1]), "`messages` must end with the assistant"),
        (lambda m: m.__delitem__(slice(3, None)), "`messages` must end with the assistant"),
        (lambda m: m.pop(3), "message 3 (assistant): the calls before it have 1 answers too few"),
        (lambda m: m.pop(2), "message 2 (tool) answers no call"),
        (lambda m: m.pop(1), "`messages` must begin with the user"),
        (lambda m: m.clear(), "`messages` must begin with the user"),
        (lambda m: m.insert(4, m[0]), "message 4 (system): only the first message"),
        (
            lambda m: m.append(m[-1]),
            "message 5 (assistant): two messages of the assistant in a row",
        ),
        (lambda m: m[2]["tool_calls"][0]["function"].update(arguments=[1]), "are no JSON object"),
        (lambda m: m[1].update(role="boss"), "Invalid enum value 'boss'"),
        (lambda m: m[1].update(content=3), "Expected `str | array | null`, got `int`"),
        (lambda m: m[3].update(tool_call_id="c9"), "message 3 (tool) answers 'c9', which the"),
        (lambda m: m[4].update(content=""), "message 4 (assistant) has neither a text nor a call"),
        (lambda m: m[4].update(weight=0), "message 4 (assistant) has the weight 0"),
        (lambda m: m[2]["tool_calls"][0]["function"].update(name=""), "a call names no tool"),
        (lambda m: m[1].update(content=[{"type": "image_url"}]), "image_url"),
    ],
)
def test_a_line_that_is_no_dialogue_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Any, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    messages = json.loads(json.dumps(SOUND))
    change(messages)
    with pytest.raises(SpecError) as caught:
        read_chat(lines_of({"messages": SOUND}, {"messages": messages}))
    (problem,) = caught.value.problems
    assert problem.line == 2
    assert words in problem.message


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "\x00", '{"messages": "x"}', "[" * 10_000, '{"messages": [], "tools": "x"}'],
)
def test_hostile_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("chat.jsonl").write_text(text)
    with pytest.raises(SpecError):
        read_chat(Path("chat.jsonl"))
    Path("chat.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(SpecError, match="cannot be read"):
        read_chat(Path("chat.jsonl"))


def test_answers_go_to_the_calls_that_they_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A template shows answers in the order of the calls, so that one that came late is put in its place."""
    monkeypatch.chdir(tmp_path)
    messages = json.loads(json.dumps(SOUND))
    messages[2]["tool_calls"].append({**CALL, "id": "c2"})
    late = {"role": "tool", "tool_call_id": "c1", "content": "of c1"}
    messages[3:4] = [{"role": "tool", "tool_call_id": "c2", "content": "of c2"}, late]
    messages[1]["content"] = [{"type": "text", "text": "Look "}, {"type": "text", "text": "at W1."}]
    path = lines_of({"messages": messages})
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())  # as some editors begin a file
    (dialogue,) = read_chat(path)
    assert [one.content for one in dialogue.messages[3:5]] == ["of c1", "of c2"]
    assert dialogue.messages[1].content == "Look at W1."


def test_a_call_that_could_not_be_read_stays_what_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    messages = json.loads(json.dumps(SOUND))
    messages[2]["tool_calls"][0]["function"]["arguments"] = "{broken"
    (dialogue,) = read_chat(lines_of({"messages": messages}))
    assert dialogue.messages[2].tool_calls[0].raw == "{broken"


COLD = """\
cold_start: {file: rows.jsonl, steps: 2, tokens_per_step: 200, warmup_steps: 0}
"""


def test_a_run_imitates_the_dialogues_of_a_file(
    muarl: InProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop").mkdir()
    run = write_shop(tmp_path / "shop")
    spoil(tmp_path / "shop" / "domain.yaml", "expert: expert.py:Expert\n", "")  # nobody needs one
    spoil(run, "grpo: {iterations: 1, tasks_per_iteration: 1}\n", COLD)
    spoil(run, "episodes: 70", "episodes: 1")
    rows = tmp_path / "shop" / "rows.jsonl"
    rows.write_text(json.dumps({"messages": SOUND}) + "\n")
    done = muarl("train", run, "--out", "run")
    assert done.code == 0, done.lines
    lines = [json.loads(line) for line in Path("run/metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if line["kind"] == "cold_start"] == [2]
    # Law L10: what was made of tasks that are evaluated is not learned from.
    task = json.loads(json.dumps({"messages": SOUND, "provenance": {}}))
    from muarl.domain import load_domain

    (held_out,) = load_domain(tmp_path / "shop").tasks("held_out")
    task["provenance"] = {"task_id": held_out.id, "task_hash": held_out.situation_hash}
    rows.write_text(json.dumps(task) + "\n")
    refused = muarl("train", run, "--out", "other")
    refused.refuses(2, "1 of its 1 dialogues are on tasks that are evaluated, such as 'cancel-2'")
    calls = [
        {"id": f"g{n}", "function": {"name": call.tool, "arguments": json.dumps(call.arguments)}}
        for n, call in enumerate(held_out.gold)
    ]
    answers = [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in calls]
    stripped = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "", "tool_calls": calls},
        *answers,
        {"role": "assistant", "content": "Done."},
    ]
    rows.write_text(json.dumps({"messages": stripped, "provenance": {"task_hash": ["?"]}}) + "\n")
    refused = muarl("train", run, "--out", "other")
    refused.refuses(2, "1 of its 1 dialogues are on tasks that are evaluated, such as 'cancel-2'")
    rows.unlink()
    muarl("train", run, "--out", "other").refuses(2, "no such file: 'rows.jsonl'")


def test_a_dialogue_that_does_not_fit_is_not_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = lines_of({"messages": SOUND})
    from muarl.errors import TrainError

    with pytest.raises(TrainError, match=r"1 of 1 dialogues of chat\.jsonl are longer than"):
        imported(path, byte_renderer(), run_seed=0, phase="x", count=9, context_tokens=50)
    (dialogue,) = read_chat(path)
    from muarl.testing import build_key

    episode = as_episode(dialogue, byte_renderer(), build_key("x"))
    assert len(episode.turns) == 2
    assert episode.turns[0].results[0].content == "pending"
