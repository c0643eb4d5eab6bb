"""Scoring stored episodes anew changes what they are worth, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from msgspec import structs
from seeded_desk import desk, play

from muarl.errors import RecordError, RewardError
from muarl.evaluate.rescore import Rescored, rescore
from muarl.evaluate.statistics import success_rate
from muarl.record import Episode, Outcome
from muarl.spec import RewardFile
from muarl.testing import build_episode, build_key


def rescored(
    episodes: Sequence[Episode], *reward: dict[str, Any], **fields: Any
) -> tuple[list[Rescored], list[Episode]]:
    kept: list[Episode] = []
    given = {"version": 1, "reward": list(reward), **fields}
    predicates = RewardFile.model_validate(given) if reward else None

    async def main() -> list[Rescored]:
        return await rescore(desk(), episodes, kept.append, predicates=predicates)

    return anyio.run(main), kept


def test_by_the_same_predicates_every_score_stays() -> None:
    episodes = list(play("asyncio", 64).values())
    (phase,), kept = rescored(episodes)
    assert kept == episodes
    assert (phase.phase, phase.n, phase.faults) == ("train", 64, 0)
    assert phase.before == phase.after
    assert (phase.gained, phase.lost) == (0, 0)
    assert phase.before.value == sum(e.reward == 1 for e in episodes) / 64 > 0


def test_by_other_predicates_only_the_scores_change() -> None:
    episodes = list(play("asyncio", 64).values())
    wants = {"called": {"tool": "get_order"}}
    (phase,), kept = rescored(episodes, wants, metrics=[])
    called = [any(name == "get_order" and not bad for name, _, bad in e.calls()) for e in episodes]
    assert [e.reward for e in kept] == [float(c) for c in called]
    assert [[r.name for r in e.rewards] for e in kept] == [["called get_order"]] * 64
    assert all(e.metrics == [] for e in kept)
    old = [structs.replace(e, reward=None, rewards=[], metrics=[]) for e in episodes]
    assert [structs.replace(e, reward=None, rewards=[], metrics=[]) for e in kept] == old
    was = [e.reward == 1 for e in episodes]
    assert phase.gained == sum(c and not w for c, w in zip(called, was, strict=True)) > 0
    assert phase.lost == sum(w and not c for c, w in zip(called, was, strict=True))
    by_task: dict[str, list[bool]] = {}
    for episode, success in zip(kept, called, strict=True):
        by_task.setdefault(episode.key.task_id, []).append(success)
    assert phase.after == success_rate(by_task)


def test_metrics_stay_those_of_the_domain_unless_a_file_names_others() -> None:
    episodes = list(play("asyncio", 64).values())[:4]
    _, kept = rescored(episodes, {"said": {"text": "done"}})
    assert [e.metrics for e in kept] == [e.metrics for e in episodes]


def test_a_fault_is_kept_and_counted_and_is_no_failure_L2() -> None:
    episode = next(iter(play("asyncio", 64).values()))
    faults = [
        build_episode(build_key("x", i), outcome=outcome)
        for i, outcome in enumerate((Outcome.USER_FAULT, Outcome.INFRA_FAULT))
    ]
    (phase,), kept = rescored([faults[0], episode, faults[1]])
    assert kept == [faults[0], episode, faults[1]]
    assert (phase.n, phase.faults) == (1, 2)


def test_each_phase_is_counted_by_itself() -> None:
    episodes = list(play("asyncio", 64).values())
    moved = [
        structs.replace(e, key=structs.replace(e.key, phase="eval:cold:T1")) for e in episodes[:10]
    ]
    phases, _ = rescored([*episodes, *moved])
    assert [(p.phase, p.n) for p in phases] == [("train", 64), ("eval:cold:T1", 10)]


def test_an_episode_of_another_task_stops_it() -> None:
    episode = next(iter(play("asyncio", 64).values()))
    with pytest.raises(RecordError, match=f"{episode.key}: task .* is not the one that was played"):
        rescored([structs.replace(episode, task_hash="0" * 16)])


def test_a_predicate_that_fails_names_the_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    from muarl.reward import verdict

    def fail(*_arguments: object) -> None:
        raise ZeroDivisionError("no words")

    episode = next(iter(play("asyncio", 64).values()))
    monkeypatch.setitem(verdict._CHECKS, "said", fail)
    with pytest.raises(RewardError, match=rf"{episode.key}: predicate .* no words"):
        rescored([episode], {"said": {"text": "done"}})
