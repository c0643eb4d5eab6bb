from __future__ import annotations

import math

import pytest
from curriculum_kit import played, tasks
from pydantic import ValidationError

from muarl.curriculum.failures import failure_of
from muarl.curriculum.seen import Seen, kind_of
from muarl.curriculum.weights import failures, half, horizon
from muarl.messages import Message, ToolCall, ToolResult
from muarl.record import Episode, Outcome, PredicateResult, UserReply
from muarl.spec import GoldCallSpec
from muarl.spec.curriculum import (
    CurriculumSpec,
    FailuresCurriculum,
    HalfCurriculum,
    HorizonCurriculum,
)
from muarl.testing.episodes import build_episode
from muarl.world import Change

POOL = tasks(3)


def seen(memory: float = 1.0) -> Seen:
    return Seen(POOL, lambda task: task.id, memory)


def note(known: Seen, iteration: int, episodes: list[Episode]) -> None:
    known.note(iteration, [known.result(episode) for episode in episodes])


def test_half_is_the_expected_variance_of_success() -> None:
    known = seen()
    note(known, 0, [*played("task-0", 0, [1, 0] * 4), *played("task-1", 0, [0] * 8)])
    found = half(POOL, 1, known, HalfCurriculum(sharpness=1.0))
    assert found == pytest.approx([4 * 25 / 110, 4 * 9 / 110, 4 / 6])


def test_what_was_seen_long_ago_counts_less_and_is_forgotten() -> None:
    known = seen(0.5)
    note(known, 0, played("task-0", 0, [0] * 8))
    weights = [half(POOL, at, known, HalfCurriculum(sharpness=1.0))[0] for at in (1, 2, 200)]
    assert weights[0] < weights[1] < weights[2]
    assert weights[2] == pytest.approx(4 / 6)
    note(known, 1, played("task-0", 1, [1] * 4))
    estimate = known.of(POOL[0], 1)
    assert estimate is not None
    assert (estimate.solved, estimate.failed) == pytest.approx((4, 4))


def test_faults_tell_nothing() -> None:
    known = seen()
    note(known, 0, played("task-0", 0, [None, None]))
    assert known.of(POOL[0], 1) is None


def test_tasks_of_one_kind_are_counted_together() -> None:
    other = POOL[2].model_copy(update={"gold": [GoldCallSpec(tool="get")]})
    known = Seen([POOL[0], POOL[1], other], kind_of, 1.0)
    note(known, 0, played("task-0", 0, [1, 0]))
    assert known.of(POOL[1], 0) == known.of(POOL[0], 0)
    assert known.of(other, 0) is None


def failed(task: str, how: str, count: int = 2) -> list[Episode]:
    episodes = played(task, 0, [0.0] * count)
    for episode in episodes:
        if how == "truncated":
            episode.outcome = Outcome.TRUNCATED_TURNS
        if how == "abandoned":
            episode.outcome = Outcome.ABANDONED
    return episodes


def test_each_class_of_failure_has_the_same_mass() -> None:
    known = seen()
    note(
        known,
        0,
        [
            *failed("task-0", "truncated"),
            *failed("task-1", "abandoned"),
            *failed("task-2", "abandoned"),
        ],
    )
    assert failures(POOL, 1, known, FailuresCurriculum()) == pytest.approx([1, 0.5, 0.5])
    spec = FailuresCurriculum(weights={"abandoned": 3.0})
    assert failures(POOL, 1, known, spec) == pytest.approx([1, 1.5, 1.5])
    spec = FailuresCurriculum(weights={"abandoned": 0.0})
    assert failures(POOL, 1, known, spec) == pytest.approx([1, 0, 0])


def test_who_was_never_played_gets_the_mean_and_who_solves_all_nothing() -> None:
    known = seen()
    note(known, 0, [*failed("task-0", "truncated"), *played("task-1", 0, [1.0])])
    assert failures(POOL, 1, known, FailuresCurriculum()) == pytest.approx([1, 0, 0.5])
    assert failures(POOL, 1, seen(), FailuresCurriculum()) == [1.0, 1.0, 1.0]


def test_the_limit_of_length_rises_evenly() -> None:
    pool = tasks(3, gold=lambda n: n + 1)
    spec = HorizonCurriculum(begin=1, iterations=10)
    found = [sum(horizon(pool, at, spec)) for at in (0, 4, 5, 9, 10, 99)]
    assert found == [1, 1, 2, 2, 3, 3]
    assert math.isclose(sum(horizon(pool, 0, HorizonCurriculum(begin=9))), 3)


CALL = ToolCall("c", "put", {"key": "K77"})


def ended(**changes: object) -> Episode:
    return build_episode(reward=0.0, num_turns=2, **changes)


def called(content: str, *, heard: str = "hello") -> Episode:
    episode = ended(opening=UserReply(heard), changes=[Change("a", 1, 2, "changed")])
    first = episode.turns[0]
    first.message, first.reply = Message("assistant", "", tool_calls=(CALL,)), None
    first.results = [ToolResult("c", "put", content, is_error=True)]
    return episode


@pytest.mark.parametrize(
    ("episode", "expected"),
    [
        (build_episode(reward=1.0), None),
        (build_episode(outcome=Outcome.USER_FAULT), None),
        (ended(outcome=Outcome.TRUNCATED_CONTEXT), "truncated"),
        (ended(outcome=Outcome.ABANDONED), "abandoned"),
        (ended(rewards=[PredicateResult("never_called transfer", 0.0, "")]), "rules_broken"),
        (called("no such key"), "invented"),
        (called("no such key", heard="it is k77"), "failed_call"),
        (ended(), "stopped_early"),
        (ended(changes=[Change("a", 1, 2, "changed")]), "wrong_result"),
    ],
)
def test_how_a_dialogue_failed_is_read_off_its_record(
    episode: Episode, expected: str | None
) -> None:
    assert failure_of(episode, POOL[0]) == expected


def test_an_unknown_class_and_no_weight_at_all_are_refused() -> None:
    with pytest.raises(ValidationError, match="did you mean 'invented'"):
        FailuresCurriculum(weights={"invneted": 1.0})
    with pytest.raises(ValidationError, match="exactly one"):
        CurriculumSpec.model_validate({"half": {}, "horizon": {}})
