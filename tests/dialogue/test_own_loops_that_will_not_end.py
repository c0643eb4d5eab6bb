# ruff: noqa: TID251, SIM105, ASYNC110, BLE001, S110 -- agents may be written like this
"""Agents' own loops that end themselves or will not be ended: their episode's fault, and nobody else's."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from dialogue_kit import called, led, renderer, says, write_notes

from muarl import own_task
from muarl.domain import Domain, load_domain
from muarl.errors import EpisodeTimeout
from muarl.messages import Message
from muarl.own_loop import AgentContext, AgentLoop
from muarl.record import Episode, Outcome
from muarl.rollouts import Rollouts
from muarl.spec.run import RolloutSpec

pytestmark = pytest.mark.anyio

PUT = called('{"name": "put", "arguments": {"key": "a", "value": 1}}')
OTHERS = 4


@pytest.fixture(scope="module")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Domain:
    folder = tmp_path_factory.mktemp("notes")
    write_notes(folder)
    tasks = folder / "tasks.yaml"
    tasks.write_text(tasks.read_text().replace("gold:", "turns: [{says: note it}], gold:"))
    return load_domain(folder)


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_task, "GRACE_S", 0.1)


async def good(context: AgentContext) -> None:
    await context.generate(context.opening)
    await context.call_tool("put", {"key": "a", "value": 1})


async def one_among_others(domain: Domain, bad: AgentLoop, **limits: Any) -> list[Episode]:
    """Episodes of a group whose first dialogue `bad` leads, and the others an agent that does well."""
    is_first = True

    async def agent(context: AgentContext) -> None:
        nonlocal is_first
        mine, is_first = (bad if is_first else good), False
        await mine(context)

    given: dict[str, Any] = {"max_tokens": 400, "attempts": 1, "max_fault_rate": 1.0}
    rules = RolloutSpec(**(given | limits))
    policy = says(*["hello"] * 99)
    with anyio.fail_after(60):
        async with Rollouts(
            domain, policy, renderer(), loop=agent, group_size=1 + OTHERS, limits=rules
        ) as rollouts:
            (group,) = [group async for group in rollouts]
    return list(group.episodes)


async def cancelled_in_the_midst(domain: Domain, bad: AgentLoop) -> Episode:
    """What is recorded of a dialogue that passes its deadline; others go on as it is ended."""
    begun = anyio.Event()
    others: list[Episode] = []

    async def agent(context: AgentContext) -> None:
        begun.set()
        await bad(context)

    async def other() -> None:
        others.append(await led(domain, good, says("hello")).run())

    dialogue = led(domain, agent, says(*["hello"] * 999_999), max_turns=999_999)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as around, anyio.create_task_group() as tasks:
            tasks.start_soon(dialogue.run)
            await begun.wait()
            for _ in range(10):  # to where it waits
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
            around.start_soon(other)
    assert [episode.reward for episode in others] == [1.0]
    return dialogue.broken_off(EpisodeTimeout("dialogue", 1.0))


def check_that_the_others_went_on(episodes: list[Episode]) -> Episode:
    """All but one did well; that one."""
    (bad,) = [episode for episode in episodes if episode.outcome.is_fault]
    assert [e.reward for e in episodes if e is not bad] == [1.0] * OTHERS
    return bad


async def cancels_itself(context: AgentContext) -> None:
    await context.generate(context.opening)
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await context.call_tool("put", {"key": "a", "value": 1})


async def cancels_itself_last(context: AgentContext) -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


async def raises_what_cancels(context: AgentContext) -> None:
    raise asyncio.CancelledError


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("agent", [cancels_itself, raises_what_cancels])
async def test_one_that_cancels_its_own_task_is_a_fault_of_its_episode_alone(
    domain: Domain, agent: AgentLoop
) -> None:
    bad = check_that_the_others_went_on(await one_among_others(domain, agent))
    assert (bad.outcome, bad.fault) == (Outcome.INFRA_FAULT, "AgentError")
    assert "CancelledError" in (bad.error or "")
    assert "test_own_loops_that_will_not_end.py:" in (bad.error or "")


async def leaves_a_scope_open(context: AgentContext) -> None:
    anyio.CancelScope().__enter__()
    await context.generate(context.opening)


async def leaves_a_generator_open(context: AgentContext) -> None:
    async def messages() -> AsyncIterator[Message]:
        async with anyio.create_task_group():
            while True:
                yield await context.generate(context.opening)

    LEFT_OPEN.append(messages())
    async for _ in LEFT_OPEN[-1]:
        break


LEFT_OPEN: list[AsyncIterator[Message]] = []
"""Else the collector closes them amid another test."""


@pytest.mark.parametrize("agent", [leaves_a_scope_open, leaves_a_generator_open])
async def test_one_that_leaves_a_scope_open_is_a_fault_of_its_episode_alone(
    domain: Domain, agent: AgentLoop
) -> None:
    bad = check_that_the_others_went_on(await one_among_others(domain, agent))
    assert (bad.outcome, bad.fault) == (Outcome.INFRA_FAULT, "AgentError")
    assert "was still open" in (bad.error or "")


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_one_that_cancels_its_own_task_as_it_returns_harms_nobody(domain: Domain) -> None:
    episodes = await one_among_others(domain, cancels_itself_last)
    assert [e.outcome for e in episodes] == [Outcome.LEFT] * len(episodes)
    assert sorted(e.reward or 0.0 for e in episodes) == [0.0] + [1.0] * OTHERS


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_sub_agents_in_tasks_of_asyncio_are_cancelled_as_ever(domain: Domain) -> None:
    met: list[str] = []

    async def sub(context: AgentContext) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            met.append("cancelled")

    async def patient(context: AgentContext) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.gather(sub(context), sub(context)), 0.01)
        task = asyncio.create_task(sub(context))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.create_task(asyncio.sleep(0, 3)) == 3
        with pytest.raises(LookupError):
            await asyncio.create_task(fails())
        await good(context)

    async def fails() -> None:
        raise LookupError

    episodes = await one_among_others(domain, patient)
    assert [e.reward for e in episodes] == [1.0] * len(episodes)
    assert met == ["cancelled"] * 3


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_time_limits_of_asyncio_work_in_an_agent(domain: Domain) -> None:
    """They cancel the agent's task too, and take it back."""

    async def patient(context: AgentContext) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await asyncio.sleep(60)
        await good(context)

    episodes = await one_among_others(domain, patient)
    assert [e.reward for e in episodes] == [1.0] * len(episodes)


