"""Other words for tasks: what changes a fact is not taken, and counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import anyio
import pytest

from muarl.errors import EndpointError
from muarl.goals.rewording import Reworded, WordingGuard, reworded
from muarl.http.chat_client import ChatClient, ChatReply
from muarl.spec import FactSpec, GoldCallSpec, RequestSpec, TaskSpec, UserGoalSpec


def task(name: str, order: str, city: str) -> TaskSpec:
    facts = [FactSpec(id="order_id", value=order), FactSpec(id="city", value=city)]
    return TaskSpec(
        id=name,
        goal=f"You want order {order} sent to {city}. Your account is A7.",
        personas=["plain"],
        user=UserGoalSpec(
            requests=[RequestSpec(ask="redirect", facts=facts)],
            facts=[FactSpec(id="account", value="A7")],
        ),
        gold=[GoldCallSpec(tool="redirect", arguments={"order_id": order, "city": city})],
    )


TASKS = [task("one", "W17", "new york"), task("two", "W18", "oslo")]
GUARD = WordingGuard(TASKS)


@pytest.mark.parametrize(
    "text",
    [
        TASKS[0].goal,
        "Order W17 should go to New York; that is what you want. You have account A7.",
        "Have them send you order W17 to new york, please. Your account? A7.",
    ],
)
def test_other_words_for_the_same_facts_are_taken(text: str) -> None:
    assert GUARD.objection(TASKS[0], text) == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        ("You want W17.", "it is much shorter or longer"),
        (TASKS[0].goal * 3, "it is much shorter or longer"),
        ("She wants order W17 sent to new york. Her account is A7.", "it does not speak to her"),
        ("You want order W17 sent to new york, from an account.", "it leaves a fact out"),
        ("You want order W18 sent to new york. Your account is A7.", "it leaves a fact out"),
        (
            "Your account is A7. You want order W17 sent to new york.",
            "it tells facts in another order",
        ),
        ("You want order W17 sent to new york, not oslo. Account A7.", "it adds a fact"),
        ("You want order W17 sent to new york by 5 pm. Account A7.", "it adds a fact"),
        ("You want order W17 sent to new york. Account A7, ann@x.org.", "it adds a fact"),
    ],
)
def test_what_changes_a_fact_is_not_taken(text: str, why: str) -> None:
    assert GUARD.objection(TASKS[0], text) == why


class Said:
    """A model that says what a function of the goal and the try says."""

    def __init__(self, says: Callable[[str, int], str]) -> None:
        self.says = says
        self.asked: dict[str, int] = {}

    async def complete(self, messages: Any, **_: Any) -> ChatReply:
        goal = messages[-1].content
        number = self.asked[goal] = self.asked.get(goal, 0) + 1
        return ChatReply(self.says(goal, number), cut=False)


def worded(says: Callable[[str, int], str], backend: str = "asyncio") -> Reworded:
    async def main() -> Reworded:
        return await reworded(TASKS, cast(ChatClient, Said(says)))

    return anyio.run(main, backend=backend)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_wording_that_is_not_taken_is_asked_for_again(backend: str) -> None:
    def says(goal: str, number: int) -> str:
        return goal.replace("want", "would like") if number == 3 else "You want something."

    found = worded(says, backend)
    assert [task.goal for task in found.tasks] == [
        task.goal.replace("want", "would like") for task in TASKS
    ]
    assert (found.count, found.kept.total()) == (2, 0)


def test_after_three_tries_the_templates_words_stay_and_are_counted() -> None:
    found = worded(lambda goal, _: goal.replace("A7", "mine, of long standing"))
    assert found.tasks == TASKS
    assert (found.count, dict(found.kept)) == (0, {"it leaves a fact out": 2})


def test_the_same_words_are_no_other_words() -> None:
    found = worded(lambda goal, _: goal)
    assert (found.count, dict(found.kept)) == (0, {"it is in the same words": 2})


def test_what_a_model_thinks_is_no_part_of_the_wording() -> None:
    found = worded(lambda goal, _: f"<think>Hm, W99?</think>\n{goal.replace('want', 'need')}\n")
    assert found.tasks[0].goal == TASKS[0].goal.replace("want", "need")


def test_an_endpoint_that_fails_leaves_the_templates_words() -> None:
    def fails(goal: str, number: int) -> str:
        raise EndpointError("down")

    found = worded(fails)
    assert found.tasks == TASKS
    assert dict(found.kept) == {"the endpoint does not answer: down": 2}
