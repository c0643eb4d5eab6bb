"""What a plug-in returns in another form than it should is its fault, by its name, and no bug of muarl's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from plugin_kit import Install
from plugin_packages import shop
from spec_files import spoil

from muarl.domain import Domain, load_domain
from muarl.errors import (
    EpisodeError,
    PluginError,
    PolicyError,
    SpecError,
    ToolServerError,
    UserError,
)
from muarl.messages import ToolCall
from muarl.policy import GenerateRequest
from muarl.policy.plugin import OpenedPolicy, Seat, open_policy
from muarl.render import Renderer, train_tokenizer
from muarl.reward.plugin import wants_said
from muarl.spec import PredicateSpec
from muarl.spec.engine import EngineSpec
from muarl.spec.user import UserSpec

POLICY = """\
import math
from contextlib import asynccontextmanager

from muarl.plugins import *


class Odd:
    policy_version = 0

    def __init__(self, seat):
        self.seat = seat

    async def generate(self, request):
        says = lambda **call: self.seat.says(
            Message("assistant", "", (ToolCall("1", "put", **call),)), request, Usage("me")
        )
        RETURN

    def load(self):
        LOAD


@asynccontextmanager
async def opened(options, seat):
    yield Odd(seat)


odd = PolicyPlugin(Options, opened)
"""
REQUEST = GenerateRequest([1, 2, 3], "d", 7, 6, 1.0, (0,))
WHOSE = "the policy 'odd' of shop-plugins 0.1"
SAMPLED = "return Generation([5, 0], [-1.0, -1.0], 'stop', 0"


async def policy_of(use: Any) -> Any:
    named = EngineSpec.model_validate({"plugin": "odd"}).plugin
    seat = Seat(None, 10, 1, Renderer(train_tokenizer([], vocab_size=300)))
    async with open_policy(named, seat) as policy:
        return await use(policy)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize(
    ("returns", "said"),
    [
        ("return says(arguments={'n': math.nan})", "whose arguments are no JSON: n is nan"),
        ("return says(arguments={'n': [math.inf]})", "whose arguments are no JSON: n.0 is inf"),
        ("return says(arguments={'n': 2**70})", "returned a message that is none"),
        ("return says(arguments={'n': object()})", "Object of type object is not JSON"),
        ("return says(arguments=3)", "returned a message that is none"),
        ("return None", "returned NoneType, not a Generation"),
        (SAMPLED + ", switches=3)", "returned switches 3; expected a tuple of VersionSwitch"),
        (SAMPLED + ", switches=(1,))", "returned switches (1,); expected a tuple of VersionSwitch"),
        (SAMPLED + ", usage=3)", "returned a usage that is none: it is a int"),
        (SAMPLED + ", message='hello')", "returned a message that is none: it is a str"),
        ("return Generation([5], [math.nan], 'stop', 0)", "returned a log-prob that is not finite"),
        ("return Generation(['a'], [-1.0], 'stop', 0)", "token ids that are not whole numbers"),
        ("return Generation([5], [-1.0], 'stop', None)", "returned versions [None] of its weights"),
    ],
)
def test_of_a_policy(install: Install, returns: str, said: str, backend: str) -> None:
    install(POLICY.replace("RETURN", returns), "muarl.policies: odd = odd")

    async def ask(policy: OpenedPolicy) -> None:
        await policy.generate(REQUEST)

    with pytest.raises(PolicyError) as caught:
        anyio.run(policy_of, ask, backend=backend)
    assert str(caught.value).startswith(WHOSE)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("load", "said"),
    [
        ("return 3", "load"),
        ("return {}['x']", "raised in load: KeyError: 'x'"),
        ("from muarl.policy import EngineLoad; return EngineLoad(1, 0, math.nan)", "load returned"),
        ("from muarl.policy import EngineLoad; return EngineLoad('1', 0, 0.5)", "raised in load"),
    ],
)
def test_of_a_policys_load(install: Install, load: str, said: str) -> None:
    install(POLICY.replace("LOAD", load), "muarl.policies: odd = odd")

    async def ask(policy: OpenedPolicy) -> None:
        policy.load()

    with pytest.raises(PluginError) as caught:
        anyio.run(policy_of, ask)
    assert str(caught.value).startswith(WHOSE)
    assert said in str(caught.value)


USER = """\
import math

from muarl.plugins import *


class User:
    def __init__(self, options, scene):
        scene.task.gold.clear()
        scene.persona.disclose["secret"] = "never"
        scene.domain.personas.clear()

    async def open(self):
        return UserReply("Hello", RESULT)

    async def reply(self, text): ...


