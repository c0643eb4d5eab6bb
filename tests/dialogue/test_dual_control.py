"""Dual control: the user acts on a device of her own, and both sides are one world."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from dialogue_kit import Sampler, TalkingUser, called, dialogue, ids_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from phone_kit import DOMAIN, Handy, phone_task, use, write_phones

from muarl.data.replay import replay_differences
from muarl.data.stored import StoredTasks
from muarl.domain import Domain
from muarl.errors import SpecError, ToolServerError
from muarl.gate import Gate
from muarl.messages import ToolCall, ToolResult, ToolSpec
from muarl.record import Episode, Outcome, UserReply
from muarl.record.codec import decode_episode, encode_episode
from muarl.testing import ScriptedPolicy, run_in_virtual_time
from muarl.user import User
from muarl.waits import Gates
from muarl.world import World, diff

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Domain:
    return write_phones(tmp_path_factory.mktemp("phones"))


def says(*texts: str) -> ScriptedPolicy:
    return ScriptedPolicy(texts, encode=ids_of)


def calls(tool: str, **arguments: Any) -> str:
    given = ", ".join(f'"{k}": {v}' for k, v in arguments.items())
    return called(f'{{"name": "{tool}", "arguments": {{{given}}}}}')


def task_of(domain: Domain) -> Any:
    return domain.tasks("train")[0]


async def talk(domain: Domain, user: User, *texts: str, task: Any = None) -> Episode:
    return await dialogue(domain, says(*texts), user, task=task or task_of(domain)).run()


RESUME = calls("set_line", line='"L1"', active="true")


async def test_both_sides_together_earn_the_reward_and_the_record_knows_who_did_what(
    domain: Domain,
) -> None:
    her = Handy([use("status")], [use("set_airplane", on=False), use("status")])
    episode = await talk(domain, her, RESUME, "turn it off", "bye")
    assert (episode.outcome, episode.reward) == (Outcome.COMPLETED, 1.0)
    assert [tool.name for tool in episode.tools] == ["set_line", "get_line"]
    assert [tool.name for tool in episode.user_tools] == ["set_airplane", "status"]
    assert [call.name for call in episode.opening.calls] == ["status"]
    assert '"can_call":false' in episode.opening.results[0].content
    assert episode.opening.changes == []
    reply = episode.turns[1].reply
    assert reply is not None
    assert [call.name for call in reply.calls] == ["set_airplane", "status"]
    assert '"can_call":true' in reply.results[1].content
    assert [str(change) for change in reply.changes] == [
        "device.airplane: True -> False",
        "device.can_call: False -> True",
    ]
    assert reply.per_call == [2, 0]
    assert [str(change) for change in episode.turns[0].changes] == [
        "device.service: False -> True",
        "lines.L1.active: False -> True",
    ]
    assert decode_episode(encode_episode(episode)) == episode
    assert await replay_differences(domain, task_of(domain), episode) == []


async def test_the_policy_learns_only_what_she_says(domain: Domain) -> None:
    policy = Sampler(lambda request: (ids_of("ok"), True))
    her = Handy([use("status")], [use("status")], [use("status")])
    await dialogue(domain, policy, her, task=task_of(domain)).run()
    for request in policy.requests:
        heard = " ".join(message.content for message in request.history)
        assert "can_call" not in heard
        assert "set_airplane" not in heard


async def test_one_side_alone_does_not_earn_it_and_the_difference_names_the_world(
    domain: Domain,
) -> None:
    agent_only = await talk(domain, TalkingUser([]), RESUME, "done")
    assert agent_only.reward == 0.0
    assert "device.airplane: False -> True" in agent_only.rewards[0].reason
    user_only = await talk(domain, Handy([], [use("set_airplane", on=False)]), "hm", "bye")
    assert user_only.reward == 0.0
    assert "lines.L1.active: True -> False" in user_only.rewards[0].reason
    assert "device.can_call: True -> False" in user_only.rewards[0].reason


async def test_both_sides_are_in_step_before_the_first_word(domain: Domain) -> None:
    task = phone_task(world={"lines": {"L2": {"active": False}}, "device": {"line": "L2"}})
    her = Handy([use("status")])
    episode = await talk(domain, her, "bye", task=task)
    assert '"can_call":false' in her.answers[0].content
    assert episode.changes == []


async def test_an_error_of_her_tool_is_hers_to_read_and_an_unknown_tool_too(
    domain: Domain,
) -> None:
    her = Handy([use("set_airplane", on=False), use("reboot"), use("set_line", line="L1")])
    episode = await talk(domain, her, "bye", task=phone_task())
    assert [answer.is_error for answer in her.answers] == [True, True, True]
    assert her.answers[0].content == "it is so already"
    assert "unknown tool 'reboot'; tools: set_airplane, status" in her.answers[1].content
    assert episode.outcome is Outcome.COMPLETED
    assert await replay_differences(domain, phone_task(), episode) == []


async def test_a_replay_sees_that_her_tools_answer_otherwise(domain: Domain) -> None:
    episode = await talk(domain, Handy([use("status")]), "bye", task=phone_task())
    was = episode.opening.results[0]
    episode.opening.results[0] = ToolResult(was.call_id, was.name, "{}")
    found = await replay_differences(domain, phone_task(), episode)
    assert len(found) == 1
    assert found[0].startswith("opening, status: answered ")
    assert found[0].endswith("recorded '{}'")


async def test_who_knows_of_no_device_only_talks(domain: Domain) -> None:
    episode = await talk(domain, TalkingUser(["hi"]), "hello", task=phone_task())
    assert episode.outcome is Outcome.COMPLETED
    assert episode.user_calls() == []


# --- faults, deadlines, cancellation --------------------------------------------------------------


class Odd:
    """A server whose tool does what a test wants; counts its open sessions."""

    def __init__(self, seconds: float = 0.0, fault: str = "") -> None:
        self.seconds, self.fault = seconds, fault
        self.open = 0
        self.tools: tuple[ToolSpec, ...] = ()

    @asynccontextmanager
    async def session(self, world: World) -> AsyncIterator[Odd]:
        self.open += 1
        try:
            yield self
        finally:
            self.open -= 1

    async def call(self, call: ToolCall) -> ToolResult:
        await anyio.sleep(self.seconds)
        if self.fault:
            raise ToolServerError(self.fault)
        return ToolResult(call.id, call.name, "ok")


async def test_a_fault_of_her_tool_server_is_nobodys_score_L2(tmp_path: Path) -> None:
    domain = write_phones(tmp_path)
    domain.user_server = odd = Odd(fault="the phone's server died")
    episode = await talk(domain, Handy([], [use("status")]), "look", task=phone_task())
    assert (episode.outcome, episode.reward) == (Outcome.INFRA_FAULT, None)
    assert episode.fault == "ToolServerError"
    assert "the phone's server died" in (episode.error or "")
    assert "the user's call 0, 'status'" in (episode.error or "")
    assert odd.open == 0


async def test_a_failing_sync_is_the_authors_fault_with_her_line_L2(tmp_path: Path) -> None:
    broken = (
        'def sync(world):\n    if world["device"]["airplane"]:\n        world["nowhere"]["x"]\n'
    )
    domain = write_phones(tmp_path, sync=broken)
    on = use("set_airplane", on=True)
    episode = await talk(domain, Handy([], [on]), "turn it on", task=phone_task())
    assert (episode.outcome, episode.fault) == (Outcome.INFRA_FAULT, "SyncError")
    assert "sync: sync.py:sync raised KeyError: 'nowhere'" in (episode.error or "")
    assert "sync.py:3, in sync" in (episode.error or "")
    assert "domain.yaml:14:" in (episode.error or "")


async def test_a_copy_from_nowhere_is_the_authors_fault_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as raised:
        write_phones(tmp_path).world_for(phone_task(world={"device": {"line": "L9"}}))
    assert "task 'both' cannot begin" in str(raised.value)
    assert "domain.yaml:13:7: sync: 'lines.L9' is not in the world" in str(raised.value)


def test_her_reply_s_seconds_do_not_run_while_a_tool_of_hers_answers(tmp_path: Path) -> None:
    domain = write_phones(tmp_path)
    domain.user_server = Odd(seconds=50)
    her = Handy([], [use("status"), use("status")])
    talked = dialogue(domain, says("look", "bye"), her, task=phone_task(), reply_s=5)
    episode = run_in_virtual_time(talked.run)
    assert episode.outcome is Outcome.COMPLETED


def test_her_own_seconds_run_on_after_a_call(tmp_path: Path) -> None:
    class Slow(Handy):
        async def reply(self, agent_text: str) -> UserReply:
            await anyio.sleep(3)
            reply = await super().reply(agent_text)
            await anyio.sleep(3)
            return reply

    domain = write_phones(tmp_path)
    domain.user_server = Odd(seconds=50)
    her = Slow([], [use("status")])
    talked = dialogue(domain, says("look"), her, task=phone_task(), reply_s=5)
    episode = run_in_virtual_time(talked.run)
    assert (episode.fault, episode.turns[0].reply) == ("EpisodeTimeout", None)
    assert "user message did not finish within 5 s" in (episode.error or "")


async def test_cancelled_in_her_call_nothing_lives_on_L7(tmp_path: Path) -> None:
    domain = write_phones(tmp_path)
    domain.user_server = odd = Odd(seconds=3600)
    talked = dialogue(domain, says("look"), Handy([], [use("status")]), task=phone_task())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(talked.run)
        await anyio.wait_all_tasks_blocked()
        assert odd.open == 1
        tasks.cancel_scope.cancel()
    assert odd.open == 0


def test_her_calls_wait_at_the_gate_of_calls(tmp_path: Path) -> None:
    domain = write_phones(tmp_path)
    domain.user_server = odd = Odd(seconds=10)
    now = most = 0
    answer = odd.call

    async def counted(call: ToolCall) -> ToolResult:
        nonlocal now, most
        now += 1
        most = max(most, now)
        try:
            return await answer(call)
        finally:
            now -= 1

    odd.call = counted  # type: ignore[method-assign]
    gates = Gates(calls=Gate(1))

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                her = Handy([use("status")], [use("status")])
                policy = says("look", "bye")
                talked = dialogue(domain, policy, her, task=phone_task(), gates=gates, reply_s=5)
                tasks.start_soon(talked.run)

    run_in_virtual_time(main)
    assert most == 1


async def test_her_write_outside_the_world_is_an_effect(tmp_path: Path) -> None:
    outside = DOMAIN.replace(
        "  tools: {python: tools.py:phone, stateless: true}",
        "  tools: {python: tools.py:phone, stateless: true, external: true}",
    )
    domain = write_phones(tmp_path, domain=outside)
    looked = await talk(domain, Handy([use("status")]), "bye", task=phone_task())
    assert looked.effect is None
    wrote = await talk(domain, Handy([use("set_airplane", on=True)]), "bye", task=phone_task())
    assert wrote.effect == "set_airplane"
    assert domain.spec.writes_outside


# --- properties -----------------------------------------------------------------------------------

_HERS = st.lists(
    st.sampled_from(
        [
            use("set_airplane", on=True),
            use("set_airplane", on=False),
            use("status"),
            use("set_airplane", on="maybe"),
            use("nothing"),
        ]
    ),
    max_size=3,
)
_AGENTS = st.sampled_from(
    [
        "hm",
        RESUME,
        calls("set_line", line='"L1"', active="false"),
        calls("set_line", line='"L9"', active="false"),
        calls("get_line", line='"L1"'),
    ]
)


@given(hers=st.lists(_HERS, min_size=1, max_size=4), agents=st.lists(_AGENTS, max_size=6))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_replay_of_any_interleaving_rebuilds_both_sides_and_they_are_in_step(
    domain: Domain, hers: list[list[ToolCall]], agents: list[str]
) -> None:
    task = task_of(domain)

    async def main() -> None:
        talked = dialogue(domain, says(*agents, *["ok"] * 8), Handy(*hers), task=task)
        episode = await talked.run()
        assert episode.error is None
        assert await replay_differences(domain, task, episode) == []
        initial = domain.world_for(task)
        parts = [change.changes for change in (*episode.replies(), *episode.turns)]
        touched = {change.path for changes in parts for change in changes}
        assert {change.path for change in episode.changes} <= touched
        _, final = StoredTasks(domain).worlds(episode)
        device = final["device"]
        assert device["service"] == final["lines"]["L1"]["active"]
        assert device["can_call"] == (device["service"] and not device["airplane"])
        assert diff(initial, final) == episode.changes

    anyio.run(main)
