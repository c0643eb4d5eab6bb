from __future__ import annotations

import os
import re
import shutil
import struct

import pytest

from muarl.errors import RecordError
from muarl.report.run_folder import read_run_folder


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "spec.resolved.yaml").write_text("version: 1\ndomain: desk.yaml\n")
    (tmp_path / "versions.json").write_text('{"muarl": "0.1.0"}')
    (tmp_path / "metrics.jsonl").write_text('{"kind": "iteration", "iteration": 0}\n')
    return tmp_path


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(RecordError, match=r"nowhere: no such run folder"):
        read_run_folder(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["spec.resolved.yaml", "versions.json", "metrics.jsonl"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(RecordError, match=rf"{name}: missing, so .* is not the folder of a run"):
        read_run_folder(folder)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("spec.resolved.yaml", b"a: [1"),
        ("spec.resolved.yaml", b"- just\n- a list\n"),
        ("spec.resolved.yaml", b"\xff\xfe"),
        ("spec.resolved.yaml", b"[" * 1500),
        ("versions.json", b"[]"),
        ("versions.json", b"{"),
        ("versions.json", b'{"a":' * 100_000),
        ("metrics.jsonl", b"\xff\n"),
    ],
)
def test_a_damaged_file_is_named(folder, name, content):
    (folder / name).write_bytes(content)
    with pytest.raises(RecordError, match=name):
        read_run_folder(folder)


@pytest.mark.parametrize(
    "line", ["{", "7", "[]", '{"iteration": 1}', '{"kind": 3}', '{"kind": "eval", "x": NaN}', "[" * 5000]
)  # fmt: skip
def test_a_damaged_line_is_named_with_its_number(folder, line):
    with (folder / "metrics.jsonl").open("a") as file:
        file.write(f"\n{line}\n")
    with pytest.raises(RecordError, match=r"metrics\.jsonl:3: damaged"):
        read_run_folder(folder)


def test_a_rollout_that_was_resumed_is_told_as_it_ended(folder):
    with (folder / "metrics.jsonl").open("a") as file:
        for n in (3, 5):
            file.write(f'{{"kind": "rollout", "phase": "rollout", "temperature": 1.0, "n": {n}}}\n')
    assert [line["n"] for line in read_run_folder(folder).lines["rollout"]] == [5]


def test_a_line_that_was_being_written_when_the_run_was_killed_is_left_out_and_said(folder):
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "iteration", "itera')
    read = read_run_folder(folder)
    assert read.lines["iteration"] == [{"iteration": 0}]
    assert read.notices == ["metrics.jsonl: the last line is half-written and left out."]


def test_a_resumed_runs_lines_replace_those_it_wrote_again(folder):
    (folder / "metrics.jsonl").write_text(
        '{"kind": "iteration", "iteration": 1, "kl": 1}\n'
        '{"kind": "iteration", "iteration": 2, "kl": 2}\n'
        '{"kind": "eval", "phase": "cold", "temperature": 1, "n": 1}\n'
        '{"kind": "eval", "phase": "cold", "temperature": 0, "n": 2}\n'
        '{"kind": "iteration", "iteration": 2, "kl": 3}\n'
        '{"kind": "validation", "iteration": 0, "n": 1}\n'
        '{"kind": "validation", "iteration": 2, "n": 2}\n'
        '{"kind": "validation", "iteration": 2, "n": 3}\n'
    )
    lines = read_run_folder(folder).lines
    assert [line["kl"] for line in lines["iteration"]] == [1, 3]
    assert [line["n"] for line in lines["eval"]] == [1, 2]
    assert [line["n"] for line in lines["validation"]] == [1, 3]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [", "spec.resolved.yaml:1:"),
        ("- a", "expected a run file, a mapping"),
        ("a: &a [*a]", "spec.resolved.yaml:1:"),
        ("a: " + "[" * 500 + "]" * 500, "spec.resolved.yaml:1:"),
        (
            "a0: &a0 [1, 2]\n"
            + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)),
            "aliases expand",
        ),
    ],
)
def test_a_spec_that_is_none_is_named_and_expands_to_nothing_large(folder, text, words):
    (folder / "spec.resolved.yaml").write_text(text)
    with pytest.raises(RecordError, match=re.escape(words)):
        read_run_folder(folder)


