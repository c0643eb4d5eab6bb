"""A full disk under the journal: the run ends and says so, and what was finished is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from fault_kit import FEW_TASKS, check, deserves, keys_of, limits, noting_policy, runner

from muarl.domain import Domain
from muarl.errors import RecordError
from muarl.record import Episode, JournalWriter, read_journal
from muarl.scheduler import Group
from muarl.scheduler.journal import Journal
from muarl.scheduler.rounds import bounds, run_round
from muarl.testing import FullDisk

KEYS = keys_of(FEW_TASKS)


async def play_few(
    domain: Domain, journal: Journal, done: list[Episode], concurrency: int = 4
) -> list[Group]:
    spec = limits(concurrency=concurrency)
    return await run_round(
        KEYS,
        runner(domain, noting_policy(), spec, tasks=FEW_TASKS),
        limits=bounds(spec),
        journal=journal,
        done={episode.key: episode for episode in done},
    )


@pytest.mark.anyio
@pytest.mark.parametrize("room", [0, 1, 5])
async def test_a_round_goes_on_where_the_disk_was_full_L9(
    domain: Domain, tmp_path: Path, room: int
) -> None:
    path = tmp_path / "episodes.journal"
    done: list[Episode] = []
    while len(done) < len(KEYS):
        with JournalWriter(path) as journal:
            disk = FullDisk(journal, room)
            if len(done) + room < len(KEYS):
                with pytest.raises(RecordError, match="No space left on device"):
                    await play_few(domain, disk, done)
                assert disk.refused >= 1
            else:
                check(await play_few(domain, disk, done), KEYS, list(read_journal(path)))
        kept = list(read_journal(path))
        assert len(kept) == min(len(done) + room, len(KEYS)), "what fitted is there, and no more"
        done, room = kept, room + 3  # somebody makes room


SCRIPT = """
import resource, signal, sys
from pathlib import Path
import anyio
sys.path += sys.argv[2:]
from dialogue_kit import TalkingUser, write_notes
from test_full_disk import play_few
from muarl.record import JournalWriter, read_journal
from muarl.errors import RecordError

folder = Path(sys.argv[1])
domain = write_notes(folder)
vars(domain)["user"] = lambda *_: TalkingUser(["hello"])
# The system itself refuses to let files grow, as it does on a full disk.
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))

async def main():
    with JournalWriter(folder / "episodes.journal") as journal:
        await play_few(domain, journal, [])

try:
    anyio.run(main)
except RecordError as error:
    sys.exit(str(error))
"""


def test_a_disk_that_is_really_full_leaves_a_journal_that_can_be_resumed_L9(
    domain: Domain, tmp_path: Path
) -> None:
    here = Path(__file__).parent
    folders = [str(here), str(here.parent), str(here.parent / "policy")]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), *folders],
        capture_output=True,
        text=True,
        check=False,
    )
    path = tmp_path / "episodes.journal"
    assert done.returncode == 1
    assert done.stderr.startswith(f"{path}: cannot write the journal (File too large). Every epis")
    assert "Traceback" not in done.stderr
    assert path.stat().st_size == 20_000, "half an episode stands at its end"
    kept = list(read_journal(path))
    assert 0 < len(kept) < len(KEYS)
    assert all(episode.reward == deserves(episode.key) for episode in kept)
    with JournalWriter(path) as journal:
        groups = anyio.run(play_few, domain, journal, kept)
    check(groups, KEYS, list(read_journal(path)))
