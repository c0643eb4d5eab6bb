"""What is exported for TRL and for verl is read back by TRL and by verl, token by token (law L1)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch
from seeded_desk import desk, play, renderer

from muarl.data.export.arrow import write_parquet
from muarl.data.export.for_trainers import NOT_LEARNED, prompt_rows, trl_rows
from muarl.data.export.jsonl import write_jsonl
from muarl.data.export.rows import sample_rows
from muarl.data.export.verl_samples import SampleDataset
from muarl.errors import SetupError
from muarl.kernel.model import build_tiny_model
from muarl.record import Episode, Outcome
from muarl.spec.model import TinyModelSpec
from muarl.testing import build_episode, build_key
from muarl.train.models import save_with_tokenizer

TRAINERS = Path(sys.prefix) / "trainers"
"""Where `scripts/install-trainers.sh` puts TRL and verl."""


def trainers() -> str:
    folder = os.environ.get("MUARL_TRAINERS") or str(TRAINERS)
    if not (Path(folder) / "verl").is_dir():
        why = "TRL and verl are not installed: scripts/install-trainers.sh .venv"
        if os.environ.get("MUARL_REQUIRE_TRAINERS"):
            pytest.fail(why)
        pytest.skip(why)
    return folder


def read_by(script: str, *arguments: object) -> Any:
    """What a script says in its last line, run where the trainers are."""
    here = Path(__file__).parent
    paths = [str(here.parents[1] / "src"), trainers()]
    read = subprocess.run(
        [sys.executable, str(here / script), *map(str, arguments)],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "HF_HUB_OFFLINE": "1",
            "HF_HOME": str(arguments[-1]) + ".hf",
            "CUDA_VISIBLE_DEVICES": "",
        },
        check=False,
    )
    assert read.returncode == 0, read.stderr[-3000:]
    return json.loads(read.stdout.splitlines()[-1])


def episodes() -> list[Episode]:
    """Some dialogues whose policy says anything, some of them cut, and a fault."""
    fault = build_episode(build_key("broken"), outcome=Outcome.INFRA_FAULT)
    return [*list(play("asyncio", 64).values())[:6], fault]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    size = TinyModelSpec(
        vocab_size=400, hidden_size=32, num_layers=1, num_heads=2, num_kv_heads=2, ffn_size=32
    )
    save_with_tokenizer(build_tiny_model(size, seed=0), renderer().tokenizer, folder)
    return folder


def learned(ids: Sequence[int], mask: Sequence[bool]) -> list[int]:
    return [token if sampled else NOT_LEARNED for token, sampled in zip(ids, mask, strict=True)]


def test_labels_are_the_sampled_tokens_and_nothing_else_L1() -> None:
    rows = list(trl_rows(episodes(), {}))
    samples = list(sample_rows(episodes(), {}))
    assert len(rows) == len(samples) > 0
    for row, sample in zip(rows, samples, strict=True):
        assert row["input_ids"] == sample["token_ids"]
        assert row["labels"] == learned(sample["token_ids"], sample["loss_mask"])
        assert row.keys() - {"input_ids", "labels"} == sample.keys() - {
            *("token_ids", "loss_mask", "sampler_logprobs", "policy_versions")
        }


def test_a_group_has_one_beginning_and_what_said_nothing_has_none() -> None:
    played = episodes()
    silent = build_episode(build_key("silent"), outcome=Outcome.INFRA_FAULT)
    silent.opening = type(silent.opening)("")
    rows = list(prompt_rows([*played, silent, *played], {}))
    beginnings = {(e.key.task_id, e.system, e.opening.text) for e in played}
    assert len(rows) == len(beginnings)
    assert [row["extra_info"]["index"] for row in rows] == list(range(len(rows)))
    system, first = rows[0]["prompt"]
    assert system == {"role": "system", "content": desk().spec.rules}
    assert first == {"role": "user", "content": played[0].opening.text}
    assert json.loads(rows[0]["extra_info"]["tools"])[0]["type"] == "function"


class Padding:
    pad_token_id = 7


def test_samples_longer_than_verl_takes_are_cut_where_it_says_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "samples.parquet"
    count = write_parquet(sample_rows(episodes(), {}), path, "samples")
    ids = pq.read_table(path)["token_ids"][0].as_py()
    settings = {"max_length": 5, "pad_mode": "no_padding"}
    for truncation, kept in (("right", ids[:5]), ("left", ids[-5:])):
        data = SampleDataset(str(path), Padding, {**settings, "truncation": truncation})
        assert len(data) == count
        assert data[0]["input_ids"].tolist() == kept
    padded = SampleDataset([str(path)], Padding, {"max_length": len(ids) + 2}, max_samples=1)[0]
    assert padded["input_ids"].tolist() == [*ids, 7, 7]
    assert torch.equal(padded["attention_mask"][-3:], torch.tensor([1, 0, 0]))
    assert padded["loss_mask"][-2:].tolist() == [0, 0]
    with pytest.raises(SetupError, match=r"has \d+ tokens, and data.max_length is 5; raise it"):
        SampleDataset(str(path), Padding, settings)[0]
    with pytest.raises(SetupError, match=r"data.truncation must be error or left or right"):
        SampleDataset(str(path), Padding, {"truncation": "middle"})
    (tmp_path / "other.parquet").write_bytes(b"no parquet")
    with pytest.raises(SetupError, match=r"holds no samples .*; write it with `muarl export"):
        SampleDataset(str(tmp_path / "other.parquet"), Padding, {})


@pytest.mark.slow
def test_trl_trains_on_the_exported_tokens_and_samples_from_the_exported_prompts(
    model: Path, tmp_path: Path
) -> None:
    rows = list(trl_rows(episodes(), {}))
    write_jsonl(rows, tmp_path / "samples.jsonl")
    write_jsonl(prompt_rows(episodes(), {}), tmp_path / "prompts.jsonl")
    found = read_by("read_by_trl.py", model, tmp_path / "samples.jsonl", tmp_path / "prompts.jsonl")
    assert found["rows"] == [{key: row[key] for key in ("input_ids", "labels")} for row in rows]
    for row, labels in zip(rows, found["batch_labels"], strict=False):
        assert labels[: len(row["labels"])] == row["labels"]
        assert set(labels[len(row["labels"]) :]) <= {NOT_LEARNED}
    assert found["loss"] > 0
    assert (found["prompt_roles"], found["steps"]) == (["system", "user"], 1)
    assert found["data_source"] == "desk"
    assert found["ground_truth"] in {episode.key.task_id for episode in episodes()}


@pytest.mark.slow
def test_verl_reads_the_exported_tokens_and_prompts(model: Path, tmp_path: Path) -> None:
    samples, prompts = tmp_path / "samples.parquet", tmp_path / "prompts.parquet"
    rows = list(sample_rows(episodes(), {}))
    write_parquet(rows, samples, "samples")
    begun = list(prompt_rows(episodes(), {}))
    write_parquet(begun, prompts, "prompts")
    found = read_by("read_by_verl.py", model, samples, prompts, tmp_path / "cache")
    for padded, row in zip(found["right"]["rows"], rows, strict=True):
        length = sum(padded["attention_mask"])
        assert padded["input_ids"][:length] == row["token_ids"]
        assert padded["loss_mask"] == [*map(int, row["loss_mask"]), *[0] * (4096 - length)]
    for exact, row in zip(found["no_padding"]["rows"], rows, strict=True):
        assert exact["input_ids"] == row["token_ids"]
        assert exact["loss_mask"] == [*map(int, row["loss_mask"])]
        assert exact["position_ids"] == list(range(len(row["token_ids"])))
    assert (found["right"]["batch"], found["no_padding"]["batch"]) == ([2, 4096], True)
    for read, row in zip(found["prompts"], begun, strict=True):
        assert read["raw_prompt"] == row["prompt"]
        assert read["reward_model"] == row["reward_model"]
        assert (read["index"], read["extra_info"]) == (
            row["extra_info"]["index"],
            row["extra_info"],
        )
