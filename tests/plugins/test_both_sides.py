"""A package provides both sides of a domain: the world, the agent's tools, the user and her device."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from plugin_kit import Install
from plugin_packages import shop
from spec_files import said

from muarl.domain import load_domain
from muarl.errors import SpecError
from muarl.messages import Message
from muarl.record import Episode, Outcome
from muarl.spec.user import UserSpec
from muarl.testing import cancel_everywhere, play_agents

PHONE = """

class Phone:
    def __init__(self, options, folder): ...

    @asynccontextmanager
    async def session(self, world):
        yield PhoneSession(world)


class PhoneSession:
    tools = (ToolSpec("switch", "Switch.", {"type": "object"}),)

    def __init__(self, world):
        self.world = world

    async def call(self, call):
        self.world["on"] = not self.world["on"]
        return ToolResult(call.id, call.name, str(self.world["on"]))


phone = ToolServerPlugin(Options, Phone)


class Owner:
    def __init__(self, options, scene):
        self.device = None

    def take(self, device):
        self.device = device

    async def open(self):
        answer = await self.device.call(ToolCall("u1", "switch", {}))
        return UserReply(f"My phone: {answer.content}")

    async def reply(self, text):
        return UserReply("Bye.", stop=True)


owner = UserPlugin(Options, Owner)
"""
DOMAIN = """\
version: 1
id: phones
summary: Orders, and a phone.
rules: Be kind.
world: {plugin: {orders: {}}}
tools: {plugin: {office: {done: Now}}, external: false}
writes: [cancel]
device:
  tools: {plugin: phone, external: false}
  writes: [switch]
  world: {data: {on: false}}
personas: {plain: {style: Plain.}}
tasks: {files: [tasks.yaml]}
reward: [{world: {path: device.on, equals: true}}]
"""
TASKS = """\
version: 1
domain: phones
tasks: [{id: on, goal: Have it on., gold: [{tool: switch, by: user}]}]
"""
POINTS = (
    "muarl.worlds: orders = orders",
    "muarl.tool_servers: office = server",
    "muarl.tool_servers: phone = phone",
    "muarl.users: owner = owner",
)


class Quiet:
    """An agent that only greets."""

    def act(self, history: object) -> Message:
        del history
        return Message("assistant", "Hello.")


@pytest.fixture
def phones(tmp_path: Path) -> Path:
    folder = tmp_path / "phones"
    folder.mkdir()
    (folder / "domain.yaml").write_text(DOMAIN)
    (folder / "tasks.yaml").write_text(TASKS)
    return folder


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_her_tools_act_on_her_part_of_the_packages_world(
    phones: Path, install: Install, backend: str
) -> None:
    install(shop() + PHONE, *POINTS)
    domain = load_domain(phones)
    assert type(domain.base).__name__ == "Orders"

    async def play() -> list[Episode]:
        return await play_agents(
            domain,
            domain.tasks("train"),
            lambda _task, _rng: Quiet(),
            user=UserSpec(plugin="owner"),
        )

    (episode,) = anyio.run(play, backend=backend)
    assert (episode.opening.text, episode.reward) == ("My phone: True", 1.0)
    assert [tool.name for tool in episode.user_tools] == ["switch"]
    assert [str(change) for change in episode.opening.changes] == ["device.on: False -> True"]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_dialogue_of_theirs_is_cancelled_at_any_wait_and_nothing_lives_on_L7(
    phones: Path, install: Install, backend: str
) -> None:
    wait = "await anyio.sleep(0)"
    code = shop(cancel=wait, start=wait, end=wait) + PHONE
    held = "async with anyio.create_task_group() as tasks:\n            tasks.start_soon(anyio.sleep_forever)"
    code = code.replace(
        "        yield PhoneSession(world)",
        f"        {held}\n            yield PhoneSession(world)\n            tasks.cancel_scope.cancel()",
    ).replace(
        'return UserReply("Bye.", stop=True)',
        f'{wait}\n        return UserReply("Bye.", stop=True)',
    )
    install(code, *POINTS)
    domain = load_domain(phones)
    tasks = domain.tasks("train")
    ended = []

    async def play() -> None:
        user = UserSpec(plugin="owner")
        ended.extend(await play_agents(domain, tasks, lambda _task, _rng: Quiet(), user=user))

    assert cancel_everywhere(play, backend=backend) > 5
    assert [episode.outcome for episode in ended] == [Outcome.COMPLETED]


def test_a_world_with_a_key_where_her_part_lies_is_refused(phones: Path, install: Install) -> None:
    install(shop().replace('"orders": {f"W', '"device": {}, "orders": {f"W') + PHONE, *POINTS)
    with pytest.raises(SpecError) as caught:
        load_domain(phones).base  # noqa: B018
    assert said(caught.value) == [
        (
            "5:17: the world 'orders' of shop-plugins 0.1 made a world with a key 'device', where "
            "`device.world` lies"
        )
    ]
