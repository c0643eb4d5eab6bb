from __future__ import annotations

import base64
import gzip
import random

import msgspec
import pytest

from muarl.messages import Message, ToolCall, ToolResult, ToolSpec
from muarl.record import Episode, EpisodeKey, JournalWriter, Outcome, Sample, Span, Turn, UserReply
from muarl.report.choose import by_importance, in_reading_order, phases_in_order
from muarl.report.embed import embed, list_journal
from muarl.report.forms import dialogue_form
from muarl.report.rows import above_group, columns, row_of
from muarl.world import Change


def make_episode(
    phase: str, iteration: int, number: int, reward: float | None, sample: int = 0
) -> Episode:
    return Episode(
        key=EpisodeKey(0, phase, iteration, f"t{number}", sample),
        domain="desk", persona="plain", split="train", task_hash="", system="rules",
        opening=UserReply("hi"), reward=reward, samples=[Sample([1, 2], [Span(1, 2, 0)], [-0.5])],
        outcome=Outcome.COMPLETED if reward is not None else Outcome.USER_FAULT,
    )  # fmt: skip


@pytest.fixture
def rows():
    episodes = [make_episode("eval:cold", 0, n, float(n % 3 == 0)) for n in range(300)]
    for i in range(50):
        episodes += [make_episode("train", i, n, float(n % 2)) for n in range(50)]
        episodes.append(make_episode("train", i, 99, None))
    episodes += [make_episode("eval:final", 0, n, float(n % 4 > 0)) for n in range(300)]
    return [row_of(episode) for episode in episodes]


def test_every_phase_and_verdict_comes_before_any_comes_again(rows):
    first = [(rows[n].phase, rows[n].verdict) for n in by_importance(rows)[:7]]
    assert len(set(first)) == 7
    assert first[:2] == [("eval:final", "failed"), ("eval:final", "passed")]


def test_all_episodes_are_ordered_once(rows):
    assert sorted(by_importance(rows)) == list(range(len(rows)))


def test_training_spreads_over_its_iterations(rows):
    trained = [rows[n] for n in by_importance(rows)[:350] if rows[n].phase == "train"]
    iterations = [row.iteration for row in trained if row.verdict == "failed"]
    assert set(iterations) == set(range(50))


def test_the_order_does_not_depend_on_which_episode_finished_first(rows):
    shuffled = list(rows)
    random.Random(3).shuffle(shuffled)
    orders = [[order[n].id for n in by_importance(order)][:200] for order in (rows, shuffled)]
    assert orders[0] == orders[1]


def test_episodes_of_a_group_come_together():
    group = [row_of(make_episode("train", 0, n, 1.0, s)) for s in range(4) for n in range(30)]
    order = [group[n] for n in by_importance(group)]
    tasks = [row.task for row in order]
    assert tasks == [task for task in dict.fromkeys(tasks) for _ in range(4)]


def test_the_last_evaluation_is_read_first_and_failures_before_successes(rows):
    order = [rows[n] for n in in_reading_order(rows, range(len(rows)))]
    assert list(dict.fromkeys(r.phase for r in order)) == ["eval:final", "eval:cold", "train"]
    assert [r.verdict for r in order[:76]] == ["failed"] * 75 + ["passed"]


def test_an_evaluation_counts_as_the_last_one_when_none_is_called_final():
    assert phases_in_order(["train", "eval:a", "eval:b"]) == ["eval:b", "eval:a", "train"]


def test_an_advantage_is_what_is_above_the_mean_of_the_group_and_faults_have_none():
    group = [make_episode("train", 0, 0, reward, s) for s, reward in enumerate((1.0, 0.0, None))]
    assert above_group([row_of(episode) for episode in group]) == [0.5, -0.5, None]


def test_columns_hold_the_rows(rows):
    table = columns(rows)
    assert table["count"] == len(rows)
    for at in (0, 1234, len(rows) - 1):
        assert table["task"]["values"][table["task"]["at"][at]] == rows[at].task
        assert table["reward"][at] == rows[at].reward


@pytest.fixture
def journal(tmp_path):
    path = tmp_path / "episodes.journal"
    with JournalWriter(path) as writer:
        for n in range(3000):
            writer.append(make_episode(f"eval:{n % 2}", 0, n, float(n % 3 == 0)))
    return path


def unpacked(pack: str) -> list:
    return msgspec.json.decode(gzip.decompress(base64.b64decode(pack)))


