"""Environments that others have published are domains as they are, where they are installed.

pip install gem-llm reasoning-gym  # what CI does not: they pull in much that is not needed here
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from environment_kit import CAPS, Says

from muarl.data.proof import prove
from muarl.data.replay import replay_all
from muarl.domain import Agent, Domain, load_domain
from muarl.errors import SetupError
from muarl.messages import Message
from muarl.record import Episode, Outcome
from muarl.spec import TaskSpec
from muarl.spec.run import RolloutSpec
from muarl.testing.playing import play_agents

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # verifiers is asyncio only


@pytest.fixture(autouse=True)
def _path_kept() -> Iterator[None]:
    before = list(sys.path)
    yield
    sys.path[:] = before


GEM = """\
import gem
import gem.envs  # registers them


def make():
    return gem.make("game:GuessTheNumber-v0-easy")
"""


class Halves:
    """Guesses the middle of what is left of 1 to 10."""

    def __init__(self) -> None:
        self._left = range(1, 11)

    def act(self, history: Sequence[Message]) -> Message:
        said = history[-1].content
        if guess := re.search(r"number is (higher|lower) than (\d+)", said):
            number = int(guess[2])
            low, high = self._left.start, self._left.stop
            self._left = range(number + 1, high) if guess[1] == "higher" else range(low, number)
        middle = self._left[(len(self._left) - 1) // 2]
        return Message("assistant", f"\\boxed{{{middle}}}")


async def test_a_game_of_gem_llm_is_one(tmp_path: Path) -> None:
    """One after another: as a game begins it seeds Python's own `random`, which all of them share."""
    pytest.importorskip("gem.envs", reason="gem-llm is not installed")
    (tmp_path / "game.py").write_text(GEM)
    (tmp_path / "domain.yaml").write_text(
        "version: 1\nid: guess\nsummary: A game.\nrules: Play.\n"
        "environment: {gymnasium: {make: 'game.py:make'}}\n"
        "tasks: {splits: {train: 30, held_out: 3}}\nfloor: 1\n"
    )
    domain = load_domain(tmp_path / "domain.yaml")
    episodes = await _all(domain, Halves, CAPS.model_copy(update={"concurrency": 1}))
    assert [(e.outcome, e.reward) for e in episodes] == [(Outcome.COMPLETED, 1.0)] * 30
    assert len({len(e.turns) for e in episodes}) > 2
    differences: list[str] = []
    await replay_all(domain, episodes, lambda _, difference: differences.append(difference))
    assert differences == []


SUMS = """\
from verifiers.envs.integrations.reasoninggym_env import ReasoningGymEnv


def load_environment():
    return ReasoningGymEnv("chain_sum", num_train_examples=8, num_eval_examples=2)
"""


class Adds:
    """Adds up, and answers in the form that is asked for."""

    def act(self, history: Sequence[Message]) -> Message:
        asked = re.search(r"[-+ 0-9]+(?= =)", history[-1].content)
        assert asked, history[-1].content
        terms = re.findall(r"[-+]?\d+", asked[0].replace(" ", ""))
        return Message("assistant", f"<answer>{sum(map(int, terms))}</answer>")


async def test_the_reasoning_gym_of_verifiers_is_one(tmp_path: Path) -> None:
    gym = pytest.importorskip("reasoning_gym", reason="reasoning-gym is not installed")
    from muarl.environments.their_verifiers import their_library

    try:
        their_library()
    except SetupError as error:
        pytest.skip(str(error))
    (tmp_path / "sums.py").write_text(SUMS)
    rules = json.dumps(gym.utils.SYSTEM_PROMPTS["default"])
    (tmp_path / "domain.yaml").write_text(
        f"version: 1\nid: sums\nsummary: Sums.\nrules: {rules}\n"
        "environment: {verifiers: {load: 'sums.py:load_environment', evaluation: [held_out]}}\n"
        "tasks: {splits: {train: 8, held_out: 2}}\nfloor: 1\n"
    )
    domain = load_domain(tmp_path / "domain.yaml")
    right, wrong = await _all(domain, Adds), await _all(domain, lambda: Says("I do not know."))
    assert [e.reward for e in right] == [1.0] * 8, [e.error for e in right]
    assert {e.reward for e in wrong} <= {0.0, 0.01}, "it gives a little for an answer that is wrong"
    after = {change.path: change.after for change in right[0].changes}
    assert after["environment.metrics"]["check_answer_reward_func"] == 1.0
    assert not (await prove(domain, dialogues=4)).findings


async def _all(
    domain: Domain, agent: Callable[[], Agent], limits: RolloutSpec = CAPS
) -> list[Episode]:
    def agent_for(task: TaskSpec, rng: random.Random) -> Agent:
        del task, rng
        return agent()

    return await play_agents(domain, domain.tasks("train"), agent_for, limits=limits)
