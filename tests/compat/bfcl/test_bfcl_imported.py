"""Imported domains at work: turn by turn, with functions held back, judged as upstream judges."""

from __future__ import annotations

import pytest

from muarl.compat.bfcl.official import installed
from muarl.data.trivial import DoNothing
from muarl.messages import Message, ToolCall
from muarl.record import Outcome
from muarl.testing import play_agents

pytestmark = pytest.mark.anyio

SETS = [
    (version, name)
    for version in ("v3", "v4")
    for name in ("base", "miss-func", "miss-param", "long-context")
]
EVERY = 20
"""Of the entries of a set so many-th are played; `benchmarks/floors.py` plays all."""


class Planned:
    """Says the messages of a list, and is done when there are no more."""

    def __init__(self, *messages):
        self._left = list(messages)

    def act(self, history):
        del history
        return self._left.pop(0) if self._left else Message("assistant", "Done.")


def calls(*made):
    return Message(
        "assistant",
        "",
        tuple(ToolCall(f"c{i}", name, given) for i, (name, given) in enumerate(made)),
    )


def gold_of(task, turn):
    return [(call.tool, call.arguments) for call in task.gold if call.turn == turn]


async def playing(domain, task, *messages):
    (episode,) = await play_agents(domain, [task], lambda *_: Planned(*messages))
    return episode


@pytest.mark.parametrize(("version", "name"), SETS)
async def test_gold_calls_earn_1_and_doing_nothing_0(imported, version, name):
    domain = imported(version, name)
    tasks = domain.tasks("test")
    assert len(tasks) == 200
    tasks = tasks[::EVERY]
    experts = await play_agents(domain, tasks, lambda task, rng: domain.expert(task, {}, rng))
    idle = await play_agents(domain, tasks, lambda *_: DoNothing())
    assert [episode.reward for episode in experts] == [1.0] * len(tasks)
    assert [episode.reward for episode in idle] == [0.0] * len(tasks)
    assert {episode.outcome for episode in experts + idle} == {Outcome.COMPLETED}


async def test_an_entry_of_v3_with_a_turn_too_few_can_be_solved_by_nobody(imported):
    domain = imported("v3", "base")
    task = next(task for task in domain.tasks("test") if task.id == "multi_turn_base_154")
    (episode,) = await play_agents(domain, [task], lambda t, rng: domain.expert(t, {}, rng))
    assert episode.reward == 0.0
    assert episode.rewards[0].reason == "multi_turn:force_terminated"


async def test_functions_that_are_held_back_are_shown_with_the_turn_that_has_no_message(imported):
    domain = imported("v4", "miss-func")
    task = domain.tasks("test")[0]
    assert "sort" not in task.tools
    (turn,) = [turn for turn in task.turns if turn.shows]
    assert turn.shows == ["sort"]
    assert "more functions" in turn.says
    (episode,) = await play_agents(domain, [task], lambda t, rng: domain.expert(t, {}, rng))
    assert episode.forks == 1
    assert {"sort", "cat", "post_tweet"} <= {tool.name for tool in episode.tools}
    assert "startEngine" not in {tool.name for tool in episode.tools}


async def test_planted_failures_are_named_as_upstream_names_them(imported):
    domain = imported("v4", "base")
    task = domain.tasks("test")[0]
    turns = [gold_of(task, turn) for turn in range(len(task.turns))]
    done = Message("assistant", "Done.")
    first = [calls(*turns[0]), done]
    planted = {
        "multi_turn:empty_turn_model_response in turn 1": [*first, done],
        "multi_turn:instance_state_mismatch in turn 0": [calls(("mkdir", {"dir_name": "else"}))],
        "multi_turn:execution_response_mismatch in turn 1": [*first, calls(("pwd", {})), done],
    }
    for reason, messages in planted.items():
        episode = await playing(domain, task, *messages)
        assert (episode.reward, episode.rewards[0].reason) == (0.0, reason)


