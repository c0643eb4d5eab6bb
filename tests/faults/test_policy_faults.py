"""Engines that fail: lost dialogues are reported, and change nothing for the others."""

from __future__ import annotations

import pytest
from fault_kit import RATE, noting_policy, num_lost, play

from muarl.domain import Domain
from muarl.record import Outcome
from muarl.testing import POLICY_FAULTS, FaultPlan, FaultyPolicy, virtual_time
from muarl.testing.faulty_policy import PolicyFault

pytestmark = pytest.mark.anyio

# A dialogue that hangs is over at its deadline, which a slow machine may pass with no fault at all.
in_virtual_time = pytest.mark.parametrize("anyio_backend", [virtual_time()], ids=["virtual"])


def faulty(*faults: PolicyFault, rate: float = RATE) -> FaultyPolicy:
    return FaultyPolicy(noting_policy(), FaultPlan(faults, rate=rate, seed=1))


async def test_without_faults_every_dialogue_earns_what_it_deserves(domain: Domain) -> None:
    assert num_lost(await play(domain)) == 0


async def loses_only_its_own_dialogues(domain: Domain, fault: PolicyFault) -> None:
    policy = faulty(fault)
    groups = await play(domain, policy)
    assert num_lost(groups) == policy.plan.drawn[fault] > 5, "each failure costs its own dialogue"
    lost = [e for group in groups for e in group.episodes if e.outcome.is_fault]
    assert {episode.outcome for episode in lost} == {Outcome.INFRA_FAULT}
    assert policy.live == 0


@pytest.mark.parametrize("fault", [fault for fault in POLICY_FAULTS if fault != "hang"])
async def test_no_failure_of_an_engine_becomes_a_reward_L2(
    domain: Domain, fault: PolicyFault
) -> None:
    await loses_only_its_own_dialogues(domain, fault)


@in_virtual_time
async def test_no_message_that_never_comes_becomes_a_reward_L2(domain: Domain) -> None:
    await loses_only_its_own_dialogues(domain, "hang")


@in_virtual_time
async def test_most_dialogues_survive_all_failures_together_by_being_tried_again_L2(
    domain: Domain,
) -> None:
    once, thrice = faulty(*POLICY_FAULTS), faulty(*POLICY_FAULTS)
    lost_at_once = num_lost(await play(domain, once))
    assert lost_at_once > num_lost(await play(domain, thrice, attempts=4))
    assert set(thrice.plan.drawn) >= set(once.plan.drawn)


async def test_an_engine_that_always_fails_gives_no_advantage_at_all(domain: Domain) -> None:
    groups = await play(domain, faulty("error", rate=1.0), attempts=2)
    assert all(group.num_faults == len(group.episodes) for group in groups)


async def test_the_same_plan_loses_the_same_dialogues_L5(domain: Domain) -> None:
    async def lost(concurrency: int) -> list[str]:
        groups = await play(domain, faulty("error", "nan_logprob"), concurrency=concurrency)
        return [str(e.key) for group in groups for e in group.episodes if e.outcome.is_fault]

    assert await lost(1) == await lost(48)