async def sleeps_on(context: AgentContext) -> None:
    while True:
        try:
            await anyio.sleep(60)
        except BaseException:
            pass


async def asks_on(context: AgentContext) -> None:
    while True:
        try:
            await context.generate(context.opening)
        except BaseException:
            pass


async def sleeps_on_in_short(context: AgentContext) -> None:
    with anyio.CancelScope(shield=True):
        while True:
            await anyio.sleep(0.01)


async def sleeps_on_in_tasks(context: AgentContext) -> None:
    while True:
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(anyio.sleep, 60)
                await anyio.sleep(60)
        except BaseException:
            pass


@pytest.mark.parametrize("agent", [sleeps_on, asks_on, sleeps_on_in_short, sleeps_on_in_tasks])
async def test_one_that_takes_no_cancellation_is_left_behind_with_a_message(
    domain: Domain, agent: AgentLoop
) -> None:
    with pytest.warns(RuntimeWarning, match="does not end when it is cancelled"):
        bad = await cancelled_in_the_midst(domain, agent)
    assert (bad.outcome, bad.fault) == (Outcome.INFRA_FAULT, "EpisodeTimeout")
    assert "its agent does not end when it is cancelled" in (bad.error or "")
    assert "test_own_loops_that_will_not_end.py:" in (bad.error or "")


