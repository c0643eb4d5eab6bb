"""Perturbations in whole dialogues: what is recorded, what is scored, what can be replayed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import anyio
import pytest
from msgspec import structs
from perturb_kit import Retrying, domain, experts, first_tasks, tool

from muarl.data.replay import replay_problem
from muarl.domain import Agent, Domain
from muarl.messages import Message, ToolCall, ToolResult
from muarl.perturb import Perturbations
from muarl.perturb.dice import Dice
from muarl.perturb.failures import failure
from muarl.record import Episode, Outcome, Perturbed
from muarl.record.codec import decode_episode, encode_episode
from muarl.spec import PerturbSpec
from muarl.spec.perturb import FAMILIES, TRANSITION
from muarl.spec.run import RolloutSpec
from muarl.testing import play_agents

EVERYTHING = PerturbSpec(observation=0.8, action=0.7, metadata=0.4, transition=0.25)


def played(
    perturb: PerturbSpec | None,
    *,
    count: int = 20,
    retry: bool = True,
    seed: int = 0,
    group_size: int = 1,
    vary: str = "seed",
    concurrency: int = 16,
    backend: str = "asyncio",
    agents: Callable[..., Agent] | None = None,
) -> list[Episode]:
    limits = RolloutSpec.model_validate(
        {"max_turns": 100, "max_tokens": 100_000, "context_tokens": 1_000_000, "vary": vary}
    )
    run = partial(
        play_agents,
        domain("desk"),
        first_tasks("desk", count),
        agents or experts("desk", retry=retry),
        limits=limits,
        group_size=group_size,
        seed=seed,
        perturb=perturb,
        concurrency=concurrency,
    )
    return anyio.run(run, backend=backend)


def test_calls_fail_at_the_rate_that_is_asked_for() -> None:
    """An exact count of a fixed seed, within three standard deviations of what is asked for."""
    dice = Dice(PerturbSpec(transition=0.24), 11)
    call = ToolCall("c", "get_order", {"order_id": "Q12"})
    found = Counter(
        answer.instead
        for number in range(3000)
        if (answer := failure(call, number, dice)) is not None
    )
    assert found.keys() == set(TRANSITION)
    assert found.total() == 727
    assert abs(found.total() - 720) < 3 * (3000 * 0.24 * 0.76) ** 0.5
    for kind in TRANSITION:
        assert abs(found[kind] - 120) < 3 * (3000 * 0.04 * 0.96) ** 0.5, kind


def test_who_tries_again_recovers_and_who_does_not_fails() -> None:
    """T12.2: at a rate of 0.3, at least 95 % of the dialogues of an agent that can try again."""
    faulty = PerturbSpec(transition=0.3)
    clean = played(None, count=60, retry=False)
    again = played(faulty, count=60)
    once = played(faulty, count=60, retry=False)
    assert all(episode.reward == 1.0 for episode in clean)
    recovered = sum(episode.reward == 1.0 for episode in again)
    assert recovered >= 0.95 * len(again)
    assert sum(e.reward == 1.0 for e in once) < 0.8 * len(once)
    assert not any(e.outcome.is_fault for e in [*again, *once]), "law L2: a fault of the task's own"
    calls = [result for e in again for turn in e.turns for result in turn.results]
    failed = sum(bool(result.instead) for result in calls)
    assert abs(failed - 0.3 * len(calls)) < 3 * (len(calls) * 0.21) ** 0.5


def test_a_call_that_fails_leaves_the_world_alone() -> None:
    episodes = played(PerturbSpec(transition=1), count=12, retry=False)
    assert all(episode.changes == [] for episode in episodes)
    answers = [r for e in episodes for turn in e.turns for r in turn.results]
    assert answers
    assert all(answer.is_error and answer.instead in TRANSITION for answer in answers)


def test_the_same_seed_gives_the_same_perturbations_whatever_runs_beside_them() -> None:
    one = [encode_episode(e) for e in played(EVERYTHING, concurrency=1)]
    many = [encode_episode(e) for e in played(EVERYTHING, concurrency=16, backend="trio")]
    others = [encode_episode(e) for e in played(EVERYTHING, seed=1)]
    assert one == many
    assert one != others


def test_every_kind_acts_is_recorded_and_read_back() -> None:
    found: Counter[str] = Counter()
    for episode in played(EVERYTHING, count=60):
        found += episode.perturbations()
        assert decode_episode(encode_episode(episode)) == episode
    assert found.keys() == {kind for kinds in FAMILIES.values() for kind in kinds}


def test_what_is_not_perturbed_leaves_no_trace() -> None:
    for perturb in (None, PerturbSpec(), PerturbSpec(typo=0)):
        (episode,) = played(perturb, count=1)
        assert episode.perturbations() == {}
        record = encode_episode(episode)
        for word in (b"perturbed", b"instead", b"meant"):
            assert word not in record


@pytest.mark.parametrize("seed", range(3))
def test_perturbed_episodes_can_be_replayed(seed: int) -> None:
    tasks = {task.id: task for task in first_tasks("desk", 20)}
    for episode in played(EVERYTHING, seed=seed):
        task = tasks[episode.key.task_id]
        assert anyio.run(replay_problem, domain("desk"), task, episode) is None


def test_what_she_meant_stands_beside_what_is_read() -> None:
    plain = played(None, count=8, retry=False)
    noisy = played(PerturbSpec(typo=1), count=8, retry=False)
    assert [e.opening.text for e in plain] == [e.opening.meant for e in noisy]
    for episode in noisy:
        assert episode.opening.perturbed == ("typo",)
        assert episode.opening.text != episode.opening.meant


def test_a_group_is_offered_the_same_tools_and_other_things_happen_to_each() -> None:
    episodes = played(EVERYTHING, count=4, group_size=4)
    for start in range(0, 16, 4):
        group = episodes[start : start + 4]
        assert all(e.tools == group[0].tools and e.perturbed == group[0].perturbed for e in group)
    texts = {e.opening.text for e in episodes[:4]}
    assert len(texts) == 4


def test_where_nothing_varies_in_a_group_nor_do_perturbations() -> None:
    episodes = played(EVERYTHING, count=4, group_size=3, vary="nothing")
    for start in range(0, 12, 3):
        group = episodes[start : start + 3]
        alike = {encode_episode(structs.replace(e, key=group[0].key)) for e in group}
        assert len(alike) == 1


class Redundant:
    """Calls `transfer_to_human` by the name of its double."""

    def __init__(self, name: str) -> None:
        self._name = name

    def act(self, history: Sequence[Message]) -> Message:
        return Message("assistant", "", tool_calls=(ToolCall("c", self._name),))


def test_a_double_ends_a_dialogue_like_the_tool_itself_and_counts_as_it() -> None:
    spec = PerturbSpec(redundant=1)
    (seen,) = played(spec, count=1, retry=False)
    names = {each.name for each in seen.tools}
    double = next(n for n in names if "transfer_to_human" in n and n != "transfer_to_human")
    (episode,) = played(spec, count=1, agents=lambda _task, _rng: Redundant(double))
    assert episode.outcome is Outcome.COMPLETED
    assert len(episode.turns) == 1
    assert episode.calls() == [("transfer_to_human", {}, False)]
    (turn,) = episode.turns
    assert turn.message.tool_calls[0].name == double, "what was sampled stays as it was"
    assert Perturbed("redundant", "transfer_to_human") in episode.perturbed


def test_a_write_by_another_name_is_a_write_an_effect_and_a_change() -> None:
    """`writes`, and what a fault after an effect means, go by the tool's own name."""
    located = domain("desk").located
    tools = located.spec.model_dump()["tools"]
    outside = [tools[0] | {"external": True}]
    spec = located.spec.model_validate(located.spec.model_dump() | {"tools": outside})
    desk = Domain(replace(located, spec=spec))
    task = next(task for task in desk.tasks("train") if len(task.gold) == 1)
    (gold,) = task.gold

    class Writes:
        """Makes the gold call by the name of the double."""

        def __init__(self, name: str) -> None:
            self._name = name

        def act(self, history: Sequence[Message]) -> Message:
            made = history[-1].role == "tool"
            call = ToolCall("c", self._name, gold.arguments)
            return Message("assistant", "Done." if made else "", tool_calls=() if made else (call,))

    def run(name: str) -> Episode:
        limits = RolloutSpec(max_turns=2, max_tokens=10_000, context_tokens=100_000)
        play = partial(
            play_agents,
            *(desk, [task], lambda _task, _rng: Writes(name)),
            limits=limits,
            perturb=PerturbSpec(redundant=1),
        )
        (episode,) = anyio.run(play)
        return episode

    first = run("no such tool")
    assert first.effect is None
    double = next(t.name for t in first.tools if gold.tool in t.name and t.name != gold.tool)
    episode = run(double)
    assert episode.effect == gold.tool
    assert episode.reward == 1.0
    assert [metric.score for metric in episode.metrics] == [0.0], "a write that nobody confirmed"


