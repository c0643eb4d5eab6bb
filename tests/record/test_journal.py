"""Law L9: nothing finished is lost, nothing half-written is read."""

from __future__ import annotations

import errno
import logging
import os
import random
import select
import signal
import subprocess
import sys
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muarl.errors import RecordError
from muarl.record import Episode, JournalWriter, Outcome, read_journal
from muarl.record import journal as journal_module
from muarl.testing import build_episode, build_key

HEADER_LENGTH = 12


def episodes(count: int) -> list[Episode]:
    return [build_episode(build_key("t", i), num_turns=1) for i in range(count)]


def write(path: Path, items: list[Episode]) -> list[int]:
    """Write a journal; where each episode ends in the file."""
    ends = []
    with JournalWriter(path) as journal:
        for episode in items:
            journal.append(episode)
            ends.append(path.stat().st_size)
    return ends


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "episodes.journal"


def test_episodes_come_back_as_they_were_written_in_their_order(path: Path) -> None:
    items = [
        build_episode(build_key("ta\x00sk ü", 0), num_turns=3),
        build_episode(build_key(sample=1), outcome=Outcome.USER_FAULT, num_turns=0),
        build_episode(build_key(sample=2), reward=0.1 + 0.2),
    ]
    write(path, items)
    assert list(read_journal(path)) == items


def test_a_reopened_journal_grows(path: Path) -> None:
    items = episodes(4)
    write(path, items[:1])
    write(path, [])
    write(path, items[1:])
    assert list(read_journal(str(path))) == items


def test_an_episode_can_be_read_as_soon_as_it_was_appended(path: Path) -> None:
    (episode,) = episodes(1)
    with JournalWriter(path) as journal:
        assert list(read_journal(path)) == []
        journal.append(episode)
        assert list(read_journal(path)) == [episode]


def test_reading_holds_one_episode_at_a_time(path: Path) -> None:
    big = build_episode(num_turns=2, num_answer_tokens=5_000)
    write(path, [big] * 400)
    tracemalloc.start()
    assert sum(1 for _ in read_journal(path)) == 400
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < path.stat().st_size / 4


# --- cut and corrupted ------------------------------------------------------------------


def test_a_journal_cut_at_any_byte_keeps_exactly_the_whole_episodes(path: Path) -> None:
    items = episodes(3)
    ends = write(path, items)
    data = path.read_bytes()
    for cut in range(len(data)):
        whole = [episode for episode, end in zip(items, ends, strict=True) if end <= cut]
        path.write_bytes(data[:cut])
        assert list(read_journal(path)) == whole, cut
        assert path.stat().st_size == cut, "a reader changes nothing"
        write(path, items[2:])
        assert list(read_journal(path)) == [*whole, items[2]], cut


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_corrupted_journal_gives_a_prefix_or_an_error_but_never_another_episode(
    tmp_path: Path, data: st.DataObject
) -> None:
    path = tmp_path / "hypothesis.journal"
    path.unlink(missing_ok=True)
    items = episodes(data.draw(st.integers(1, 4)))
    ends = write(path, items)
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    garbage = data.draw(st.binary(min_size=1, max_size=40))
    changed = content.copy()
    changed[at : at + len(garbage)] = garbage
    path.write_bytes(changed)
    first_bad = next((i for i in range(len(content)) if content[i] != changed[i]), len(content))
    sound = [episode for episode, end in zip(items, ends, strict=True) if end <= first_bad]
    got: list[Episode] = []
    with suppress(RecordError):
        got.extend(read_journal(path))
    if first_bad >= HEADER_LENGTH:
        assert got == sound
    else:
        assert got == []


def test_every_flipped_byte_before_the_last_episode_is_an_error_that_says_where(
    path: Path,
) -> None:
    items = episodes(2)
    first_end, _ = write(path, items)
    data = path.read_bytes()
    for at in range(HEADER_LENGTH, first_end):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        with pytest.raises(RecordError, match=f"damaged from byte 12 to byte {first_end}"):
            list(read_journal(path))
        with pytest.raises(RecordError, match="sound episodes behind it"), JournalWriter(path):
            pass
    assert path.stat().st_size == len(data), "what is damaged is not cut off"


