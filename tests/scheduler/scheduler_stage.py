"""A stage on which scripted dialogues run, and a record of what happened on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import anyio.lowlevel
import msgspec

from muarl.record import Episode, EpisodeKey, Outcome
from muarl.scheduler import EpisodePlan, Group, Limits, run_groups
from muarl.scheduler.shell import RunDialogue
from muarl.testing import build_episode, build_key


class Act(msgspec.Struct, frozen=True):
    """What one attempt does: wait, then end; `seconds` 0 only passes a checkpoint."""

    seconds: float = 0.0
    outcome: Outcome = Outcome.COMPLETED


class ListJournal:
    """A journal in memory."""

    def __init__(self) -> None:
        self.episodes: list[Episode] = []

    def append(self, episode: Episode) -> None:
        self.episodes.append(episode)

    @property
    def keys(self) -> list[EpisodeKey]:
        return [episode.key for episode in self.episodes]


class Stage:
    """Runs dialogues by a script, and sees how many are live.

    Attributes:
        acts: Acts of each key's attempts, the last one for all further ones.
        started: Plans in the order they began.
        live: Dialogues alive.
        most_live: The most there were.
        cut: Keys of dialogues that were cancelled.
    """

    def __init__(self, acts: Mapping[EpisodeKey, Sequence[Act]] | None = None) -> None:
        self.acts = acts or {}
        self.journal = ListJournal()
        self.started: list[EpisodePlan] = []
        self.live = 0
        self.most_live = 0
        self.cut: list[EpisodeKey] = []

    async def run_dialogue(self, plan: EpisodePlan) -> Episode:
        acts = self.acts.get(plan.key, [Act()])
        act = acts[min(plan.attempt, len(acts)) - 1]
        self.started.append(plan)
        self.live += 1
        self.most_live = max(self.most_live, self.live)
        try:
            if act.seconds:
                await anyio.sleep(act.seconds)
            else:
                await anyio.lowlevel.checkpoint()
        except anyio.get_cancelled_exc_class():
            self.cut.append(plan.key)
            raise
        finally:
            self.live -= 1
        return build_episode(plan.key, outcome=act.outcome, num_turns=0)

    async def run_all(self, keys: list[EpisodeKey], limits: Limits, **more: Any) -> list[Group]:
        """Every group, each checked to be journaled before it came."""
        got = []
        async with run_groups(
            keys, self.run_dialogue, limits=limits, journal=self.journal, **more
        ) as groups:
            async for group in groups:
                self.check_journaled(group, more.get("done", {}))
                got.append(group)
            assert groups.num_live == 0
            assert groups.unfinished() == []
        return got

    def check_journaled(self, group: Group, done: Mapping[EpisodeKey, Episode]) -> None:
        safe = {*self.journal.keys, *done}
        assert all(episode.key in safe for episode in group.episodes)


async def consume(keys: list[EpisodeKey], run_dialogue: RunDialogue, **more: Any) -> list[Group]:
    """Every group of a run, journaled nowhere unless `more` says where."""
    settings: dict[str, Any] = {"limits": Limits(), "journal": ListJournal()} | more
    async with run_groups(keys, run_dialogue, **settings) as groups:
        return [group async for group in groups]


def plan_keys(num_groups: int, group_size: int) -> list[EpisodeKey]:
    return [build_key(f"task-{g}", i) for g in range(num_groups) for i in range(group_size)]
