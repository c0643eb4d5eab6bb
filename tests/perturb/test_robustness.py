from __future__ import annotations

import pytest

from muarl.evaluate.robustness import in_lines, robustness
from muarl.evaluate.statistics import wilson
from muarl.messages import Message, ToolCall, ToolResult
from muarl.record import UNLISTED, Episode, EpisodeKey, Outcome, Perturbed, Turn, UserReply


def episode(
    task: int, reward: float | None, *, instead: tuple[str, ...] = (), kinds: tuple[str, ...] = ()
) -> Episode:
    calls = tuple(ToolCall(str(i), "t") for i, _ in enumerate(instead))
    results = [ToolResult(c.id, "t", "", True, k) for c, k in zip(calls, instead, strict=True)]
    return Episode(
        key=EpisodeKey(0, "eval", 0, f"t{task}", 0),
        domain="desk",
        persona="plain",
        split="held_out",
        task_hash="",
        system="",
        opening=UserReply("hi", perturbed=("typo",) if "typo" in kinds else ()),
        outcome=Outcome.INFRA_FAULT if reward is None else Outcome.COMPLETED,
        reward=reward,
        turns=[Turn(Message("assistant", "", calls), 0, 0, 0, "stop", 0, results)],
        perturbed=[Perturbed(kind, "t") for kind in kinds if kind != "typo"],
    )


def test_success_under_a_set_stands_beside_success_without_on_the_same_tasks() -> None:
    clean = [episode(i, 1.0) for i in range(10)]
    under = [episode(i, float(i < 6), instead=("timeout",) * (i > 4)) for i in range(9)]
    [found] = robustness(clean, {"bad days": [*under, episode(9, None)]})
    assert (found.n, found.faults) == (9, 1)
    assert found.success == wilson(6, 9)
    assert found.clean == wilson(10, 10)
    assert found.difference.success.value == pytest.approx(6 / 9 - 1)
    assert found.difference.success.n == 9
    assert found.acted == {"timeout": wilson(1, 4)}
    table = list(in_lines([found]))
    assert [line.split()[:2] for line in table] == [
        ["perturbed", "by"],
        ["bad", "days"],
        ["where", "timeout"],
    ]
    assert "(9 dialogues, 1 faults)" in table[1]


def test_what_answers_for_a_decoy_or_an_unknown_name_is_no_further_act() -> None:
    seen = episode(
        0, 1.0, instead=("cost_suffix", UNLISTED, "timeout", ""), kinds=("cost_suffix", "typo")
    )
    assert seen.perturbations() == {"cost_suffix": 1, "typo": 1, "timeout": 1}


def test_without_sets_there_is_no_table() -> None:
    assert list(in_lines([])) == []
