"""What a stored episode ended with is known from its record, as long as its task is the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from dialogue_kit import TalkingUser as User
from dialogue_kit import dialogue, renderer, write_notes
from msgspec import structs
from seeded_desk import desk, play
from spec_files import spoil

from muarl.data.expert import ExpertPolicy
from muarl.data.replay import Replayed, replay_all
from muarl.data.stored import StoredTasks
from muarl.domain import Domain, load_domain
from muarl.errors import RecordError, SpecError
from muarl.messages import Message, ToolCall
from muarl.record import Episode, Outcome
from muarl.record.codec import decode_episode, encode_episode
from muarl.testing import build_episode
from muarl.world import Change, World, equal


class Puts:
    """An agent that notes something once, then says that it is done."""

    def __init__(self, **arguments: Any) -> None:
        self._call = ToolCall("c", "put", arguments)

    def act(self, history: Any) -> Message:
        called = any(message.role == "tool" for message in history)
        return Message("assistant", "Done." if called else "", () if called else (self._call,))


def noted(folder: Path, **arguments: Any) -> tuple[Domain, Episode]:
    """An episode of `notes`, as it comes out of a journal."""
    domain = write_notes(folder)
    policy = ExpertPolicy(Puts(**arguments), renderer())
    episode = anyio.run(dialogue(domain, policy, User(["hi"])).run)
    return domain, decode_episode(encode_episode(episode))


async def called_again(domain: Domain, episode: Episode) -> World:
    world = domain.world_for(StoredTasks(domain).of(episode))
    async with domain.server.session(world) as session:
        for turn in episode.turns:
            for call in turn.message.tool_calls:
                await session.call(call)
    return world


@pytest.mark.parametrize("seed", [0, 5])
def test_the_recorded_world_is_the_one_that_the_calls_lead_to(seed: int) -> None:
    episodes = play("asyncio", 64, seed=seed).values()
    tasks = StoredTasks(desk())
    changed = 0
    for episode in episodes:
        stored = decode_episode(encode_episode(episode))
        again = anyio.run(called_again, desk(), stored)
        assert equal(tasks.worlds(stored)[1], again)
        changed += bool(stored.changes)
    assert changed


@pytest.mark.parametrize(
    "arguments",
    [
        {"key": "a.b", "value": {"c.d": [1, {"": 2}]}},
        {"key": "", "value": None},
        {"key": '"', "value": ['"']},
        {"key": "old", "value": {"0": []}},
    ],
)
def test_whatever_keys_a_tool_writes_the_recorded_world_is_exact(
    tmp_path: Path, arguments: dict[str, Any]
) -> None:
    domain, episode = noted(tmp_path, **arguments)
    assert episode.changes
    again = anyio.run(called_again, domain, episode)
    assert equal(StoredTasks(domain).worlds(episode)[1], again)


# --- the task is not the one that was played ------------------------------------------------------

Edit = Callable[[Path], None]


def in_file(name: str, old: str, new: str) -> Edit:
    return lambda folder: spoil(folder / name, old, new)


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (in_file("tasks.yaml", "goal: Note it.", "goal: Note that."), "is not the one that was"),
        (in_file("tasks.yaml", "id: note-1", "id: note-2"), "has no task 'note-1' in its split"),
        (in_file("domain.yaml", "id: notes", "id: other"), "was played in domain 'notes'; this"),
        (in_file("domain.yaml", "{old: 1}", "{old: 1, a: 0}"), "nothing could be added there"),
    ],
)
def test_another_task_or_world_is_refused_with_what_to_do(
    tmp_path: Path, edit: Edit, says: str
) -> None:
    _, episode = noted(tmp_path, key="a", value=1)
    edit(tmp_path)
    if "id: other" in (tmp_path / "domain.yaml").read_text():
        spoil(tmp_path / "tasks.yaml", "domain: notes", "domain: other")
    with pytest.raises(RecordError, match=f"train/0/note-1/0.*{says}.*(Use the|Name the)"):
        StoredTasks(load_domain(tmp_path)).worlds(episode)


def test_a_split_that_is_gone_is_said(tmp_path: Path) -> None:
    domain, episode = noted(tmp_path, key="a", value=1)
    with pytest.raises(RecordError, match="in its split 'dev' any more"):
        StoredTasks(domain).of(structs.replace(episode, split="dev"))


@pytest.mark.parametrize(
    "edit",
    [
        in_file("tasks.yaml", "value: 1", "value: 2"),
        in_file("tasks.yaml", "gold:", "reward: [{said: {text: done}}], gold:"),
        in_file("tasks.yaml", "gold:", "metrics: [], gold:"),
    ],
)
def test_what_only_judges_may_have_been_mended(tmp_path: Path, edit: Edit) -> None:
    domain, episode = noted(tmp_path, key="a", value=1)
    before = StoredTasks(domain).worlds(episode)[1]
    edit(tmp_path)
    assert equal(StoredTasks(load_domain(tmp_path)).worlds(episode)[1], before)


# --- replay ---------------------------------------------------------------------------------------


def replayed(domain: Domain, *episodes: Episode) -> tuple[Replayed, list[str]]:
    told: list[str] = []

    async def main() -> Replayed:
        return await replay_all(domain, episodes, lambda e, text: told.append(f"{e.key}: {text}"))

    return anyio.run(main), told


@pytest.mark.parametrize("seed", [0, 5])
def test_what_was_recorded_replays_without_a_difference(seed: int) -> None:
    episodes = [decode_episode(encode_episode(e)) for e in play("trio", 3, seed=seed).values()]
    tally, told = replayed(desk(), *episodes)
    assert told == []
    assert tally == Replayed(same=64)


def _with_reward(episode: Episode) -> None:
    episode.reward = 0.5


def _with_score(episode: Episode) -> None:
    episode.rewards = [structs.replace(episode.rewards[0], score=0.25)]


def _without_metric(episode: Episode) -> None:
    episode.metrics = []


def _with_answer(episode: Episode) -> None:
    turn = episode.turns[0]
    turn.results = [structs.replace(turn.results[0], content="no")]


def _with_change(episode: Episode) -> None:
    episode.changes = [Change("notes.a", None, 2, "added")]


def _with_hash(episode: Episode) -> None:
    episode.task_hash = "0" * 16


def _with_turns_gone(episode: Episode) -> None:
    del episode.turns[1:]


@pytest.mark.parametrize(
    ("plant", "says"),
    [
        (_with_reward, ["reward: recorded 0.5, now 1"]),
        (_with_score, ["reward gold_world: recorded 0.25, now 1.0"]),
        (_without_metric, ["metric confirmed: recorded nothing, now 0.0"]),
        (_with_answer, ["turn 0, put: answered 'ok', recorded 'no'"]),
        (_with_change, ["recorded `notes.a: added 2`, now `notes.a: added 1`"]),
        (_with_hash, ["task 'note-1' is not the one that was played"]),
        (_with_turns_gone, []),
    ],
)
def test_each_difference_is_told_once(
    tmp_path: Path, plant: Callable[[Episode], None], says: list[str]
) -> None:
    domain, episode = noted(tmp_path, key="a", value=1)
    other = decode_episode(encode_episode(episode))
    plant(other)
    tally, told = replayed(domain, episode, other)
    assert len(told) == len(says)
    for line, words in zip(told, says, strict=True):
        assert line.startswith("train/0/note-1/0: ")
        assert words in line
    assert tally == Replayed(same=2 - len(says), different=len(says))


def test_what_tools_did_outside_is_not_done_again(tmp_path: Path) -> None:
    _, episode = noted(tmp_path, key="a", value=1)
    spoil(tmp_path / "domain.yaml", "stateless: true}", "stateless: true, external: true}")
    with pytest.raises(SpecError, match=r"domain.yaml:5:.*a replay would do again; `muarl score`"):
        replayed(load_domain(tmp_path), episode)


def test_a_fault_is_counted_and_a_predicate_that_fails_is_a_difference(tmp_path: Path) -> None:
    domain, episode = noted(tmp_path, key="a", value=1)
    fault = build_episode(outcome=Outcome.USER_FAULT)
    spoil(tmp_path / "tasks.yaml", "tool: put", "tool: leap")
    tally, told = replayed(load_domain(tmp_path), fault, episode)
    assert tally == Replayed(different=1, faults=1)
    assert len(told) == 1
    assert "gold call 0 of task 'note-1', leap, was answered with an error" in told[0]
    assert replayed(domain, fault)[0] == Replayed(faults=1)
