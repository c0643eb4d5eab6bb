"""The log: one line a group and a fault, the same fields first, and nothing secret."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest
from dialogue_kit import write_notes
from observed_run import SCRIPT, observed_round, says

from muarl.domain import Domain
from muarl.errors import PolicyError, RecordError
from muarl.observe import RunLog
from muarl.policy import GenerateRequest, Generation
from muarl.record import EpisodeKey, Outcome
from muarl.scheduler import EpisodePlan, Group
from muarl.testing import build_episode, build_key

FIRST = ["at", "level", "event", "group", "task", "episodes", "policy_version"]
KEY = "sk-live-0123456789"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@pytest.fixture
def domain(tmp_path_factory: pytest.TempPathFactory) -> Domain:
    return write_notes(tmp_path_factory.mktemp("notes"))


@pytest.mark.anyio
async def test_one_line_a_group_and_a_fault_each_with_whom_it_is_about_and_nothing_said(
    domain: Domain, tmp_path: Path
) -> None:
    class Down:
        policy_version = 7

        async def generate(self, request: GenerateRequest) -> Generation:
            raise PolicyError(f"http://me:{KEY}@host refused the key {KEY}\nwhatever")

    def policy_for(task: Any, key: EpisodeKey) -> Any:
        policy = says(*SCRIPT)
        policy.policy_version = 7
        return Down() if (task.id, key.sample) == ("note-1", 1) else policy

    path = tmp_path / "log.jsonl"
    with RunLog(path, [KEY]) as log:
        await observed_round(domain, log, policy_for=policy_for, attempts=2)
    found = lines(path)
    assert all(list(line)[: len(FIRST)] == FIRST for line in found)
    assert all(line["policy_version"] == 7 for line in found if line["event"] == "group")
    groups = [line for line in found if line["event"] == "group"]
    assert {line["group"]: (line["task"], line["rewards"]) for line in groups} == {
        "train/3/note-0": ("note-0", [1.0, 1.0]),
        "train/3/note-1": ("note-1", [1.0, None]),
    }
    assert groups[0]["episodes"] == [f"{groups[0]['group']}/{sample}" for sample in (0, 1)]
    assert [line["faults"] for line in groups] == [len(g["outcomes"]) - 1 for g in groups]
    faults = [line for line in found if line["event"] == "fault"]
    assert [line["attempt"] for line in faults] == [1, 2]
    assert [line["retry_after_s"] is None for line in faults] == [False, True]
    for line in faults:
        assert line["episodes"] == ["train/3/note-1/1"]
        assert (line["kind"], line["outcome"]) == ("PolicyError", "infra_fault")
        assert line["words"].startswith("http://***@host refused the key *** whatever")
        assert line["level"] == "warning"
    assert len(found) == 4
    text = path.read_text()
    assert KEY not in text
    assert "Shall I?" not in text, "what was said is in the journal"


def test_the_version_of_a_group_is_that_of_the_oldest_weights(tmp_path: Path) -> None:
    with RunLog(tmp_path / "log") as log:
        episodes = [build_episode(build_key(sample=i)) for i in range(2)]
        episodes[0].turns[0].policy_version = 5
        episodes[0].turns[1].policy_version = 4
        for turn in episodes[1].turns:
            turn.policy_version = 6
        log.attempt_started(EpisodePlan(episodes[0].key))
        log.attempt_ended(EpisodePlan(episodes[0].key), episodes[0], None)
        log.group_whole(Group(episodes[0].key.group, tuple(episodes)))
        nothing = build_episode(build_key(), outcome=Outcome.INFRA_FAULT, num_turns=0)
        log.attempt_started(EpisodePlan(nothing.key))
        log.attempt_ended(EpisodePlan(nothing.key), nothing, None)
    group, fault = lines(tmp_path / "log")
    assert group["policy_version"] == 4
    assert fault["policy_version"] is None


def test_groups_that_an_earlier_run_finished_are_not_told_again(tmp_path: Path) -> None:
    episode = build_episode()
    with RunLog(tmp_path / "log") as log:
        log.group_whole(Group(episode.key.group, (episode,)))
        log.say("run_begins", spec="run.yaml")
    (line,) = lines(tmp_path / "log")
    assert list(line)[: len(FIRST)] == FIRST
    assert (line["event"], line["episodes"], line["task"]) == ("run_begins", [], None)
    assert line["spec"] == "run.yaml"


@pytest.mark.parametrize("before", [b'{"a": 1}\n', b'{"a": 1}\n{"b', b"", b"\n"])
def test_a_log_is_taken_up_and_a_torn_line_is_never_joined_with_the_next_L9(
    tmp_path: Path, before: bytes
) -> None:
    path = tmp_path / "log"
    path.write_bytes(before)
    for _ in range(2):
        with RunLog(path) as log:
            log.say("run_begins")
    text = path.read_bytes()
    assert text.startswith(before)
    assert [json.loads(line)["event"] for line in text.splitlines()[-2:]] == ["run_begins"] * 2
    assert text.count(b"\n") == before.count(b"\n") + 2 + (before[-1:] not in (b"", b"\n"))


def test_a_full_disk_ends_the_log_and_not_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR), RunLog(tmp_path / "log") as log:
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, log._file.fileno())
        os.close(full)
        for _ in range(3):
            log.say("run_begins")
    assert [record.getMessage() for record in caplog.records] == [
        f"{log.path}: nothing more is logged: No space left on device"
    ]


def test_a_log_that_cannot_be_opened_is_an_error_of_muarl(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="cannot be written"), RunLog(tmp_path):
        pass


def test_text_that_is_no_unicode_is_written_all_the_same(tmp_path: Path) -> None:
    episode = build_episode(outcome=Outcome.USER_FAULT, error="half a \ud800 pair é")
    with RunLog(tmp_path / "log") as log:
        log.attempt_started(EpisodePlan(episode.key))
        log.attempt_ended(EpisodePlan(episode.key), episode, None)
    assert lines(tmp_path / "log")[0]["words"] == "half a pair é"


def test_a_fault_tells_how_long_its_attempt_took_and_a_group_how_long_it_took_in_all(
    tmp_path: Path,
) -> None:
    now = 100.0
    first, second = (EpisodePlan(build_key(), attempt) for attempt in (1, 2))
    with RunLog(tmp_path / "log", clock=lambda: now) as log:
        log.attempt_started(first)
        now = 103.0
        log.attempt_ended(first, build_episode(outcome=Outcome.USER_FAULT), 1.5)
        now = 104.5
        log.attempt_started(second)
        now = 110.0
        log.attempt_ended(second, build_episode(), None)
        log.group_whole(Group(first.key.group, (build_episode(),)))
    fault, group = lines(tmp_path / "log")
    assert (fault["elapsed_s"], fault["retry_after_s"]) == (3.0, 1.5)
    assert group["elapsed_s"] == 10.0
