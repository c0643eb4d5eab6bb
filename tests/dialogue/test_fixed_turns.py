"""Users of fixed messages: who says them, which tools are shown from which on, how many steps are allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dialogue_kit import (
    DOMAIN,
    TASKS,
    Sampler,
    called,
    check_tokens,
    dialogue,
    ids_of,
    note_task,
    renderer,
    write_notes,
)

from muarl.data.proof import prove
from muarl.domain import Domain, load_domain
from muarl.errors import SpecError
from muarl.record import Episode, Outcome
from muarl.spec import TaskSpec
from muarl.spec.user import UserSpec, modelless_user

pytestmark = pytest.mark.anyio

FIXED = UserSpec.model_validate({"fixed": {}})
TURNS = [{"says": "Look it up."}, {"says": "More tools.", "shows": ["put"]}, {"says": "Put it."}]
GET = called('{"name": "get", "arguments": {"key": "old"}}')
PUT = called('{"name": "put", "arguments": {"key": "a", "value": 1}}')


@pytest.fixture
def domain(tmp_path: Path) -> Domain:
    return write_notes(tmp_path)


def task_of(**fields: Any) -> TaskSpec:
    return note_task(**{"turns": TURNS, "tools": ["get", "echo"], **fields})


async def played(domain: Domain, task: TaskSpec, *said: str) -> tuple[Episode, Sampler]:
    coming = iter(said)
    policy = Sampler(lambda _request: (ids_of(next(coming)), True))
    user = domain.user(FIXED, task, "plain", 0)
    return await dialogue(domain, policy, user, task=task).run(), policy


async def test_she_says_her_messages_in_order_and_leaves_after_the_last(domain: Domain) -> None:
    episode, policy = await played(domain, task_of(tools=None), GET, "1", "Which?", PUT, "Put.")
    assert episode.outcome is Outcome.COMPLETED
    assert [reply.text for reply in episode.replies()] == [*(t["says"] for t in TURNS), ""]
    assert episode.reward == 1.0
    assert episode.forks == 0
    check_tokens(episode, policy)


async def test_tools_are_in_the_prompt_from_the_message_on_that_shows_them_L1(
    domain: Domain,
) -> None:
    episode, policy = await played(domain, task_of(), "Yes.", "Yes.", PUT, "Put.")
    check_tokens(episode, policy)
    prompts = [renderer().tokenizer.decode(request.prompt_ids) for request in policy.requests]
    assert [prompt.count('"name": "put"') for prompt in prompts] == [0, 1, 1, 2]
    assert all('"name": "leave"' not in prompt for prompt in prompts)
    assert [turn.sample for turn in episode.turns] == [0, 1, 1, 1]
    assert episode.forks == 1
    assert [tool.name for tool in episode.tools] == ["get", "echo", "put"]
    assert episode.turns[0].reply is not None
    assert episode.turns[0].reply.shows == ("put",)
    assert episode.reward == 1.0


async def test_a_tool_that_is_not_shown_answers_who_calls_it_by_name(domain: Domain) -> None:
    episode, _ = await played(domain, task_of(), PUT, "Put.", "Yes.", "Yes.")
    assert episode.reward == 1.0


async def test_a_task_that_shows_a_tool_which_is_not_there_is_a_fault_that_names_it(
    domain: Domain,
) -> None:
    episode, _ = await played(domain, task_of(tools=["got"]))
    assert episode.outcome is Outcome.INFRA_FAULT
    assert "task 'note-1' shows a tool 'got', which no server of its domain offers" in str(
        episode.error
    )


async def test_one_step_more_than_allowed_is_carried_out_and_ends_the_dialogue_L4(
    tmp_path: Path,
) -> None:
    write_notes(tmp_path)
    (tmp_path / "domain.yaml").write_text(DOMAIN + "max_steps: 2\n")
    domain = load_domain(tmp_path)
    enough, _ = await played(domain, task_of(), GET, GET, "Yes.", GET, PUT, "Yes.", "Bye.")
    assert enough.outcome is Outcome.COMPLETED
    episode, policy = await played(domain, task_of(), GET, "Yes.", GET, GET, PUT)
    assert episode.outcome is Outcome.TRUNCATED_TURNS
    assert episode.reward == 1.0
    check_tokens(episode, policy)


async def test_without_rules_there_is_no_system_prompt(tmp_path: Path) -> None:
    write_notes(tmp_path)
    (tmp_path / "domain.yaml").write_text(DOMAIN.replace("Keep notes. Ask first.", "''"))
    task = task_of(tools=[])
    episode, policy = await played(load_domain(tmp_path), task, "a", "b", "c")
    assert episode.outcome is Outcome.COMPLETED
    first = renderer().tokenizer.decode(policy.requests[0].prompt_ids)
    assert first.startswith("<|im_start|>user\nLook it up.")


async def test_a_task_without_messages_of_hers_is_refused_before_a_dialogue(domain: Domain) -> None:
    with pytest.raises(SpecError, match="task 'note-1' has no `turns`, which a fixed user says"):
        domain.user(FIXED, note_task(), "plain", 0)
    assert modelless_user([task_of(), note_task()]).scripted is not None


async def test_proofs_make_gold_calls_in_the_turn_that_they_name(tmp_path: Path) -> None:
    """The reward looks at when the call was made: after the second message."""
    write_notes(tmp_path)
    reward = "reward: [{python: {function: 'reward.py:late'}}]"
    (tmp_path / "domain.yaml").write_text(DOMAIN.replace("reward: [{gold_world: true}]", reward))
    (tmp_path / "reward.py").write_text(
        "def late(evidence):\n"
        "    turns = list(enumerate(evidence.turns))\n"
        "    at = [i for i, turn in turns for c in turn.message.tool_calls if c.name == 'put']\n"
        "    said = [i for i, turn in turns if turn.reply is not None]\n"
        "    return float(bool(at) and said[0] < at[0] < said[1]), 'when it was called'\n"
    )
    turns = "turns: [{says: Hello.}, {says: Note 1 as a.}, {says: Bye.}], gold: [{turn: 1, "
    (tmp_path / "tasks.yaml").write_text(TASKS.replace("gold: [{", turns))
    proof = await prove(load_domain(tmp_path))
    assert not proof.findings
    assert proof.floor["do_nothing"]["train"].value == 0.0
