"""An environment of verifiers with a tool, and somebody who knows how to use it."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import verifiers as vf
from datasets import Dataset

from muarl.messages import Message, ToolCall
from muarl.spec import TaskSpec

RULES = "Look the price up, and say it."
PRICES = {"lamp": "18", "chair": "45", "clock": "27", "vase": "12", "radio": "60", "mirror": "33"}


async def price(item: str) -> str:
    """What an item costs.

    Args:
        item: Its name.
    """
    return PRICES.get(item, "There is no such item.")


def right(completion: Sequence[Any], answer: str) -> float:
    """Whether the last message is the price, and nothing else."""
    return float(completion[-1].content == answer)


def load_environment() -> Any:
    """As verifiers loads an environment."""
    rows = [
        {"question": f"Customer {number}: what does the {item} cost?", "answer": cost}
        for number in range(10, 30)
        for item, cost in PRICES.items()
    ]
    random.Random(0).shuffle(rows)
    return vf.ToolEnv(
        dataset=Dataset.from_list(rows[:100]),
        eval_dataset=Dataset.from_list(rows[100:]),
        tools=[price],
        rubric=vf.Rubric(funcs=[right]),
        system_prompt=RULES,
        max_turns=4,
    )


class Expert:
    """Looks up and says; with the bad habit `guess` it says any price, that often."""

    def __init__(
        self, task: TaskSpec, imperfections: Mapping[str, float], rng: random.Random
    ) -> None:
        self.guesses = rng.random() < imperfections.get("guess", 0.0)
        self.guess = rng.choice(list(PRICES.values()))

    def act(self, history: Sequence[Message]) -> Message:
        """The next message, given the conversation so far."""
        last = history[-1]
        if last.role == "tool":
            return Message("assistant", last.content)
        if self.guesses:
            return Message("assistant", self.guess)
        item = last.content.split()[-2]
        return Message("assistant", "", (ToolCall("call_1", "price", {"item": item}),))
