"""Whole dialogues of the desk's oracle with users of every kind, over a chat endpoint."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from oracle_desk import desk

from muarl.evaluate import summarise
from muarl.record import Episode, Outcome
from muarl.seeds import generator
from muarl.spec.user import UserSpec
from muarl.testing import chat_answer, http_server, play_agents

DRAFT = "She wants to say: "


def word(messages: list[dict[str, Any]]) -> str:
    """Words what it is asked to word, in its own way."""
    return f"Well, {messages[-1]['content'].partition(DRAFT)[2]}"


async def play(user: dict[str, Any], count: int = 12, group_size: int = 1) -> list[Episode]:
    tasks = desk().tasks("train")[:count]
    who = UserSpec.model_validate(user, strict=True)
    return await play_agents(
        *(desk(), tasks, lambda task, rng: desk().expert(task, {}, rng)),
        user=who,
        group_size=group_size,
    )


@pytest.mark.anyio
async def test_a_worded_user_does_what_the_scripted_one_does_in_other_words() -> None:
    knobs = {"unsure": 0.5, "silence": 0.3, "change_request": 1.0}
    scripted = await play({"scripted": {"knobs": knobs}})
    async with http_server(chat_answer(word)) as server:
        llm = {"base_url": f"{server.url}/v1", "model": "tiny"}
        worded = await play({"worded": {"llm": llm, "knobs": knobs}})
    assert {episode.reward for episode in (*scripted, *worded)} == {1.0}
    for one, other in zip(scripted, worded, strict=True):
        for plain, said in zip(one.replies(), other.replies(), strict=True):
            assert (plain.act, plain.knobs, plain.stop) == (said.act, said.knobs, said.stop)
            assert said.text == (plain.text if plain.act == "silence" else f"Well, {plain.text}")


@pytest.mark.anyio
async def test_a_user_who_leaks_is_taken_out_and_counted_and_never_a_reward_of_0_L2() -> None:
    def leak(messages: list[dict[str, Any]]) -> str:
        return "I'd like to cancel order Z99."

    async with http_server(chat_answer(leak)) as server:
        llm = {"base_url": f"{server.url}/v1", "model": "tiny"}
        pool = {"good": {"weight": 3, "user": {"scripted": {}}}, "leaky": {"user": {"llm": llm}}}
        episodes = await play({"pool": pool}, count=20)
    lost = [episode for episode in episodes if episode.outcome is Outcome.USER_FAULT]
    assert {episode.user for episode in lost} == {"leaky"}
    assert {(episode.breach, episode.reward) for episode in lost} == {("invented_fact", None)}
    summary = summarise(episodes)
    assert summary.success.value == 1.0
    assert {*summary.by_user} == {"good"}
    assert {*summary.removed.by_task} == {episode.key.task_id for episode in lost}
    assert sum(n for kinds in summary.removed.by_persona.values() for n in kinds.values()) == len(
        lost
    )


def test_a_pool_is_drawn_by_its_weights() -> None:
    pool = {n: {"weight": w, "user": {"scripted": {}}} for n, w in (("a", 1), ("b", 2), ("c", 5))}
    who = UserSpec.model_validate({"pool": pool})
    drawn = Counter(who.draw(generator(seed))[0] for seed in range(2400))
    expected = {"a": 300, "b": 600, "c": 1500}
    chi_square = sum((drawn[n] - e) ** 2 / e for n, e in expected.items())
    assert chi_square < 9.21, "p < .01 with two degrees of freedom; the seeds are fixed"
