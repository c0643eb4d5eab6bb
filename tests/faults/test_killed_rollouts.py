"""Law L9: killed at any moment, a rollout that is resumed delivers each episode exactly once."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

from fault_kit import deserves, keys_of
from killed_rollout import TASKS

from muarl.record import read_journal

SCRIPT = Path(__file__).with_name("killed_rollout.py")


def test_killed_at_fifty_random_points_a_rollout_delivers_each_episode_once_L9(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path), "50"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    planned = [str(key) for key in keys_of(TASKS)]
    assert done.stdout.splitlines() == planned, "each is delivered, once, in its order"
    episodes = list(read_journal(tmp_path / "episodes.journal"))
    assert Counter(str(e.key) for e in episodes) == dict.fromkeys(planned, 1)
    assert all(episode.reward == deserves(episode.key) for episode in episodes)
    assert done.stderr.count("cut off a torn record") > 5, "some were killed while they wrote"
