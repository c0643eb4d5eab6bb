"""`muarl.Rollouts`: dialogues in a program of one's own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import anyio
import pytest
from dialogue_kit import called, ids_of, renderer, write_notes

import muarl
from muarl import AgentContext, Rollouts, SetupError, SpecError
from muarl.domain import Domain, load_domain
from muarl.policy import GenerateRequest, Generation
from muarl.record import Episode, Outcome, read_journal
from muarl.spec import TaskSpec
from muarl.spec.run import RolloutSpec
from muarl.testing import ScriptedPolicy

PUT = called('{"name": "put", "arguments": {"key": "a", "value": 1}}')
LIMITS = RolloutSpec(max_tokens=400, context_tokens=8_000, concurrency=3)


@pytest.fixture(scope="module")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Domain:
    folder = tmp_path_factory.mktemp("notes")
    write_notes(folder)
    tasks = folder / "tasks.yaml"
    tasks.write_text(tasks.read_text().replace("gold:", "turns: [{says: note it}], gold:"))
    return load_domain(folder)


def says(*texts: str, latency_s: float = 0.0) -> ScriptedPolicy:
    return ScriptedPolicy(texts, ids_of, latency_s=latency_s)


async def good(context: AgentContext) -> None:
    await context.generate(context.opening)
    await context.call_tool("put", {"key": "a", "value": 1})


@pytest.mark.anyio
async def test_groups_come_as_they_become_whole(domain: Domain) -> None:
    policy = says(PUT, *["Done."] * 9)
    async with Rollouts(domain, policy, renderer(), group_size=4, limits=LIMITS) as rollouts:
        groups = [group async for group in rollouts]
    (group,) = groups
    assert group.key == ("train", 0, "note-1")
    assert [episode.key.sample for episode in group.episodes] == [0, 1, 2, 3]
    assert {episode.reward for episode in group.episodes} == {1.0}


@pytest.mark.anyio
async def test_an_agents_own_loop_leads_them(domain: Domain) -> None:
    async with Rollouts(domain, says("hello"), renderer(), loop=good, limits=LIMITS) as rollouts:
        (group,) = [group async for group in rollouts]
    (episode,) = group.episodes
    assert (episode.outcome, episode.reward) == (Outcome.LEFT, 1.0)


@pytest.mark.anyio
async def test_a_folder_is_as_good_as_a_domain_and_a_journal_has_all_first(
    domain: Domain, tmp_path: Path
) -> None:
    file = tmp_path / "episodes.journal"
    settings = {"loop": good, "group_size": 2, "journal": file, "limits": LIMITS}
    async with Rollouts(domain.folder, says("hello"), renderer(), **settings) as rollouts:
        async for group in rollouts:
            on_disk = sorted(read_journal(file), key=lambda episode: episode.key.sample)
            assert on_disk == list(group.episodes)


@pytest.mark.anyio
async def test_leaving_the_block_leaves_no_dialogue_alive(domain: Domain) -> None:
    ended = []

    async def endless(context: AgentContext) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(context.task.id)

    async with Rollouts(domain, says("hello"), renderer(), loop=endless, group_size=3) as them:
        while them.num_live < 3:
            await anyio.lowlevel.checkpoint()
    assert ended == ["note-1"] * 3


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_whoever_cancels_the_dialogues_task_ends_that_dialogue_alone(
    domain: Domain, anyio_backend: str
) -> None:
    """A policy here; a user's, a tool's and a predicate's code run in the same task."""
    scripted = says("hello", *["Done."] * 9)

    class Suicidal:
        policy_version = 0
        asked = 0

        async def generate(self, request: GenerateRequest) -> Generation:
            self.asked += 1
            task = asyncio.current_task()
            if self.asked == 1 and task is not None:
                task.cancel()
                await asyncio.sleep(3600)
            return await scripted.generate(request)

    limits = LIMITS.model_copy(update={"attempts": 1, "max_fault_rate": 1.0})
    with anyio.fail_after(60):
        async with Rollouts(
            domain, Suicidal(), renderer(), group_size=3, limits=limits
        ) as rollouts:
            (group,) = [group async for group in rollouts]
    (bad,) = [episode for episode in group.episodes if episode.outcome.is_fault]
    assert len(group.episodes) == 3
    assert "something in the dialogue cancelled its task: CancelledError" in (bad.error or "")
    assert "test_rollouts.py:" in (bad.error or "")