odd = UserPlugin(Options, User)
"""


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("calls=(ToolCall('1', 'x', {'n': math.nan}),)", "is nan, which JSON has no number for"),
        ("calls=(ToolCall('1', 'x', {'n': 2**70}),)", "is no UserReply"),
    ],
)
def test_of_a_user(folder: Path, install: Install, result: str, said: str) -> None:
    install(USER.replace("RESULT", result), "muarl.users: odd = odd")
    user = user_of(load_domain(folder))
    with pytest.raises(UserError) as caught:
        anyio.run(user.open)
    assert str(caught.value).startswith("the user 'odd' of shop-plugins 0.1")
    assert said in str(caught.value)


def user_of(domain: Domain) -> Any:
    (task,) = domain.tasks("train")
    (kind,) = [UserSpec(plugin="odd")]
    return domain.user(kind, task, "plain", 0)


def test_what_a_user_changes_of_her_scene_is_hers_alone(folder: Path, install: Install) -> None:
    install(USER.replace("RESULT", ""), "muarl.users: odd = odd")
    domain = load_domain(folder)
    (before,) = [task.model_dump() for task in domain.tasks("train")]
    personas = domain.spec.model_dump()["personas"]
    user_of(domain)
    assert [task.model_dump() for task in domain.tasks("train")] == [before]
    assert domain.spec.model_dump()["personas"] == personas


OFFICE = ("muarl.worlds: orders = orders", "muarl.tool_servers: office = server")


def office(folder: Path) -> Domain:
    path = folder / "domain.yaml"
    spoil(path, "  python: tools.py:serve\n", "  plugin: {office: {done: Now}}\n")
    spoil(
        path,
        "  data:\n    orders:\n      W1: {status: pending}\n",
        "  plugin: {orders: {orders: 2}}\n",
    )
    return load_domain(folder)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            'ToolSpec("look", "Look.", PARAMETERS)',
            'ToolSpec(3, "Look.", PARAMETERS)',
            "must be text",
        ),
        (
            'ToolSpec("look", "Look.", PARAMETERS)',
            'ToolSpec("look", "Look.", {"n": float("nan")})',
            "is no JSON: 2.n is nan",
        ),
        ('ToolSpec("look", "Look.", PARAMETERS)', 'ToolSpec("look", "L", 3)', "a JSON Schema"),
        ("self.options.done + ", "'\\ud800' + ", "no text that can be written down"),
    ],
)
def test_of_a_tool_server(folder: Path, install: Install, old: str, new: str, said: str) -> None:
    assert old in shop()
    install(shop().replace(old, new), *OFFICE)
    domain = office(folder)

    async def call() -> None:
        async with domain.server.session(domain.base.fork()) as session:
            await session.call(ToolCall("1", "look", {"order_id": "W1"}))

    with pytest.raises(ToolServerError) as caught:
        anyio.run(call)
    assert "the tool server 'office'" in str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize("forks", [0, 2])
def test_of_a_world_that_cannot_be_forked(folder: Path, install: Install, forks: int) -> None:
    """At its first fork, which is tried as it is made, and at a later one."""
    code = shop().replace(
        "    def open(self):",
        f"""    forks = 0

    def fork(self, changes=None):
        Orders.forks += 1
        if Orders.forks > {forks}:
            raise RuntimeError("no more room")
        return World.fork(self, changes)

    def open(self):""",
    )
    install(code, *OFFICE)
    domain = office(folder)
    (task,) = domain.tasks("train")

    def forked_often() -> None:
        for _ in range(forks + 1):
            domain.world_for(task)

    with pytest.raises(SpecError) as caught:
        forked_often()
    assert "the world 'orders' of shop-plugins 0.1 raised" in str(caught.value)
    assert "RuntimeError: no more room" in str(caught.value)


@pytest.mark.parametrize("texts", ["'W1 is gone.'", "[3]", "3"])
def test_of_what_a_predicate_wants_said(install: Install, texts: str) -> None:
    install(
        "from muarl.plugins import *\n"
        f"odd = PredicatePlugin(Options, lambda options, evidence: True, says=lambda _: {texts})\n",
        "muarl.predicates: odd = odd",
    )
    named = PredicateSpec.model_validate({"plugin": "odd"}).plugin
    assert named is not None
    with pytest.raises(EpisodeError) as caught:
        wants_said(named)
    assert "the predicate 'odd' of shop-plugins 0.1: what it wants said" in str(caught.value)
