from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec import structs

sys.path.append(str(Path(__file__).parents[1] / "dialogue"))

from seeded_desk import desk, play

from muarl.measure.monitors import PATIENCE, RULES
from muarl.record import Episode
from muarl.scheduler import Group
from muarl.train.users_watched import UsersWatched


@pytest.fixture(scope="module")
def episodes() -> list[Episode]:
    return list(play("asyncio", 16, first=12).values())


def groups(episodes: list[Episode], reward: float | None = None) -> list[Group]:
    found: dict[Any, list[Episode]] = {}
    for number, episode in enumerate(episodes):
        earned = float(number % 2) if reward is None else reward
        found.setdefault(episode.key.group, []).append(structs.replace(episode, reward=earned))
    return [Group(key, tuple(of_group)) for key, of_group in found.items()]


def observed(watch: UsersWatched, at: int, seen: list[Group]) -> dict[str, Any]:
    return anyio.run(watch.observe, at, seen)


def test_each_iteration_has_its_figures_and_one_line(
    episodes: list[Episode], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="muarl.train.users_watched"):
        found = observed(UsersWatched(desk(), ()), 3, groups(episodes))
    assert set(found["figures"]) == {rule.figure for rule in RULES}
    assert found["figures"]["flat_groups"] == 0
    assert 0 < found["figures"]["repeats_text"] <= 1
    assert found["alarms"] == []
    (line,) = caplog.messages
    assert line.startswith("users in iteration 3: repeats_text 0.")


def test_what_fires_is_warned_of_once_and_a_resumed_run_fires_when_the_first_would_have(
    episodes: list[Episode], caplog: pytest.LogCaptureFixture
) -> None:
    flat = groups(episodes, reward=0.0)
    through = UsersWatched(desk(), ())
    lines: list[dict[str, Any]] = []
    for at in range(PATIENCE):
        resumed = UsersWatched(desk(), [{"kind": "eval"}, *lines])
        caplog.clear()
        seen = observed(through, at, flat)
        assert observed(resumed, at, flat) == seen
        lines.append({"kind": "iteration", "iteration": at, "users": seen})
    fired = [alarm for line in lines for alarm in line["users"]["alarms"]]
    assert any(f"iteration {PATIENCE - 1}: flat_groups is 1" in alarm for alarm in fired)
    assert any("all_fail_groups" in alarm for alarm in fired)
    assert len(set(fired)) == len(fired)
    warned = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    # Of a random policy, say, that fails everywhere, no user is to blame.
    of_groups = {alarm for alarm in fired if "_groups is" in alarm}
    said = {f"groups: {alarm}" for alarm in of_groups}
    assert set(warned) == said | {f"users: {alarm}" for alarm in set(fired) - of_groups}