def test_every_dialogue_is_where_the_table_says(journal):
    page = embed(list_journal(journal), journal, {})
    packs = [unpacked(pack) for pack in page.dialogues]
    tokens = [unpacked(pack) for pack in page.tokens]
    assert len(packs) > 2
    assert page.table["count"] == sum(map(len, packs)) == 3000
    task = page.table["task"]
    for at in range(0, 3000, 97):
        pack, place = page.table["pack"][at], page.table["place"][at]
        assert packs[pack][place]["task"] == task["values"][task["at"][at]]
        assert tokens[pack][place] == [{"ids": [1, 2], "spans": [[1, 2, 0]], "logprobs": [-0.5]}]


def test_dialogues_beyond_the_room_are_left_out_and_the_page_says_so(journal):
    whole = embed(list_journal(journal), journal, {})
    room = sum(map(len, whole.dialogues + whole.tokens)) // 2
    page = embed(list_journal(journal), journal, {}, room)
    assert sum(map(len, page.dialogues + page.tokens)) <= room
    readable = sum(pack >= 0 for pack in page.table["pack"])
    assert 0 < readable == sum(row["shown"] for row in page.shown) < 3000
    assert page.table["count"] == 3000 == sum(row["total"] for row in page.shown)
    assert all(row["shown"] for row in page.shown)


def test_of_equal_keys_the_last_episode_counts(tmp_path):
    path = tmp_path / "episodes.journal"
    with JournalWriter(path) as writer:
        writer.append(make_episode("train", 0, 1, None))
        writer.append(make_episode("train", 0, 1, 1.0))
    listed = list_journal(path)
    assert [row.reward for row in listed.rows] == [1.0]


def test_equal_prompts_and_tools_are_embedded_once(journal):
    page = embed(list_journal(journal), journal, {})
    assert (page.systems, page.toolsets, page.token_ids) == (["rules"], [[]], {1, 2})


def test_values_travel_as_the_text_that_was_written():
    episode = make_episode("train", 0, 0, 1.0)
    episode.tools = [ToolSpec("get", "", {"type": "object"})]
    call = ToolCall("1", "get", {"id": 12345678901234567890, "price": 1.0})
    unreadable = ToolCall("2", "", error="no name", raw="{")
    message = Message("assistant", "", (call, unreadable))
    results = [ToolResult("1", "get", "ok")]  # the second call was never answered
    changes = [Change("a.b", 1, 1.5, "changed")]
    episode.turns = [Turn(message, 0, 1, 2, "stop", 0, results, None, changes)]
    shown = dialogue_form(episode)
    calls = shown["turns"][0]["calls"]
    assert calls[0]["arguments"] == [["id", "12345678901234567890"], ["price", "1.0"]]
    assert (calls[1]["result"], calls[1]["error"], calls[1]["raw"]) == (None, "no name", "{")
    assert calls[0]["changes"][0]["after"] == "1.5"


def calls_of(turn):
    episode = make_episode("train", 0, 0, 1.0)
    episode.turns = [turn]
    return dialogue_form(episode)["turns"][0]


def test_each_call_has_what_it_changed():
    turn = Turn(
        Message("assistant", "", (ToolCall("1", "a"), ToolCall("2", "b"))), 0, 1, 2, "stop", 0
    )
    turn.answered(ToolResult("1", "a", "ok"), [Change("x", 1, 2, "changed")])
    turn.answered(
        ToolResult("2", "b", "ok"), [Change("x", 2, 3, "changed"), Change("y", None, 1, "added")]
    )
    shown = calls_of(turn)
    assert [[change["path"] for change in call["changes"]] for call in shown["calls"]] == [
        ["x"],
        ["x", "y"],
    ]
    assert shown["changes"] == [], "told once"


def test_calls_of_an_older_record_have_together_what_they_changed():
    calls = (ToolCall("1", "a"), ToolCall("2", "b"))
    results = [ToolResult("1", "a", "ok"), ToolResult("2", "b", "ok")]
    changes = [Change("x", 1, 2, "changed")]
    shown = calls_of(
        Turn(Message("assistant", "", calls), 0, 1, 2, "stop", 0, results, None, changes)
    )
    assert [call["changes"] for call in shown["calls"]] == [None, None]
    assert [change["path"] for change in shown["changes"]] == ["x"]