def test_a_torn_tail_is_cut_off_with_a_warning(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    items = episodes(2)
    ends = write(path, items)
    os.truncate(path, ends[1] - 7)
    with caplog.at_level(logging.WARNING):
        write(path, [])
    assert f"bytes={ends[1] - 7 - ends[0]}" in caplog.text
    assert path.stat().st_size == ends[0]


def test_a_tail_of_zeros_as_a_power_cut_leaves_it_is_dropped(path: Path) -> None:
    items = episodes(2)
    write(path, items)
    with path.open("ab") as file:
        file.write(bytes(5000))
    assert list(read_journal(path)) == items


def test_a_length_that_was_damaged_does_not_ask_for_its_memory(path: Path) -> None:
    items = episodes(1)
    write(path, items)
    with path.open("ab") as file:
        file.write(b"\xc1EPI\xff\xff\xff\xff\x00\x00\x00\x00")
    tracemalloc.start()
    assert list(read_journal(path)) == items
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000_000


def test_a_sound_frame_is_found_wherever_the_search_buffer_ends(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_end, second_end = write(path, episodes(2))
    data = bytearray(path.read_bytes())
    data[HEADER_LENGTH] ^= 0xFF
    path.write_bytes(data)
    for size in range(len(b"\xc1EPI"), second_end):
        monkeypatch.setattr(journal_module, "_CHUNK", size)
        with pytest.raises(RecordError, match=f"to byte {first_end},"):
            list(read_journal(path))


# --- refused ----------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"{}", b"a text that is longer than a header\n", b"\x89PNG"])
def test_another_file_is_refused_and_left_as_it_is(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(RecordError, match="not a journal of muarl"):
        list(read_journal(path))
    with pytest.raises(RecordError, match="not a journal of muarl"), JournalWriter(path):
        pass
    assert path.read_bytes() == content


def test_a_newer_format_is_refused_with_what_to_do(path: Path) -> None:
    write(path, [])
    path.write_bytes(path.read_bytes()[:-4] + b"\x02\0\0\0")
    with pytest.raises(RecordError, match=r"format 2; this muarl reads format 1. Upgrade muarl"):
        list(read_journal(path))
    with pytest.raises(RecordError, match="Upgrade muarl"), JournalWriter(path):
        pass


def test_an_episode_of_a_newer_version_is_refused_with_what_to_do(path: Path) -> None:
    write(path, [build_episode(), build_episode(record_version=99)])
    with pytest.raises(RecordError, match=r"at byte \d+: the record has version 99.*Upgrade"):
        list(read_journal(path))


def test_a_missing_journal_and_a_folder_are_record_errors(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"absent: cannot open the journal \(No such file"):
        list(read_journal(tmp_path / "absent"))
    with pytest.raises(RecordError, match="Is a directory"), JournalWriter(tmp_path):
        pass


def test_a_second_writer_is_refused_while_the_first_is_open(path: Path) -> None:
    with JournalWriter(path):
        with pytest.raises(RecordError, match="another writer has this journal open"):
            JournalWriter(path).__enter__()
        code = "import sys, muarl.record as r; r.JournalWriter(sys.argv[1]).__enter__()"
        child = subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
        )
        assert child.returncode == 1
        assert "another writer has this journal open" in child.stderr
    write(path, episodes(1))


def test_a_full_disk_is_a_record_error_that_costs_no_other_episode(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = episodes(3)
    pwrite = os.pwrite

    def full(fd: int, data: memoryview, offset: int) -> int:
        if len(data) < 30:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return pwrite(fd, data[:-29], offset)

    with JournalWriter(path) as journal:
        journal.append(items[0])
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", full)
            with pytest.raises(RecordError, match=r"No space left on device.*Make room"):
                journal.append(items[1])
        assert list(read_journal(path)) == items[:1]
        journal.append(items[2])
    assert list(read_journal(path)) == [items[0], items[2]]


# --- killed -----------------------------------------------------------------------------

WRITER = """
import os, sys
from muarl.record import JournalWriter
from muarl.testing import build_episode, build_key
with JournalWriter(sys.argv[1]) as journal:
    for i in range(int(sys.argv[2]), 10**9):
        journal.append(build_episode(build_key("t", i), num_answer_tokens=20_000))
        os.write(1, b"%d\\n" % i)
"""


def test_a_writer_killed_at_any_moment_loses_nothing_it_had_appended(path: Path) -> None:
    """Ten children in turn write the same journal, and are killed by SIGKILL at random moments."""
    rng = random.Random(7)
    kept = 0
    for _ in range(10):
        child = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(kept)], stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        try:
            first = child.stdout.readline()
            assert int(first) == kept, "it goes on behind what was kept"
            # The moment of the kill is what is random here; nothing is ordered by this wait.
            select.select([], [], [], rng.uniform(0, 0.05))
        finally:
            child.send_signal(signal.SIGKILL)
            rest, _ = child.communicate()
        confirmed = [
            int(line) for line in (first + rest).splitlines(keepends=True) if b"\n" in line
        ]
        numbers = [episode.key.sample for episode in read_journal(path)]
        assert numbers == list(range(len(numbers)))
        assert len(numbers) in (confirmed[-1] + 1, confirmed[-1] + 2)
        kept = len(numbers)
    assert kept >= 10