async def shields_itself(context: AgentContext) -> None:
    with anyio.CancelScope(shield=True):
        await anyio.sleep_forever()


async def waits_for_a_thread(context: AgentContext) -> None:
    await anyio.to_thread.run_sync(time.sleep, 1.5)


SUB_AGENTS: list[asyncio.Task[None]] = []


async def deaf_until_told(context: AgentContext) -> None:
    while context is not None and not stop_now.is_set():
        try:
            await asyncio.sleep(60)
        except BaseException:
            pass


stop_now = threading.Event()


async def waits_for_a_task(context: AgentContext) -> None:
    SUB_AGENTS.append(asyncio.create_task(deaf_until_told(context)))
    await SUB_AGENTS[-1]


async def gathers_tasks(context: AgentContext) -> None:
    SUB_AGENTS.extend(asyncio.create_task(deaf_until_told(context)) for _ in range(2))
    await asyncio.gather(*SUB_AGENTS[-2:])


@pytest.fixture
async def no_sub_agents_left() -> AsyncIterator[None]:
    stop_now.clear()
    yield
    stop_now.set()
    for task in SUB_AGENTS:
        task.cancel()
        await task
    SUB_AGENTS.clear()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(
    "agent", [shields_itself, waits_for_a_thread, waits_for_a_task, gathers_tasks]
)
@pytest.mark.usefixtures("no_sub_agents_left")
async def test_on_asyncio_no_shield_holds_the_others_up(domain: Domain, agent: AgentLoop) -> None:
    with pytest.warns(RuntimeWarning, match="does not end when it is cancelled"):
        bad = await cancelled_in_the_midst(domain, agent)
    assert "its agent does not end when it is cancelled" in (bad.error or "")


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_on_trio_a_shield_is_waited_for_and_that_is_said(domain: Domain) -> None:
    with pytest.warns(RuntimeWarning, match="trio lets nobody end it"):
        bad = await cancelled_in_the_midst(domain, waits_for_a_thread)
    assert "its agent does not end when it is cancelled" in (bad.error or "")


async def test_one_that_talks_on_after_the_end_and_takes_no_cancellation_is_left_behind(
    domain: Domain,
) -> None:
    async def deaf(context: AgentContext) -> None:
        message = await context.generate(context.opening)
        while True:
            try:
                await context.tell_user(message.content)
            except BaseException:
                pass

    with anyio.fail_after(60), pytest.warns(RuntimeWarning, match="does not end"):
        episode = await led(domain, deaf, says("hello", "hello"), ["note it"]).run()
    assert (episode.outcome, episode.fault) == (Outcome.COMPLETED, None)


@pytest.mark.slow
async def test_a_deadline_of_rollouts_passes_it_over(domain: Domain) -> None:
    with pytest.warns(RuntimeWarning, match="does not end when it is cancelled"):
        episodes = await one_among_others(domain, sleeps_on, deadline_s=6.0)
    bad = check_that_the_others_went_on(episodes)
    assert (bad.outcome, bad.fault) == (Outcome.INFRA_FAULT, "EpisodeTimeout")
    assert "its agent does not end when it is cancelled" in (bad.error or "")


async def test_leaving_the_block_does_not_wait_for_them(domain: Domain) -> None:
    began = anyio.Event()

    async def stubborn(context: AgentContext) -> None:
        began.set()
        await sleeps_on(context)

    with anyio.fail_after(60), pytest.warns(RuntimeWarning, match="does not end"):
        async with Rollouts(domain, says("hello"), renderer(), loop=stubborn):
            await began.wait()


async def test_cleaning_up_has_its_moment(domain: Domain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_task, "GRACE_S", 30.0)
    cleaned = []

    async def tidy(context: AgentContext) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.01)
                cleaned.append(context.task.id)

    bad = await cancelled_in_the_midst(domain, tidy)
    assert "does not end" not in (bad.error or "")
    assert cleaned == ["note-1"]
