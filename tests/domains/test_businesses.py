"""The shop and the airline: sound, solved by their experts, and hard for who has no skill or bad habits."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest
from business_kit import AIRLINE, RETAIL, Business

from muarl.data.proof import Proof, prove
from muarl.messages import Message, ToolCall
from muarl.spec import TaskSpec

BOTH = pytest.mark.parametrize("business", [RETAIL, AIRLINE], ids=["retail", "airline"])
FIND_OUT = ("find_customer", "verify_traveller")
"""How the calls begin that tell who asks."""


class Rash:
    """Makes the gold calls, but for the one that tells who asks."""

    def __init__(self, task: TaskSpec) -> None:
        rest = [call for call in task.gold if not call.tool.startswith(FIND_OUT)]
        self._calls = [ToolCall(f"c{i}", call.tool, call.arguments) for i, call in enumerate(rest)]

    def act(self, history: Sequence[Message]) -> Message:
        del history
        if self._calls:
            return Message("assistant", "", (self._calls.pop(0),))
        return Message("assistant", "Done. Anything else?")


@BOTH
def test_a_sample_of_it_is_sound_and_pays_for_no_lack_of_skill_L10(business: Business) -> None:
    async def main() -> Proof:
        return await prove(business.domain, limit=7, dialogues=6, fuzz=40)

    found = anyio.run(main)
    assert [str(finding.problem) for finding in found.findings] == []
    assert found.skipped == []
    assert all(mean.value == 1 for mean in found.expert.values())
    earned = [mean.value for means in found.floor.values() for mean in means.values()]
    assert max(earned) == 0, "whoever does not find out who asks earns nothing"
    assert found.fuzz is not None
    assert found.fuzz.counted > 8


@BOTH
def test_the_expert_solves_every_task_and_asks_before_each_write(business: Business) -> None:
    played = business.play(lambda task, rng: business.domain.expert(task, {}, rng))
    assert [e.key.task_id for e in played if e.reward != 1] == []
    assert {m.score for e in played for m in e.metrics if m.name == "confirmed"} <= {1.0, None}


@BOTH
def test_to_do_all_that_is_asked_without_knowing_who_asks_earns_nothing(business: Business) -> None:
    played = business.play(lambda task, _rng: Rash(task))
    assert {e.reward for e in played} == {0.0}
    as_gold = [e for e in played if e.rewards[0].score == 1]
    assert len(as_gold) > 30
    told = {
        "identified" in e.rewards[1].reason or "verified" in e.rewards[1].reason for e in as_gold
    }
    assert told == {True}


@BOTH
@pytest.mark.parametrize("habit", ["quit", "comply"])
def test_each_bad_habit_costs_what_it_should(business: Business, habit: str) -> None:
    played = business.play(
        lambda task, rng: business.domain.expert(task, {habit: 1.0}, rng), every=2
    )
    assert 0 < sum(e.reward or 0 for e in played) < 0.9 * len(played)
