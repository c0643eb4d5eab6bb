from __future__ import annotations

import random
from collections import Counter

import msgspec
import pytest

from muarl.messages import Message, ToolCall, ToolResult, ToolSpec
from muarl.record import Episode, EpisodeKey, Outcome, Sample, Span, Turn, UserReply
from muarl.report.choose import (
    EARLIER_EVALUATION,
    ITERATION,
    LAST_EVALUATION,
    MOST,
    choose,
    verdict,
)
from muarl.report.embed import embed
from muarl.world import Change


def make_episode(phase: str, iteration: int, number: int, reward: float | None) -> Episode:
    return Episode(
        key=EpisodeKey(0, phase, iteration, f"t{number}", 0),
        domain="desk", persona="plain", split="train", task_hash="", system="rules",
        opening=UserReply("hi"), reward=reward, samples=[Sample([1, 2], [Span(1, 2, 0)], [-0.5])],
        outcome=Outcome.COMPLETED if reward is not None else Outcome.USER_FAULT,
    )  # fmt: skip


@pytest.fixture
def journal():
    episodes = [make_episode("eval:cold", 0, n, float(n % 3 == 0)) for n in range(300)]
    for i in range(5):
        episodes += [make_episode("train", i, n, float(n % 2)) for n in range(50)]
        episodes.append(make_episode("train", i, 99, None))
    episodes += [make_episode("eval:final", 0, n, float(n % 4 > 0)) for n in range(300)]
    return episodes


def test_the_choice_keeps_to_its_caps_and_says_what_it_was_chosen_from(journal):
    choice = choose(iter(journal))
    counts = Counter((e.key.phase, verdict(e)) for e in choice.episodes)
    assert counts == {
        ("eval:final", "failed"): LAST_EVALUATION.failed,
        ("eval:final", "passed"): LAST_EVALUATION.passed,
        ("eval:cold", "failed"): EARLIER_EVALUATION.failed,
        ("eval:cold", "passed"): EARLIER_EVALUATION.passed,
        ("train", "failed"): 5 * ITERATION.failed,
        ("train", "passed"): 5 * ITERATION.passed,
        ("train", "fault"): 5 * ITERATION.fault,
    }
    assert choice.totals["eval:final", "failed"] == 75
    assert choice.totals["train", "fault"] == 5
    assert choice.phases == ["eval:final", "eval:cold", "train"]


def test_a_rollout_is_shown_as_an_evaluation_is():
    episodes = [make_episode("rollout", 0, n, float(n % 2)) for n in range(200)]
    counts = Counter(verdict(e) for e in choose(episodes).episodes)
    assert counts == {"failed": LAST_EVALUATION.failed, "passed": LAST_EVALUATION.passed}


def test_all_failures_of_the_last_evaluation_are_shown_while_they_fit(journal):
    few = [e for e in journal if e.key.phase != "eval:final" or e.reward == 1]
    few += [make_episode("eval:final", 0, n, 0.5) for n in range(1000, 1060)]
    chosen = choose(few).episodes
    assert sum(e.key.phase == "eval:final" and e.reward == 0.5 for e in chosen) == 60


def test_the_choice_does_not_depend_on_which_episode_finished_first(journal):
    shuffled = list(journal)
    random.Random(3).shuffle(shuffled)
    keys = [{str(e.key) for e in choose(order).episodes} for order in (journal, shuffled)]
    assert keys[0] == keys[1]


def test_a_long_run_keeps_its_last_failures_and_spreads_over_its_iterations(journal):
    long = [e for e in journal if e.key.phase == "eval:final"]
    long += [make_episode("train", i, n, float(n % 2)) for i in range(1000) for n in range(6)]
    chosen = choose(long).episodes
    assert len(chosen) == MOST
    assert sum(e.key.phase == "eval:final" and e.reward == 0 for e in chosen) == 60
    iterations = [e.key.iteration for e in chosen if e.key.phase == "train"]
    assert len(set(iterations)) > 0.7 * len(iterations)
    assert min(iterations) < 50
    assert max(iterations) > 950


def test_an_evaluation_counts_as_the_last_one_when_none_is_called_final(journal):
    choice = choose(e for e in journal if e.key.phase != "eval:final")
    assert choice.phases == ["eval:cold", "train"]
    shown = sum(e.key.phase == "eval:cold" and e.reward == 0 for e in choice.episodes)
    assert shown == LAST_EVALUATION.failed


def test_episodes_beyond_the_room_are_left_out_and_every_part_of_the_run_is_still_there(journal):
    whole = embed(choose(journal))
    sizes = [len(bytes(raw)) for raw in whole.episodes]
    room = sum(sizes) // 4
    page = embed(choose(journal), room)
    assert sum(len(bytes(raw)) for raw in page.episodes) <= room
    shown = sum(row["shown"] for row in page.shown)
    assert shown == len(page.episodes) < len(whole.episodes)
    assert sum(row["total"] for row in page.shown) == len(journal)
    assert all(row["shown"] for row in page.shown)


def test_values_travel_as_the_text_that_was_written():
    episode = make_episode("train", 0, 0, 1.0)
    episode.tools = [ToolSpec("get", "", {"type": "object"})]
    call = ToolCall("1", "get", {"id": 12345678901234567890, "price": 1.0})
    unreadable = ToolCall("2", "", error="no name", raw="{")
    message = Message("assistant", "", (call, unreadable))
    results = [ToolResult("1", "get", "ok")]  # the second call was never answered
    changes = [Change("a.b", 1, 1.5, "changed")]
    episode.turns = [Turn(message, 0, 1, 2, "stop", 0, results, None, changes)]
    shown = msgspec.json.decode(embed(choose([episode])).episodes[0])
    calls = shown["turns"][0]["calls"]
    assert calls[0]["arguments"] == [["id", "12345678901234567890"], ["price", "1.0"]]
    assert (calls[1]["result"], calls[1]["error"], calls[1]["raw"]) == (None, "no name", "{")
    assert shown["turns"][0]["changes"][0]["after"] == "1.5"


def test_equal_prompts_and_tools_are_embedded_once(journal):
    page = embed(choose(journal))
    assert (page.systems, page.toolsets, page.token_ids) == (["rules"], [[]], {1, 2})
