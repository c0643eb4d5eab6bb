from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec import structs

sys.path.append(str(Path(__file__).parents[1] / "dialogue"))

from seeded_desk import desk, play

from muarl.errors import RecordError
from muarl.measure import Transcript, View, measure
from muarl.measure.episodes import EpisodeReader
from muarl.measure.tiers import tag_tier
from muarl.record import Episode


@pytest.fixture(scope="module")
def episodes() -> list[Episode]:
    return list(play("asyncio", 16).values())


@pytest.fixture(scope="module")
def transcripts(episodes: list[Episode]) -> list[Transcript]:
    return list(EpisodeReader(desk(), user="scripted").read(episodes))


def test_lines_are_what_was_said_and_nothing_of_tools_is_heard(
    episodes: list[Episode], transcripts: list[Transcript]
) -> None:
    for episode, transcript in zip(episodes, transcripts, strict=True):
        said = [episode.opening.text]
        for turn in episode.turns:
            if turn.reply is not None:
                said += [turn.message.content, turn.reply.text]
        lines = [line for line in transcript.lines if line.text or not line.uses]
        assert [line.text for line in lines] == said
        assert sum(len(line.uses) for line in transcript.lines) == len(episode.calls())
        speakers = [line.speaker for line in transcript.lines]
        assert all(a != b for a, b in pairwise(speakers))
        assert (transcript.reward, transcript.outcome) == (episode.reward, episode.outcome)


def test_the_ledger_is_the_task_with_the_persona_and_gold_calls_go_to_their_requests(
    episodes: list[Episode], transcripts: list[Transcript]
) -> None:
    domain = desk()
    for episode, transcript in zip(episodes, transcripts, strict=True):
        (task,) = (t for t in domain.tasks(episode.split) if t.id == episode.key.task_id)
        assert task.user is not None
        persona = domain.spec.personas[episode.persona]
        (account,) = transcript.facts
        assert (account.id, account.disclose) == ("account", "on_request")
        assert account.asked_by == ("your account",)
        assert len(transcript.goals) == len(task.user.requests)
        assert sum(len(goal.calls) for goal in transcript.goals) == len(task.gold)
        for goal in transcript.goals:
            ids = {fact.value for fact in (*goal.facts, *goal.instead) if fact.id == "order_id"}
            assert all(call.arguments["order_id"] in ids for call in goal.calls)
            for fact in goal.facts:
                if fact.id == "order_id":
                    assert fact.disclose == persona.disclose.get("order_id", "volunteer")
                else:
                    assert "oslo" in fact.others


def test_a_scripted_user_keeps_her_contract_and_her_tags_agree_with_her_words(
    transcripts: list[Transcript],
) -> None:
    figures = measure(transcripts).figures
    for name in ("premature_disclosure", "sycophancy", "role_flips", "ungrounded_turns"):
        if name in figures:
            assert figures[name].value == 0, name
    assert figures["contract_disclosure"].value == figures["contract_goal"].value == 1
    tags = tag_tier(map(View, transcripts))
    assert tags is not None
    assert tags.agreement.share is not None
    assert tags.agreement.share >= 0.95


def test_an_episode_of_another_domain_or_task_is_refused(episodes: list[Episode]) -> None:
    reader = EpisodeReader(desk())
    with pytest.raises(RecordError, match="was played in domain 'other'"):
        list(reader.read([structs.replace(episodes[0], domain="other")]))
    with pytest.raises(RecordError, match="is not the one that was played"):
        list(reader.read([structs.replace(episodes[0], task_hash="x")]))


def test_who_played_in_a_grid_is_who_its_phase_names(episodes: list[Episode]) -> None:
    reader = EpisodeReader(desk(), user="folder")
    for phase, of_pool, user, policy in (
        ("grid:cold:weak", "", "weak", "cold"),
        ("grid:cold:mixed", "hard", "mixed/hard", "cold"),
        ("train", "hard", "hard", "train"),
        ("train", "", "folder", "train"),
    ):
        key = structs.replace(episodes[0].key, phase=phase)
        episode = structs.replace(episodes[0], key=key, user=of_pool)
        (found,) = reader.read([episode])
        assert (found.user, found.policy) == (user, policy)


def test_a_change_that_a_knob_made_is_no_unscripted_one(episodes: list[Episode]) -> None:
    first = episodes[0]
    opening = structs.replace(first.opening, knobs=("withhold", "change_request"))
    (found,) = EpisodeReader(desk()).read([structs.replace(first, opening=opening)])
    assert found.told_to_change == 1
    assert next(EpisodeReader(desk()).read([first])).told_to_change == 0
