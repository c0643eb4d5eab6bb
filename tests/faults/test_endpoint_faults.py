"""Endpoints that fail, over real sockets: that of an LLM user, and that of the policy."""

from __future__ import annotations

from typing import Any

import fault_kit
import pytest
from fault_kit import RATE, keys_of, num_lost, play
from noting_vllm import NotingVllm

from muarl.domain import Domain, load_domain
from muarl.http.breaker import Breaker
from muarl.policy.vllm_server import VllmServerPolicy
from muarl.spec.user import LlmUserSpec, UserSpec
from muarl.testing import HTTP_FAULTS, KEPT_FAULTS, FaultPlan, chat_answer, http_server
from muarl.testing.http_server import HttpFault, KeptFault

pytestmark = pytest.mark.anyio

TASKS = fault_kit.TASKS[:3]
EVERY = tuple(HTTP_FAULTS)


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Sockets need real time."""
    return str(request.param)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorter waits, in the same proportions."""
    monkeypatch.setattr("muarl.http.retry._FIRST_WAIT_S", 0.01)
    monkeypatch.setattr("muarl.policy.vllm_message._LOOK_AGAIN_S", 0.02)
    rests = Breaker.__init__.__kwdefaults__
    assert rests is not None
    monkeypatch.setitem(rests, "first_rest_s", rests["first_rest_s"] / 50)
    monkeypatch.setitem(rests, "longest_rest_s", rests["longest_rest_s"] / 50)


def say(messages: list[dict[str, Any]]) -> str:
    """A user who says what she wants, and leaves as soon as she is answered."""
    return "Note it." if len(messages) == 2 else "Thanks.\n###STOP###"


async def with_llm_user(
    domain: Domain, plan: FaultPlan[HttpFault], timeout_s: float, **given: Any
) -> int:
    """Lost dialogues of a round whose users are behind an endpoint that fails by a plan."""
    bare = load_domain(domain.folder)  # without the fixture's own users
    async with http_server(chat_answer(say), plan, slow_s=0.1, retry_after_s=0.05) as endpoint:
        llm = LlmUserSpec(base_url=f"{endpoint.url}/v1", model="user", timeout_s=timeout_s)
        lost = num_lost(await play(bare, user=UserSpec(llm=llm), tasks=TASKS, **given))
        assert plan.drawn.total() > 0
        return lost


@pytest.mark.parametrize("fault", HTTP_FAULTS)
async def test_no_failure_of_a_users_endpoint_becomes_a_reward_L2(
    domain: Domain, fault: HttpFault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muarl.http.chat_client._TRIES", 1)
    plan = FaultPlan([fault], rate=RATE, seed=1)
    lost = await with_llm_user(domain, plan, timeout_s=1.0 if fault == "hang" else 60.0)
    assert (lost > 0) == (fault != "slow")


async def test_a_users_endpoint_is_asked_again_until_it_answers(domain: Domain) -> None:
    plan = FaultPlan(EVERY, rate=RATE, seed=1)
    assert await with_llm_user(domain, plan, timeout_s=20.0, attempts=3, concurrency=8) <= 2
    assert plan.drawn.total() > 5


async def with_policy_endpoint(
    domain: Domain, plan: FaultPlan[Any], timeout_s: float, *, keep: bool = False, **given: Any
) -> int:
    """Lost dialogues of a round whose policy is behind an endpoint that fails by a plan."""
    vllm = NotingVllm(keys_of(TASKS))
    plan.rate = 0.0
    settings: dict[str, Any] = {"slow_s": 0.1, "retry_after_s": 0.05, "keep": keep}
    async with http_server(vllm.answer, plan, **settings) as vllm.server:
        async with VllmServerPolicy([vllm.url], timeout_s=timeout_s) as policy:
            plan.rate = RATE
            groups = await play(domain, policy, tasks=TASKS, **given)
            plan.rate = 0.0
        assert plan.drawn.total() > 0
        return num_lost(groups)


@pytest.mark.parametrize("fault", KEPT_FAULTS)
async def test_on_kept_connections_no_message_is_lost_or_taken_for_anothers_L2(
    domain: Domain, fault: KeptFault
) -> None:
    plan = FaultPlan([fault], rate=RATE, seed=1)
    assert await with_policy_endpoint(domain, plan, timeout_s=20.0, keep=True) == 0


@pytest.mark.parametrize("fault", HTTP_FAULTS)
async def test_no_failure_of_a_policys_endpoint_becomes_a_reward_L2(
    domain: Domain, fault: HttpFault
) -> None:
    plan = FaultPlan([fault], rate=RATE, seed=1)
    seconds = {"hang": 1.0, "refused": 5.0}.get(fault, 60.0)
    lost = await with_policy_endpoint(domain, plan, timeout_s=seconds)
    if fault == "hang":
        assert lost > 0
    elif fault != "refused":  # then the endpoint is away for all, and its circuit breaker rests
        assert lost == 0, "a message is asked for again until its deadline"


async def test_a_policys_endpoint_is_asked_again_until_it_answers(domain: Domain) -> None:
    plan = FaultPlan(EVERY, rate=RATE, seed=1)
    assert await with_policy_endpoint(domain, plan, timeout_s=20.0, attempts=4, concurrency=8) <= 2
    assert len(plan.drawn) > 6
