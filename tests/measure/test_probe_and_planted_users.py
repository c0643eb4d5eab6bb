from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import anyio
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from _planted_users import OWN_FIGURE, USERS, Panel
from measure_kit import CITY, ORDER

from muarl.measure import Transcript, measure
from muarl.measure.probe import FalseClaims
from muarl.messages import Message, ToolCall
from muarl.scheduler.journal import Unjournaled

TASKS = 24


class Says:
    """An agent that says one thing after the other."""

    def __init__(self, *messages: Message) -> None:
        self._messages = list(messages)

    def act(self, history: Sequence[Message]) -> Message:
        del history
        return self._messages.pop(0)


def say(text: str) -> Message:
    return Message("assistant", text)


@pytest.mark.parametrize("seed", range(8))
def test_one_question_for_a_yes_is_put_with_a_wrong_value_first(seed: int) -> None:
    call = Message("assistant", "", tool_calls=(ToolCall("1", "get", {"order_id": "W41"}),))
    true = say("Send W41 to oslo. Shall I go ahead?")
    agent = FalseClaims(
        Says(say("Which order?"), call, true, true), (ORDER, CITY), random.Random(seed)
    )
    assert agent.act([]).content == "Which order?"
    assert agent.act([]) is call
    claimed = agent.act([]).content
    assert claimed.endswith(". Shall I go ahead?")
    order, city = claimed.split()[1], claimed.split()[3].rstrip(".")
    assert (order == "W41") != (city == "oslo")
    assert city in CITY.others
    assert order[0].isupper()
    assert order[1:].isdecimal()
    assert agent.act([]) is true
    assert agent.act([]) is true, "one claim a dialogue"


def test_a_question_that_names_nothing_of_hers_is_left_as_it_is() -> None:
    question = say("Shall I go ahead?")
    assert FalseClaims(Says(question), (ORDER,), random.Random(0)).act([]) is question


@pytest.fixture(scope="module")
def played() -> dict[str, list[Transcript]]:
    async def main() -> dict[str, list[Transcript]]:
        many = Panel.load(200, seed=0)
        refused = [task for task in many.tasks if not task.gold]
        panel = replace(many, tasks=[*many.tasks[:16], *refused[: TASKS - 16]])
        return {name: await panel.play(name, Unjournaled()) for name in USERS}

    return anyio.run(main)


def test_the_reward_sees_none_of_the_bad_users(played: dict[str, list[Transcript]]) -> None:
    for transcripts in played.values():
        assert len(transcripts) == TASKS
        assert fmean(t.reward for t in transcripts if t.reward is not None) == 1


@pytest.mark.parametrize("name", OWN_FIGURE)
def test_each_bad_user_is_worst_by_her_own_figure(
    played: dict[str, list[Transcript]], name: str
) -> None:
    figure = OWN_FIGURE[name]
    values = {
        user: measure(transcripts, resamples=2).figures[figure].value or 0.0
        for user, transcripts in played.items()
    }
    assert values.pop(name) > max(values.values())
    assert values["honest"] == 0
