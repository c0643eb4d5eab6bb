"""The library's desk: a domain without Python, from its proof to replayed and rescored episodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import anyio
import pytest
from dialogue_kit import dialogue, renderer

from muarl.data.expert import ExpertPolicy
from muarl.data.proof import Proof, prove
from muarl.data.replay import replay_all
from muarl.data.stored import StoredTasks, judged_again
from muarl.domain import Domain, load_domain
from muarl.messages import Message, ToolCall
from muarl.record import Episode, Outcome, UserReply
from muarl.record.codec import decode_episode, encode_episode
from muarl.reward import Verdict
from muarl.spec import TaskSpec
from muarl.spec.task import RequestSpec
from muarl.spec.user import ScriptedUserSpec, UserSpec
from muarl.world import World, canonical_diff, diff
from muarl.world.sql import SqlWorld

FOLDER = Path(__file__).parents[2] / "domains" / "library"


@cache
def library() -> Domain:
    return load_domain(FOLDER)


TASKS = [task for split in library().splits for task in library().tasks(split)]


class Desk:
    """Does what the task's user will want, once she has said yes."""

    def __init__(self, task: TaskSpec) -> None:
        self._says = self._script(task)

    def act(self, history: Sequence[Message]) -> Message:
        return next(self._says)

    def _script(self, task: TaskSpec) -> Iterator[Message]:
        assert task.user is not None
        gold = list(task.gold)
        for number, request in enumerate(task.user.requests):
            if not gold:
                yield Message("assistant", "I cannot do that.")
                continue
            yield Message("assistant", f"{_mark(request)}: shall I?")
            if request.instead is not None:
                yield Message("assistant", f"{_mark(request.instead)}: shall I?")
            call = gold.pop(0)
            yield Message("assistant", "", (ToolCall(f"{number}", call.tool, call.arguments),))
            yield Message("assistant", "Done. Anything else?")


def _mark(request: RequestSpec) -> str:
    return next(fact.value for fact in request.facts)


async def played(task: TaskSpec) -> Episode:
    domain = library()
    persona = task.personas[0]
    user = domain.user(UserSpec(scripted=ScriptedUserSpec()), task, persona, seed=1)
    policy = ExpertPolicy(Desk(task), renderer())
    episode = await dialogue(domain, policy, user, task=task, max_tokens=2_000).run()
    return decode_episode(encode_episode(episode))


async def judged(task: TaskSpec, world: World) -> Verdict:
    """What is earned by a dialogue that left `world`, with nothing said."""
    domain = library()
    return await domain.judge(task, world, [], UserReply(""), initial=domain.world_for(task))


@pytest.mark.anyio
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
async def test_a_desk_that_asks_first_earns_everything(task: TaskSpec) -> None:
    episode = await played(task)
    assert (episode.outcome, episode.reward) == (Outcome.COMPLETED, 1.0), episode.rewards
    assert [metric.score for metric in episode.metrics] == [1.0 if task.gold else None]
    assert bool(episode.changes) == bool(task.gold)


@pytest.mark.anyio
async def test_stored_episodes_are_replayed_and_their_worlds_known() -> None:
    domain = library()
    episodes = [await played(task) for task in TASKS]
    told: list[str] = []
    tally = await replay_all(domain, episodes, lambda _, difference: told.append(difference))
    assert (tally.same, told) == (len(episodes), [])
    for episode in episodes:
        tasks = StoredTasks(domain)
        worlds, gold = tasks.worlds(episode), await domain.gold_world(tasks.of(episode))
        world = worlds[1]
        assert isinstance(world, SqlWorld)
        assert canonical_diff(gold, world, world.unordered) == []
        verdict = await judged_again(domain, tasks.of(episode), episode, worlds)
        assert verdict.reward == episode.reward


@pytest.mark.anyio
async def test_holds_in_another_order_are_the_same_holds() -> None:
    domain = library()
    task = next(task for task in TASKS if task.id == "reserve-two")
    world = domain.world_for(task)
    async with domain.server.session(world) as session:
        for call in reversed(task.gold):
            result = await session.call(ToolCall("1", call.tool, call.arguments))
            assert result.content == "ok"
    assert diff(await domain.gold_world(task), world) != []
    assert (await judged(task, world)).reward == 1


@pytest.mark.anyio
async def test_a_world_that_is_not_the_gold_one_is_explained_by_table_key_and_column() -> None:
    domain = library()
    task = next(task for task in TASKS if task.id == "renew-middlemarch")
    verdict = await judged(task, domain.world_for(task))
    assert verdict.reward == 0
    assert "loans.B103.due: '2026-03-24' -> '2026-03-10'" in verdict.rewards[0].reason


def test_the_library_is_sound() -> None:
    async def main() -> Proof:
        return await prove(library(), dialogues=4)

    found = anyio.run(main)
    assert [str(finding.problem) for finding in found.findings] == []
    assert all(mean.value is not None and mean.value < 0.15 for mean in found.idle.values())
