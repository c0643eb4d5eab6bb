"""T12.1: what is offered and said is perturbed, what is meant is the same, and gold calls earn 1."""

from __future__ import annotations

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from perturb_kit import domain, first_tasks

from muarl.messages import Message, ToolCall
from muarl.perturb import Perturbations
from muarl.perturb.dice import Dice
from muarl.perturb.message import needed, perturbed
from muarl.record import Turn, UserReply
from muarl.spec import PerturbSpec, TaskSpec
from muarl.spec.perturb import ACTION, METADATA, OBSERVATION

STATIC = (*OBSERVATION, *ACTION, *METADATA)


async def gold_reward(name: str, task: TaskSpec, spec: PerturbSpec, seed: int) -> float:
    """What the gold calls earn that are made by the names which the policy is shown."""
    play = domain(name)
    perturbations = Perturbations(spec, task, offer_seed=seed, seed=seed)
    world = play.world_for(task)
    initial = world.fork()
    turns = []
    async with perturbations.server(play.server).session(world) as session:
        shown = {perturbations.true_name(tool.name): tool.name for tool in session.tools}
        for number, gold in enumerate(task.gold):
            call = ToolCall(f"gold_{number}", shown[gold.tool], gold.arguments)
            result = await session.call(call)
            assert not result.is_error, (result, session.tools)
            assert result.name == gold.tool
            message = Message("assistant", "", tool_calls=(call,))
            turns.append(Turn(message, 0, 0, 0, "stop", 0, results=[result]))
    verdict = await play.judge(task, world, turns, UserReply(task.goal), initial=initial)
    return verdict.reward


@pytest.mark.parametrize("name", ["desk", "library"])
@pytest.mark.parametrize("kind", [*STATIC, "all"])
@settings(max_examples=4)
@given(seed=st.integers(0, 2**62), which=st.integers(0, 5))
def test_gold_calls_earn_1_under_every_kind(kind: str, name: str, seed: int, which: int) -> None:
    task = first_tasks(name, 6)[which]
    whole = {"observation": 1.0, "action": 1.0, "metadata": 1.0}
    spec = PerturbSpec.model_validate(whole if kind == "all" else {kind: 1.0})
    assert anyio.run(gold_reward, name, task, spec, seed) == 1.0


@settings(max_examples=150)
@given(seed=st.integers(0, 2**62), which=st.integers(0, 39), typo=st.booleans())
def test_what_a_task_needs_is_in_the_message_as_it_was(seed: int, which: int, typo: bool) -> None:
    task = first_tasks("desk", 40)[which]
    assert task.user is not None
    facts = [fact.value for wish in task.user.requests for fact in wish.all_facts()]
    text = f"Hello, could you please cancel {' and '.join(facts)} for me? I do not know Q17x."
    dice = Dice(PerturbSpec(rephrase_message=1, typo=1 if typo else None), seed)
    said, acted = perturbed(text, 0, needed(task), dice)
    assert said != text
    assert acted == ["rephrase_message", "typo"][: 1 + typo]
    assert [w for w in said.split() if w in facts] == [w for w in text.split() if w in facts]
    assert "Q17x" in said


def test_a_value_that_is_a_word_is_neither_misspelt_nor_replaced() -> None:
    kept = {"hello street", "cancel"}
    for seed in range(50):
        dice = Dice(PerturbSpec(rephrase_message=1, typo=1), seed)
        said, _ = perturbed("hello hello street, cancel", 0, kept, dice)
        assert said.endswith(" hello street, cancel")


def test_a_message_without_known_words_has_no_chance() -> None:
    dice = Dice(PerturbSpec(rephrase_message=1), 0)
    assert perturbed("Guten Tag, Q12", 0, (), dice) == ("Guten Tag, Q12", [])


@pytest.mark.parametrize("words", [0, 1, 3, 10, 11, 25])
def test_there_is_a_slip_in_each_ten_words_begun(words: int) -> None:
    text = " ".join(["order"] * words)
    said, acted = perturbed(text, 0, (), Dice(PerturbSpec(typo=1), 3))
    slips = sum(word != "order" for word in said.split())
    assert slips == -(-words // 10)
    assert acted == (["typo"] if words else [])