@pytest.mark.anyio
async def test_stopped_they_end_with_what_is_under_way(domain: Domain) -> None:
    policy = says(PUT, *["Done."] * 9)
    limits = LIMITS.model_copy(update={"concurrency": 1})
    tasks = [
        domain.tasks("train")[0].model_copy(update={"id": f"note-{number}"}) for number in range(9)
    ]
    async with Rollouts(domain, policy, renderer(), tasks=tasks, limits=limits) as rollouts:
        seen = 0
        async for _group in rollouts:
            seen += 1
            rollouts.stop()
    assert 1 <= seen <= 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"tasks": "trian"}, "no split 'trian'; did you mean 'train'"),
        ({"tasks": []}, "no tasks were given"),
        ({"group_size": 0}, "group_size must be at least 1"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_begins(
    domain: Domain, settings: dict[str, object], words: str
) -> None:
    with pytest.raises(SetupError, match=words):
        Rollouts(domain, says(), renderer(), **settings)  # type: ignore[arg-type]


@pytest.mark.anyio
async def test_what_all_dialogues_meet_alike_is_said_once(tmp_path: Path) -> None:
    """Not as a group of the same error, which `except SpecError` does not catch."""
    nobody = write_notes(tmp_path)
    with pytest.raises(SpecError, match="the domain has no `user` script"):
        async with Rollouts(nobody, says("hello"), renderer(), group_size=4) as rollouts:
            _ = [group async for group in rollouts]


@pytest.mark.anyio
async def test_they_are_opened_once_and_before_they_are_iterated_over(domain: Domain) -> None:
    rollouts = Rollouts(domain, says("hello"), renderer(), loop=good, limits=LIMITS)
    with pytest.raises(SetupError, match="async with"):
        aiter(rollouts)
    async with rollouts:
        pass
    with pytest.raises(SetupError, match="begun already"):
        await rollouts.__aenter__()


def test_the_names_are_public() -> None:
    assert {"AgentContext", "AgentLoop", "DialogueOver", "Rollouts"} <= set(muarl.__all__)


MANY = ("hello",) * 99


def many(domain: Domain, count: int) -> list[TaskSpec]:
    (task,) = domain.tasks("train")
    return [task.model_copy(update={"id": f"note-{number}"}) for number in range(count)]


@pytest.mark.anyio
async def test_iterating_after_the_block_says_that_it_has_ended(domain: Domain) -> None:
    async with Rollouts(domain, says(*MANY), renderer(), loop=good, limits=LIMITS) as rollouts:
        begun = aiter(rollouts)
    with pytest.raises(SetupError, match="their block was left"):
        _ = [group async for group in rollouts]
    with pytest.raises(SetupError, match="their block was left"):
        await anext(begun)


@pytest.mark.anyio
async def test_an_iteration_may_be_broken_off_and_gone_on_with(domain: Domain) -> None:
    tasks = many(domain, 6)
    settings = {"tasks": tasks, "loop": good, "limits": LIMITS}
    async with Rollouts(domain, says(*MANY), renderer(), **settings) as rollouts:
        first = None
        async for group in rollouts:
            first = group
            break
        assert first is not None
        others = [group async for group in rollouts]
        assert [group async for group in rollouts] == []
    assert sorted(group.key[2] for group in [first, *others]) == [task.id for task in tasks]


@pytest.mark.anyio
async def test_two_iterations_at_once_share_the_groups(domain: Domain) -> None:
    tasks = many(domain, 6)
    seen: list[str] = []

    async def look(rollouts: Rollouts) -> None:
        seen.extend([group.key[2] async for group in rollouts])

    settings = {"tasks": tasks, "loop": good, "limits": LIMITS}
    async with (
        Rollouts(domain, says(*MANY), renderer(), **settings) as rollouts,
        anyio.create_task_group() as two,
    ):
        two.start_soon(look, rollouts)
        two.start_soon(look, rollouts)
    assert sorted(seen) == [task.id for task in tasks]


@pytest.mark.anyio
async def test_rollouts_within_rollouts(domain: Domain) -> None:
    async with Rollouts(domain, says(*MANY), renderer(), loop=good, limits=LIMITS) as outer:
        async for group in outer:
            async with Rollouts(domain, says(*MANY), renderer(), loop=good, limits=LIMITS) as inner:
                assert [each.key async for each in inner] == [group.key]


@pytest.mark.anyio
@pytest.mark.parametrize("kind", [LookupError, KeyboardInterrupt, SystemExit])
async def test_what_the_body_raises_comes_as_it_is_and_no_finished_episode_is_lost(
    domain: Domain, tmp_path: Path, kind: type[BaseException]
) -> None:
    file = tmp_path / "episodes.journal"
    tasks = many(domain, 9)
    settings = {"tasks": tasks, "loop": good, "limits": LIMITS, "journal": file}
    seen: list[Episode] = []
    rollouts = Rollouts(domain, says(*MANY), renderer(), **settings)

    async def broken_off() -> None:
        async with rollouts:
            async for group in rollouts:
                seen.extend(group.episodes)
                if len(seen) == 3:
                    raise kind

    with pytest.raises(kind):
        await broken_off()
    assert rollouts.num_live == 0
    on_disk = list(read_journal(file))
    assert all(episode in on_disk for episode in seen)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"tasks": [3]}, "tasks[0] must be a muarl TaskSpec, got a value of type int"),
        (
            {"tasks": 3},
            "tasks must be the name of a split or a list of tasks, got a value of type int",
        ),
        ({"loop": 3}, "loop must be an async function of one context, got a value of type int"),
        ({"domain": 3}, "domain must be a path or a loaded domain, got a value of type int"),
        ({"policy": 3}, "policy has no `generate`: it is a value of type int"),
        ({"renderer": None}, "renderer must be a muarl Renderer, got None"),
        ({"group_size": "2"}, "group_size must be a whole number, got a value of type str"),
        ({"limits": {"max_turns": 3}}, "limits must be a RolloutSpec, got a value of type dict"),
    ],
)
def test_what_has_another_form_is_refused_by_name(
    domain: Domain, settings: dict[str, object], words: str
) -> None:
    given = {"domain": domain, "policy": says(), "renderer": renderer()} | settings
    with pytest.raises(TypeError) as caught:
        Rollouts(**given)  # type: ignore[arg-type]
    assert words in str(caught.value)
