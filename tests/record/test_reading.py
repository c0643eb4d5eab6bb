"""Stored episodes come once each, one at a time (law L9)."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muarl.errors import RecordError
from muarl.evaluate.summary import summarise
from muarl.record import Episode, EpisodeHead, JournalWriter, Outcome, StoredEpisodes, read_heads
from muarl.testing import build_episode, build_key


def write(path: Path, episodes: Iterable[Episode]) -> Path:
    with JournalWriter(path) as journal:
        for episode in episodes:
            journal.append(episode)
    return path


def test_the_head_of_an_episode_says_what_the_whole_one_says(tmp_path: Path) -> None:
    episodes = [
        build_episode(build_key("a", 1, phase="eval:cold:T1", iteration=3), reward=0.25),
        build_episode(build_key("b"), outcome=Outcome.INFRA_FAULT),
    ]
    path = write(tmp_path / "j", episodes)
    fields = EpisodeHead.__struct_fields__
    heads = [EpisodeHead(**{name: getattr(e, name) for name in fields}) for e in episodes]
    assert heads[0].system
    assert list(read_heads(path)) == heads
    path.write_bytes(path.read_bytes()[:12])
    write(path, [build_episode(record_version=99)])
    with pytest.raises(RecordError, match=r"at byte 12: the record has version 99.*Upgrade"):
        list(read_heads(path))


def test_a_fault_that_was_tried_again_counts_as_what_came_of_it(tmp_path: Path) -> None:
    fault = build_episode(build_key("a"), outcome=Outcome.INFRA_FAULT)
    other = build_episode(build_key("b"))
    again = build_episode(build_key("a"), reward=0.5)
    path = write(tmp_path / "j", [fault, other])
    assert list(StoredEpisodes([path])) == [fault, other]
    write(path, [again])
    stored = StoredEpisodes([path])
    assert list(stored) == [other, again]
    assert [head.key for head in stored.heads()] == [other.key, again.key]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=st.lists(st.lists(st.integers(0, 5), max_size=6), min_size=1, max_size=3))
def test_of_all_records_of_a_key_the_last_counts(tmp_path: Path, records: list[list[int]]) -> None:
    paths, expected, number = [], {}, 0
    for index, numbers in enumerate(records):
        episodes = []
        for sample in numbers:
            number += 1
            episodes.append(build_episode(build_key("t", sample), num_turns=1, system=str(number)))
            expected[sample] = str(number)
        path = tmp_path / str(index)
        path.unlink(missing_ok=True)
        paths.append(write(path, episodes))
    found = list(StoredEpisodes(paths))
    assert {e.key.sample: e.system for e in found} == expected
    assert len(found) == len(expected)
    assert [e.system for e in found] == sorted(expected.values(), key=int)


def test_phases_can_be_chosen(tmp_path: Path) -> None:
    phases = ["train", "eval:cold:T1", "train"]
    episodes = [build_episode(build_key("t", i, phase=phase)) for i, phase in enumerate(phases)]
    path = write(tmp_path / "j", episodes)
    chosen = StoredEpisodes([path], {"train"})
    assert [e.key.sample for e in chosen] == [head.key.sample for head in chosen.heads()] == [0, 2]
    assert list(StoredEpisodes([path], {"trian"})) == []


def _count(stored: StoredEpisodes) -> int:
    return sum(1 for _ in stored)


def _heads(stored: StoredEpisodes) -> int:
    return sum(1 for _ in stored.heads())


def _summary(stored: StoredEpisodes) -> int:
    return summarise(stored).n


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of journals, each named after how many episodes it holds."""
    folder = tmp_path_factory.mktemp("journals")
    shape = build_episode(num_answer_tokens=1_000)

    def episodes(count: int) -> Iterable[Episode]:
        for number in range(count):
            shape.key = build_key(f"task-{number % 50}", number)
            yield shape

    for count in (100, 2_100):
        write(folder / str(count), episodes(count))
    return folder


@pytest.mark.parametrize("read", [_count, _heads, _summary])
def test_thousands_of_episodes_are_read_with_flat_memory(
    journals: Path, read: Callable[[StoredEpisodes], int]
) -> None:
    def peak(count: int) -> int:
        stored = StoredEpisodes([journals / str(count)])
        read(stored)  # what is made once, such as decoders, is not what is measured
        tracemalloc.start()
        assert read(stored) == count
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return peak

    few, many = peak(100), peak(2_100)
    per_episode = (many - few) / 2_000
    size = (journals / "2100").stat().st_size / 2_100
    assert size > 2_000
    assert per_episode < 500, f"{per_episode:.0f} bytes of {size:.0f} stay in memory"