def test_messages_of_tools_bear_the_name_that_the_policy_knows() -> None:
    result = ToolResult("c", "get_order", "ok")
    assert result.as_message("get_order_v2").name == "get_order_v2"
    assert result.as_message().name == "get_order"


def test_before_there_is_a_list_a_name_is_a_name() -> None:
    (task,) = first_tasks("desk", 1)
    nothing = Perturbations(EVERYTHING, task, offer_seed=0, seed=0)
    assert nothing.true_name("get_order") == "get_order"
    assert nothing.offered == []
    listed = nothing.catalogue((tool("get_order", "Get it.", "x"),))
    assert nothing.offered == listed.acted


def test_the_retrying_agent_makes_the_same_call_again() -> None:
    class Never:
        def act(self, history: Sequence[Message]) -> Message:
            raise AssertionError

    call = Message("assistant", "", tool_calls=(ToolCall("c", "t", {"x": 1}),))
    failed = Message("tool", "Error: HTTP 502 Bad Gateway", tool_call_id="c", name="t")
    again = Retrying(Never()).act([call, failed])
    assert [(c.name, c.arguments) for c in again.tool_calls] == [("t", {"x": 1})]


def test_a_task_that_says_which_tools_are_shown_keeps_its_list_as_it_is() -> None:
    """What is shown later would else stand under another name than what was shown at first."""
    (task,) = first_tasks("desk", 1)
    own = task.model_copy(update={"tools": ["get_order"]})
    offered = []
    for each in (task, own):
        perturbations = Perturbations(PerturbSpec(metadata=1.0), each, offer_seed=1, seed=1)
        catalogue = perturbations.catalogue(
            (tool("get_order", "Get an order.", "id"), tool("cancel_order", "Cancel.", "id"))
        )
        offered.append(([shown.name for shown in catalogue.tools], perturbations.offered))
    assert offered[0][1]
    assert offered[1] == (["get_order", "cancel_order"], [])