async def test_more_steps_in_a_turn_than_upstream_allows_end_the_dialogue(imported):
    """A gold turn of 34 calls, made one by one; in one message they are one step."""
    domain = imported("v4", "long-context")
    task = next(task for task in domain.tasks("test") if task.id == "multi_turn_long_context_38")
    turn = max(range(len(task.turns)), key=lambda turn: len(gold_of(task, turn)))
    before = [
        m for at in range(turn) for m in (calls(*gold_of(task, at)), Message("assistant", "Ok"))
    ]
    one_by_one = [calls(call) for call in gold_of(task, turn)]
    episode = await playing(domain, task, *before, *one_by_one)
    assert len(one_by_one) > 21
    assert episode.outcome is Outcome.TRUNCATED_TURNS
    assert sum(bool(turn.message.tool_calls) for turn in episode.turns[len(before) :]) == 21
    assert (episode.reward, episode.rewards[0].reason) == (0.0, "multi_turn:force_terminated")


async def test_answers_are_read_as_upstream_writes_them(imported):
    domain = imported("v4", "base")
    task = domain.tasks("test")[0]
    asked = [
        ("cat", {"file_name": "none"}),
        ("no_such_function", {}),
        ("startEngine", {"ignitionMode": "START"}),
        ("kill", {}),
        ("echo", {"content": "see (1)"}),
        ("cd", {"folder": "document", "a=ls(),b": 1}),
    ]
    episode = await playing(domain, task, calls(*asked))
    answers = [result.as_message().content for result in episode.turns[0].results]
    assert answers[:5] == [
        '{"error": "cat: \'none\': No such file or directory"}',
        "Error during execution: name 'no_such_function' is not defined",
        "Error during execution: name 'startEngine' is not defined",
        "Error during execution: Function call kill is not allowed.",
        '{"terminal_output": "see(1)"}',
    ]
    assert answers[5].startswith("Error during execution: ")


async def test_a_call_in_a_turn_without_gold_calls_is_not_punished_but_told(imported):
    domain = imported("v4", "miss-param")
    task = domain.tasks("test")[0]
    empty = next(turn for turn in range(len(task.turns)) if not gold_of(task, turn))
    messages = []
    for turn in range(len(task.turns)):
        made = [("pwd", {})] if turn == empty else gold_of(task, turn)
        messages += [calls(*made), Message("assistant", "Done.")]
    episode = await playing(domain, task, *messages)
    assert episode.reward == 1.0
    assert [metric.score for metric in episode.metrics] == [0.0]


@pytest.mark.parametrize(("version", "name"), SETS)
async def test_the_official_checker_agrees(version, name, fixtures, tmp_path):
    if installed(version) is None:
        pytest.skip(f"no bfcl-eval with the entries of {version}: its checker cannot be asked")
    from muarl.compat.bfcl.importer import write_domains
    from muarl.domain import load_domain

    copy = fixtures / "data" / "bfcl" / version
    write_domains(copy, tmp_path, official_checker=True)
    domain = load_domain(tmp_path / name)
    tasks = domain.tasks("test")[::EVERY]

    def spoiled(task, rng):
        """The gold calls, of which some are left out or made twice."""
        messages = []
        for turn in range(len(task.turns)):
            made = [
                call for call in gold_of(task, turn) for _ in range(rng.choice([0, 1, 1, 1, 2]))
            ]
            messages += [calls(*made)] if made else []
            messages.append(Message("assistant", "Done."))
        return Planned(*messages)

    experts = await play_agents(domain, tasks, lambda task, rng: domain.expert(task, {}, rng))
    episodes = experts + await play_agents(domain, tasks, spoiled, group_size=2)
    for episode in episodes:
        official = next(m for m in episode.metrics if "official" in m.name)
        assert episode.rewards[0].reason.startswith(official.reason)
        assert official.score == episode.reward
    assert len({episode.reward for episode in episodes}) == 2
