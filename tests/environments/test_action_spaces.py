"""What a text becomes in an environment's action space, and the spaces in which it can be no action."""

from __future__ import annotations

from pathlib import Path

import pytest
from environment_kit import WALK, Says, played, write_walk

from muarl.record import Outcome

NUMBERED = "arguments: {}"
CHOSEN = "choices: [left, right]"


def walk_in(space: str) -> str:
    """`Walk` with an action space, and with what `step` was given for its observation."""
    spaced = WALK.replace("import random\n", "import random\n\nfrom gymnasium import spaces\n", 1)
    spaced = spaced.replace(
        "self.worth = worth", f"self.worth = worth\n        self.action_space = {space}"
    )
    said = 'return f"You are at {self.at}.", '
    assert said in spaced
    return spaced.replace(said, 'return f"You did {action!r}.", ')


TAKEN = {
    "a number below zero": ("spaces.Discrete(3, start=-1)", "-1", "You did -1."),
    "a number with a sign": ("spaces.Discrete(3)", "+1", "You did 1."),
    "leading zeros": ("spaces.Discrete(3)", "0001", "You did 1."),
    "the number and not its first digits": ("spaces.Discrete(3)", "0000000012", "That is no action. Say a number from 0 to 2."),
    "more digits than Python reads": ("spaces.Discrete(3)", "0" * 5000, "That is no action. Say a number from 0 to 2."),
    "a text of the space": ("spaces.Text(5)", "north", "You did 'north'."),
    "a text that is too long": ("spaces.Text(5)", "northwards", "That is no action that can be taken here."),
}  # fmt: skip


@pytest.mark.anyio
@pytest.mark.parametrize("what", TAKEN)
async def test_a_text_is_the_action_that_it_says(tmp_path: Path, what: str) -> None:
    pytest.importorskip("gymnasium")
    space, said, answered = TAKEN[what]
    file = write_walk(tmp_path, walk_in(space), gymnasium=NUMBERED)
    (episode,) = await played(file, lambda: Says(said))
    assert episode.outcome is not Outcome.INFRA_FAULT, episode.error
    assert episode.turns[0].reply is not None
    assert episode.turns[0].reply.text == answered


NO_TEXT = {
    "Box": ("spaces.Box(-1.0, 1.0, (2,))", NUMBERED),
    "MultiDiscrete": ("spaces.MultiDiscrete([3, 2])", NUMBERED),
    "MultiBinary": ("spaces.MultiBinary(4)", NUMBERED),
    "Dict": ("spaces.Dict({'go': spaces.Discrete(2)})", NUMBERED),
    "Tuple": ("spaces.Tuple([spaces.Discrete(2)])", NUMBERED),
    "choices of a Box": ("spaces.Box(-1.0, 1.0, (2,))", CHOSEN),
    "choices of a Text": ("spaces.Text(5)", CHOSEN),
    "choices of a MultiDiscrete": ("spaces.MultiDiscrete([3, 2])", CHOSEN),
    "more choices than actions": ("spaces.Discrete(1)", CHOSEN),
}


@pytest.mark.anyio
@pytest.mark.parametrize("what", NO_TEXT)
async def test_a_space_in_which_no_text_is_an_action_is_its_fault_and_no_reward_L2(
    tmp_path: Path, what: str
) -> None:
    """Else every message of the policy would be refused, or one thing said and another done."""
    pytest.importorskip("gymnasium")
    space, gymnasium = NO_TEXT[what]
    (episode,) = await played(
        write_walk(tmp_path, walk_in(space), gymnasium=gymnasium), lambda: Says("1")
    )
    assert (episode.outcome, episode.reward) == (Outcome.INFRA_FAULT, None), episode.turns
    named = space.split("(")[0].removeprefix("spaces.")
    assert f"the environment's actions are {named}(" in (episode.error or "")
