"""Domains that are environments in Gymnasium's form, for tests."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import dedent

from muarl.domain import Agent, Domain, load_domain
from muarl.messages import Message, ToolCall
from muarl.record import Episode
from muarl.spec import TaskSpec
from muarl.spec.run import RolloutSpec
from muarl.testing.playing import play_agents

CAPS = RolloutSpec(max_turns=12, max_tokens=100_000, context_tokens=1_000_000)

WALK = """\
import random


class Walk:
    '''Two steps to the right end it well; one to the left ends it badly. A step is worth 0.5.'''

    closed = []

    def __init__(self, worth=0.5):
        self.worth = worth

    def reset(self, *, seed=None, options=None):
        self.at = 0
        self.mood = random.Random(seed).choice(["windy", "calm", "grey"])
        return f"It is {self.mood}. Where to?", {}

    def step(self, action):
        self.at += 1 if action == 1 else -1
        over = self.at in (-1, 2)
        return f"You are at {self.at}.", self.worth if action == 1 else 0.0, over, False, {}

    def close(self):
        self.closed.append(self.mood)
"""


def write_walk(
    folder: Path, code: str = WALK, *, more: str = "", gymnasium: str = "choices: [left, right]"
) -> Path:
    """A domain whose environment is `Walk` of some code; gives its file."""
    folder.mkdir(exist_ok=True)
    (folder / "walk.py").write_text(dedent(code))
    file = folder / "domain.yaml"
    file.write_text(
        dedent(f"""\
        version: 1
        id: walk
        summary: A walk.
        rules: Walk.
        environment: {{gymnasium: {{make: "walk.py:Walk", {gymnasium}}}}}
        tasks: {{splits: {{train: 6, held_out: 3}}}}
        floor: 1
        """)
        + dedent(more)
    )
    return file


class Says:
    """An agent that sends its messages in order, and then the last one again."""

    def __init__(self, *messages: str | Message | Sequence[str]) -> None:
        self._messages = list(messages)
        self._sent = 0

    def act(self, history: Sequence[Message]) -> Message:
        del history
        said = self._messages[min(self._sent, len(self._messages) - 1)]
        self._sent += 1
        if isinstance(said, Message):
            return said
        if isinstance(said, str):
            return Message("assistant", said)
        return calls(*(("act", {"action": action}) for action in said), turn=self._sent)


def calls(*made: tuple[str, dict[str, object]], turn: int = 0) -> Message:
    """A message that makes calls."""
    each = tuple(ToolCall(f"c{turn}_{i}", *call) for i, call in enumerate(made))
    return Message("assistant", "", each)


async def played(
    domain: Domain | Path, agent: Callable[[], Agent], *, tasks: int = 1, caps: RolloutSpec = CAPS
) -> list[Episode]:
    """Dialogues of some agents with a domain's environments."""
    domain = domain if isinstance(domain, Domain) else load_domain(domain)

    def agent_for(task: TaskSpec, rng: random.Random) -> Agent:
        del task, rng
        return agent()

    return await play_agents(domain, domain.tasks("train")[:tasks], agent_for, limits=caps)
