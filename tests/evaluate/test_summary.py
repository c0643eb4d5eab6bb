from __future__ import annotations

import msgspec
import pytest

from muarl.evaluate import EvalSummary, summarise
from muarl.evaluate.statistics import wilson
from muarl.messages import Message, ToolCall, ToolResult
from muarl.record import (
    Episode,
    EpisodeKey,
    Outcome,
    PredicateResult,
    Sample,
    Span,
    Turn,
    UserReply,
)


def make_episode(
    task: str,
    reward: float | None,
    *,
    sample: int = 0,
    persona: str = "plain",
    outcome: Outcome = Outcome.COMPLETED,
    calls: tuple[tuple[str, bool], ...] = (),
    tokens: int = 4,
    confirmed: float | None = None,
) -> Episode:
    message = Message("assistant", "", tuple(ToolCall(str(i), n) for i, (n, _) in enumerate(calls)))
    results = [ToolResult(str(i), n, "", bad) for i, (n, bad) in enumerate(calls)]
    return Episode(
        key=EpisodeKey(0, "eval:final", 0, task, sample),
        domain="desk", persona=persona, split="held_out", task_hash="", system="",
        opening=UserReply("hi"), outcome=outcome, reward=reward,
        turns=[Turn(message, 0, 2, 2 + tokens, "stop", 0, results)],
        samples=[Sample([0] * (2 + tokens), [Span(2, 2 + tokens, 0)], [0.0] * tokens)],
        metrics=[PredicateResult("confirmed", confirmed, ""), PredicateResult("other", 0.5, "")],
    )  # fmt: skip


def test_faults_are_counted_apart_and_are_in_no_denominator():
    episodes = [make_episode(str(i), float(i < 6), calls=(("get", False),)) for i in range(9)]
    faults = [
        make_episode("f", None, outcome=Outcome.INFRA_FAULT, calls=(("get", True),), tokens=900),
        make_episode("g", None, outcome=Outcome.USER_FAULT, persona="rude"),
    ]
    summary = summarise(episodes + faults)
    assert (summary.n, summary.faults) == (9, 2)
    assert summary.success == wilson(6, 9)
    assert summary.sampled_tokens.value == 4
    assert (summary.tool_calls, summary.tool_errors) == ({"get": 1.0}, 0.0)
    assert set(summary.by_persona) == {"plain"}
    assert summary.outcomes == {"completed": 9, "infra_fault": 1, "user_fault": 1}


def test_success_needs_the_whole_reward_while_the_mean_counts_parts_of_it():
    summary = summarise([make_episode("a", 1.0), make_episode("b", 0.5)])
    assert (summary.success.value, summary.reward.value) == (0.5, 0.75)


def test_success_is_broken_down_by_persona():
    summary = summarise(
        [make_episode("a", 1.0, persona="kind"), make_episode("b", 0.0, persona="rude"),
         make_episode("c", 1.0, persona="rude")]
    )  # fmt: skip
    assert summary.by_persona == {"kind": wilson(1, 1), "rude": wilson(1, 2)}


def test_confirmed_is_the_mean_over_episodes_it_applies_to():
    shares = (1.0, 0.5, None, None)
    summary = summarise(make_episode(str(i), 1.0, confirmed=c) for i, c in enumerate(shares))
    assert (summary.confirmed.value, summary.confirmed.n) == (0.75, 2)


def test_calls_are_counted_per_tool_and_errors_over_all_calls():
    calls = (("get", False), ("get", True), ("cancel", False))
    summary = summarise([make_episode("a", 1.0, calls=calls), make_episode("b", 1.0)])
    assert summary.tool_calls == {"cancel": 0.5, "get": 1.0}
    assert summary.tool_errors == pytest.approx(1 / 3)


def test_repeated_tasks_are_drawn_whole():
    episodes = [make_episode(str(t), float(t % 2), sample=s) for t in range(8) for s in range(4)]
    summary = summarise(episodes)
    assert (summary.success.method, summary.turns.method) == ("wilson by task", "bootstrap by task")
    assert summary.success.n == 32


def test_no_episodes_give_no_numbers_rather_than_zeros():
    summary = summarise([])
    assert (summary.n, summary.success.value, summary.tool_errors) == (0, None, None)


def test_a_summary_survives_the_way_through_a_metrics_file():
    summary = summarise([make_episode("a", 1.0, confirmed=1.0), make_episode("b", 0.0)])
    line = msgspec.json.encode({"kind": "eval", **msgspec.to_builtins(summary)})
    assert msgspec.json.decode(line, type=EvalSummary) == summary


def test_what_user_faults_took_out_is_told_by_kind_persona_and_task():
    def fault(task: str, breach: str | None, persona: str = "plain", user: str = "") -> Episode:
        episode = make_episode(task, None, outcome=Outcome.USER_FAULT, persona=persona)
        episode.breach, episode.user = breach, user
        return episode

    noted = make_episode("b", 1.0)
    noted.opening = UserReply("hi", breaches=("leak", "format"))
    noted.turns[0].reply = UserReply("yes", breaches=("leak",))
    episodes = [
        *(make_episode("a", 1.0, sample=i) for i in range(3)),
        *(fault("a", "leak"), noted, fault("b", "leak", user="gpt"), fault("b", None, "rude")),
        make_episode("b", None, outcome=Outcome.INFRA_FAULT),
    ]
    removed = summarise(episodes).removed
    assert removed.by_persona == {
        "plain": {"leak": 1},
        "plain/gpt": {"leak": 1},
        "rude": {"other": 1},
    }
    assert removed.by_task == {"a": 1 / 4, "b": 2 / 3}
    assert removed.resampled == {"format": 1, "leak": 2}
    assert summarise(episodes[:3]).removed.by_task == {}


def test_success_is_told_for_each_user_of_a_pool():
    episodes = [make_episode(str(i), float(i < 2)) for i in range(4)]
    assert summarise(episodes).by_user == {}
    for i, episode in enumerate(episodes):
        episode.user = "one" if i % 2 else "other"
    by_user = summarise(episodes).by_user
    assert {user: share.value for user, share in by_user.items()} == {"one": 0.5, "other": 0.5}


def test_pass_hat_k_is_told_where_tasks_were_tried_several_times():
    episodes = [
        make_episode(t, float(s in won), sample=s) for t, won in WON.items() for s in range(4)
    ]
    assert {k: share.value for k, share in summarise(episodes).pass_hat.items()} == {
        2: pytest.approx((1 / 6 + 1) / 2),
        4: 0.5,
    }
    assert summarise(episodes[::4]).pass_hat == {}


WON = {"a": {0, 1}, "b": {0, 1, 2, 3}}


def test_metrics_have_means_over_the_episodes_that_they_apply_to():
    episodes = [make_episode(str(i), 0.0) for i in range(3)]
    for episode, score in zip(episodes, (1.0, 0.25, None), strict=True):
        episode.metrics = [PredicateResult("share", score, "")]
    metrics = summarise(episodes).metrics
    assert {name: (mean.value, mean.n) for name, mean in metrics.items()} == {"share": (0.625, 2)}


def test_what_scores_leave_out_is_counted():
    episodes = [make_episode(str(i), 1.0) for i in range(5)]
    for episode in episodes[:2]:
        episode.rewards = [PredicateResult("python", 1.0, "", caveat="nobody judged it")] * 2
    assert summarise(episodes).caveats == {"nobody judged it": 2}
