"""Exported rows hold what the episodes held, and every form is read back by its own library."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset, load_from_disk
from seeded_desk import play

from muarl.data.export.arrow import SCHEMAS, write_dataset, write_parquet
from muarl.data.export.jsonl import write_jsonl
from muarl.data.export.rows import Row, advantages, episode_rows, sample_rows
from muarl.errors import RecordError
from muarl.kernel.advantage import group_advantages
from muarl.messages import Message, ToolCall, ToolResult, ToolSpec
from muarl.record import (
    Episode,
    EpisodeHead,
    Outcome,
    PredicateResult,
    Sample,
    Span,
    Turn,
    UserReply,
)
from muarl.testing import build_episode, build_key
from muarl.world import Change


def head(task: str, sample: int, reward: float | None) -> EpisodeHead:
    outcome = Outcome.INFRA_FAULT if reward is None else Outcome.COMPLETED
    return EpisodeHead(build_key(task, sample), outcome, reward)


def odd_episodes() -> list[Episode]:
    """Every field filled, with values that forms could trip over."""
    calls = (
        ToolCall("c1", "put", {"key": 'a"b', "value": [1, 1.5, None, True, {"x": 2**64 - 1}]}),
        ToolCall("c2", "", error="the call is not valid JSON", raw='{"name": "put", \n'),
    )
    results = [ToolResult("c1", "put", "ok"), ToolResult("c2", "", "not valid JSON", True)]
    full = build_episode(
        turns=[
            Turn(Message("assistant", "", calls, reasoning="why"), 0, 3, 5, "stop", 4, results),
            Turn(
                Message("assistant", "Done.\u2028\x00 é"),
                1,
                2,
                3,
                "stop",
                5,
                reply=UserReply("Thanks.", stop=True, act="stop"),
            ),
        ],
        samples=[
            Sample([7, 8, 9, 10, 11], [Span(3, 5, 4)], [-0.1, -0.7]),
            Sample([7, 8, 12, 13, 14], [Span(2, 3, 5), Span(4, 5, 6)], [-0.3, -1e-300]),
        ],
        tools=[ToolSpec("put", "Note.", {"type": "object", "properties": {"key": {}}})],
        rewards=[PredicateResult("gold_world", 0.5, "differs")],
        metrics=[PredicateResult("confirmed", None, "no write was made")],
        changes=[Change("notes.a", None, {"b": [1]}, "added"), Change("x", 1, None, "removed")],
        reward=0.5,
        forks=1,
    )
    silent = build_episode(build_key(sample=1), reward=0.0, num_turns=0, samples=[Sample([1, 2])])
    faulty = build_episode(build_key(sample=2), outcome=Outcome.USER_FAULT)
    return [full, silent, faulty, build_episode(build_key("task-2"))]


def test_an_advantage_is_that_of_the_group_without_its_faults_L2() -> None:
    rewards = [1.0, 0.0, None, 0.25]
    heads = [head("a", i, reward) for i, reward in enumerate(rewards)]
    mixed = [heads[2], head("b", 0, 1.0), heads[0], heads[3], head("c", 0, None), heads[1]]
    for mode in ("std", "mean"):
        found = advantages(mixed, mode)
        expected = group_advantages([1.0, 0.25, 0.0], baseline=mode)
        assert [found[heads[i].key] for i in (0, 3, 1)] == pytest.approx(expected)
        assert len(found) == 3, "neither a fault nor an only child has one"
    assert advantages([head("a", 0, 1.0), head("a", 1, 1.0)]) == {
        build_key("a", 0): 0.0,
        build_key("a", 1): 0.0,
    }


def test_a_sample_row_has_a_number_for_every_token() -> None:
    episodes = odd_episodes()
    first, second, other = sample_rows(episodes, {episodes[0].key: 0.7})
    assert first == {
        "run_seed": 0,
        "phase": "train",
        "iteration": 0,
        "task_id": "task-1",
        "sample": 0,
        "domain": "desk",
        "persona": "plain",
        "user": "",
        "split": "train",
        "outcome": "completed",
        "part": 0,
        "reward": 0.5,
        "advantage": 0.7,
        "token_ids": [7, 8, 9, 10, 11],
        "loss_mask": [False, False, False, True, True],
        "sampler_logprobs": [0.0, 0.0, 0.0, -0.1, -0.7],
        "policy_versions": [-1, -1, -1, 4, 4],
    }
    assert second["part"] == 1
    assert second["loss_mask"] == [False, False, True, False, True]
    assert second["sampler_logprobs"] == [0.0, 0.0, -0.3, 0.0, -1e-300]
    assert second["policy_versions"] == [-1, -1, 5, -1, 6]
    assert (other["task_id"], other["advantage"]) == ("task-2", None)


def test_an_episode_row_has_the_conversation_as_chat_messages() -> None:
    row = next(episode_rows(odd_episodes(), {}))
    absent = dict.fromkeys(("reasoning_content", "tool_calls", "tool_call_id", "name"))
    calls = [
        {
            "id": "c1",
            "type": "function",
            "function": {
                "name": "put",
                "arguments": '{"key":"a\\"b","value":[1,1.5,null,true,{"x":18446744073709551615}]}',
            },
        },
        {
            "id": "c2",
            "type": "function",
            "function": {"name": "", "arguments": '{"name": "put", \n'},
        },
    ]
    assert row["messages"] == [
        {**absent, "role": "system", "content": "Help the customer."},
        {**absent, "role": "user", "content": "Hello."},
        {
            **absent,
            "role": "assistant",
            "content": "",
            "tool_calls": calls,
            "reasoning_content": "why",
        },
        {**absent, "role": "tool", "content": "ok", "tool_call_id": "c1", "name": "put"},
        {
            **absent,
            "role": "tool",
            "content": "Error: not valid JSON",
            "tool_call_id": "c2",
            "name": "",
        },
        {**absent, "role": "assistant", "content": "Done.\u2028\x00 é"},
        {**absent, "role": "user", "content": "Thanks."},
    ]
    assert json.loads(row["tools"])[0]["function"]["parameters"]["properties"] == {"key": {}}
    assert row["changes"][0] == {
        "path": "notes.a",
        "kind": "added",
        "before": "null",
        "after": '{"b":[1]}',
    }
    assert (row["num_turns"], row["num_sampled"], row["num_forks"]) == (2, 4, 1)


def test_a_real_dialogue_reads_as_its_messages_went() -> None:
    for episode in islice(play("asyncio", 64).values(), 16):
        (row,) = episode_rows([episode], {})
        roles = [message["role"] for message in row["messages"]]
        answered = sum(len(turn.results) for turn in episode.turns)
        assert roles.count("assistant") == len(episode.turns)
        assert roles.count("tool") == answered
        for message, answer in zip(row["messages"], row["messages"][1:], strict=False):
            if message["tool_calls"]:
                assert answer["tool_call_id"] == message["tool_calls"][0]["id"]


# --- forms ----------------------------------------------------------------------------------------

Write = Callable[[Iterable[Row], Path], int]
Read = Callable[[Path], list[Row]]


def read_jsonl(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


def read_parquet(path: Path) -> list[Row]:
    return pq.read_table(path).to_pylist()


def read_dataset(path: Path) -> list[Row]:
    return load_from_disk(str(path)).to_list()


def forms(what: Any) -> dict[str, tuple[Write, Read]]:
    return {
        "jsonl": (write_jsonl, read_jsonl),
        "parquet": (partial(write_parquet, what=what), read_parquet),
        "hf": (partial(write_dataset, what=what), read_dataset),
    }


def rows_of(what: str, episodes: Iterable[Episode]) -> Iterator[Row]:
    episodes = list(episodes)
    heads = (EpisodeHead(e.key, e.outcome, e.reward) for e in episodes)
    make = {"samples": sample_rows, "episodes": episode_rows}[what]
    return make(episodes, advantages(heads))


@pytest.mark.parametrize("form", ["jsonl", "parquet", "hf"])
@pytest.mark.parametrize("what", ["episodes", "samples"])
def test_what_was_written_is_read_back_to_the_last_bit(
    what: str, form: str, tmp_path: Path
) -> None:
    write, read = forms(what)[form]
    episodes = [*odd_episodes(), *play("asyncio", 64).values()] * 5
    rows = list(rows_of(what, episodes))
    assert len(rows) > 256, "more than one batch"
    assert write(iter(rows), tmp_path / "out") == len(rows)
    assert read(tmp_path / "out") == rows
    assert [path.name for path in tmp_path.iterdir()] == ["out"], "nothing is left beside it"


@pytest.mark.parametrize("form", ["jsonl", "parquet", "hf"])
@pytest.mark.parametrize("what", ["episodes", "samples"])
def test_no_row_at_all_is_a_file_too(what: str, form: str, tmp_path: Path) -> None:
    write, read = forms(what)[form]
    assert write(iter([]), tmp_path / "out") == 0
    assert read(tmp_path / "out") == []


@pytest.mark.parametrize("what", ["episodes", "samples"])
def test_the_columns_are_those_of_the_schema(what: Any) -> None:
    for row in rows_of(what, odd_episodes()):
        assert list(row) == SCHEMAS[what].names


def test_a_parquet_file_is_a_dataset_for_those_who_load_it_so(tmp_path: Path) -> None:
    rows = list(rows_of("samples", odd_episodes()))
    write_parquet(iter(rows), tmp_path / "s.parquet", "samples")
    loaded = load_dataset(
        "parquet", data_files=str(tmp_path / "s.parquet"), cache_dir=str(tmp_path / "cache")
    )
    assert loaded["train"].to_list() == rows
    assert loaded["train"].features["token_ids"].feature.dtype == "int32"


@pytest.mark.parametrize("form", ["jsonl", "parquet", "hf"])
def test_a_disk_that_refuses_is_said(form: str, tmp_path: Path) -> None:
    write, _ = forms("samples")[form]
    path = tmp_path / "absent" / "out"
    with pytest.raises(RecordError, match=r"absent/out: cannot be written \(.*No such file"):
        write(rows_of("samples", odd_episodes()), path)


@pytest.mark.parametrize("form", ["jsonl", "parquet", "hf"])
def test_thousands_of_rows_are_written_with_flat_memory(form: str, tmp_path: Path) -> None:
    write, _ = forms("samples")[form]
    (row,) = islice(rows_of("samples", [build_episode(num_answer_tokens=2_000)]), 1)

    def rows(count: int) -> Iterator[Row]:
        for number in range(count):
            yield {**row, "sample": number, "token_ids": list(row["token_ids"])}

    def peak(count: int) -> tuple[int, int]:
        pool = pa.default_memory_pool()
        before = pool.bytes_allocated()
        tracemalloc.start()
        assert write(rows(count), tmp_path / f"{count}") == count
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return peak, pool.bytes_allocated() - before

    peak(10)  # what is imported and made once
    few, _ = peak(300)
    many, kept = peak(2_000)
    assert many < few * 1.3
    assert kept < 1_000_000