def test_a_character_that_json_writes_as_two_escapes_is_one(folder):
    (folder / "spec.resolved.yaml").write_text('domain: "\\ud83d\\udc69"\n')
    assert read_run_folder(folder).spec["domain"] == "\U0001f469"


def test_a_folder_whose_name_is_no_text_has_one_that_a_page_can_hold(folder, tmp_path_factory):
    odd = tmp_path_factory.mktemp("odd") / os.fsdecode(b"bad\xff")
    shutil.copytree(folder, odd)
    assert read_run_folder(odd).name == "bad\ufffd"


def test_what_a_grid_and_perturbations_left_is_told_apart(folder):
    (folder / "metrics.jsonl").write_text(
        '{"kind": "observed", "policy": "a", "user": "u", "messages": 1}\n'
        '{"kind": "observed", "policy": "b", "user": "u", "messages": 2}\n'
        '{"kind": "perturbed", "name": "noise", "temperature": 1, "n": 1}\n'
        '{"kind": "perturbed", "name": "tools", "temperature": 1, "n": 2}\n'
        '{"kind": "users", "policy": "a", "user": "u", "dialogues": 1}\n'
        '{"kind": "users", "phase": "final", "temperature": 1, "dialogues": 2}\n'
        '{"kind": "users", "phase": "final", "temperature": 1, "dialogues": 3}\n'
    )
    read = read_run_folder(folder)
    assert [line["messages"] for line in read.lines["observed"]] == [1, 2]
    assert [line["n"] for line in read.lines["perturbed"]] == [1, 2]
    assert [line["dialogues"] for line in read.lines["users"]] == [1, 3]
    assert read.notices == []


def test_a_model_that_only_played_left_its_tokenizer(folder):
    (folder / "tokenizer").mkdir()
    (folder / "tokenizer" / "tokenizer.json").write_text("{}")
    assert read_run_folder(folder).tokenizer == folder / "tokenizer" / "tokenizer.json"
    (folder / "model").mkdir()
    (folder / "model" / "tokenizer.json").write_text("{}")
    assert read_run_folder(folder).tokenizer == folder / "model" / "tokenizer.json"


def test_lines_of_an_unknown_kind_are_counted_and_said(folder):
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"kind": "weather"}\n{"kind": "weather"}\n')
    assert read_run_folder(folder).notices == [
        "metrics.jsonl: 2 lines of kind 'weather' are not shown."
    ]


def test_the_models_size_is_read_from_its_weights_header(folder):
    assert read_run_folder(folder).num_parameters() is None
    header = b'{"__metadata__":{"a":"b"},"x":{"dtype":"F32","shape":[3,4],"data_offsets":[0,48]},'
    header += b'"y":{"dtype":"F32","shape":[],"data_offsets":[48,52]}}'
    (folder / "model").mkdir()
    weights = folder / "model" / "model.safetensors"
    weights.write_bytes(struct.pack("<Q", len(header)) + header)
    assert read_run_folder(folder).num_parameters() == 13


@pytest.mark.parametrize(
    "content", [b"", b"abc", struct.pack("<Q", 2**63) + b"{", b"\x02" + b"\0" * 7 + b"[]"]
)
def test_a_file_that_is_no_weights_is_named(folder, content):
    (folder / "model").mkdir()
    (folder / "model" / "model.safetensors").write_bytes(content)
    with pytest.raises(RecordError, match=r"model\.safetensors: not a safetensors file"):
        read_run_folder(folder).num_parameters()
