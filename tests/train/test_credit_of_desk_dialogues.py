"""Each credit on dialogues of the desk: what is measured of them, and one update on them."""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Any

import anyio
import pytest
import torch
from seeded_desk import desk, play, renderer

from muarl.credit import Measured, turn_advantages
from muarl.credit.information import information_gains
from muarl.data.expert import ExpertPolicy
from muarl.data.progress import look_through
from muarl.kernel.model import build_tiny_model
from muarl.kernel.scoring import sample_logprobs
from muarl.kernel.step import Trainer
from muarl.record import Episode
from muarl.scheduler import Group, Limits, run_groups
from muarl.scheduler.dialogues import DialogueRunner, episode_keys
from muarl.scheduler.journal import Unjournaled
from muarl.seeds import generator
from muarl.spec import GrpoSpec
from muarl.spec.credit import ChecklistCredit, InformationCredit
from muarl.spec.model import TinyModelSpec
from muarl.spec.run import RolloutSpec
from muarl.spec.user import ScriptedUserSpec, UserSpec
from muarl.train.grpo import training_set

TINY = TinyModelSpec(vocab_size=400, hidden_size=16, num_layers=1, head_dim=8, ffn_size=24)


@cache
def played() -> list[Group]:
    """Two groups of four; every other episode is said to have succeeded."""
    groups: dict[Any, Group] = {}
    for episode in play("asyncio", 16, first=14).values():
        episode.reward = float(episode.key.sample % 2)
        groups.setdefault(episode.key.group, Group(episode.key.group, [])).episodes.append(episode)
    return list(groups.values())


def episodes() -> list[Episode]:
    return [episode for group in played() for episode in group.episodes]


def by_the_expert(count: int) -> list[Episode]:
    """Dialogues that do all that is asked for."""
    tasks = desk().tasks("train")[:count]
    runner = DialogueRunner(
        domain=desk(),
        tasks=tasks,
        renderer=renderer(),
        limits=RolloutSpec(max_turns=20, max_tokens=300, context_tokens=20_000),
        user=UserSpec(scripted=ScriptedUserSpec()),
        policy_for=lambda task, _: ExpertPolicy(desk().expert(task, {}, generator(0)), renderer()),
    )
    keys = episode_keys(tasks, run_seed=0, phase="train", group_size=1)

    async def main() -> list[Episode]:
        limits = Limits(concurrency=8)
        async with run_groups(keys, runner, limits=limits, journal=Unjournaled()) as found:
            return [e async for group in found for e in group.episodes]

    return anyio.run(main)


def test_a_gold_change_is_earned_by_the_turn_that_makes_it() -> None:
    done = by_the_expert(24)
    progress = anyio.run(look_through, desk(), done, ChecklistCredit())
    assert not progress.failed
    wrote = 0
    for episode in done:
        points = progress.points[episode.key]
        made = [len(turn.changes) for turn in episode.turns]
        assert [point > 0 for point in points] == [changes > 0 for changes in made]
        assert sum(points) == len(episode.changes)
        wrote += sum(points) > 0
    assert wrote >= 12


def test_items_of_a_list_are_looked_at_in_the_world_after_each_turn() -> None:
    items = [
        {"id": "looked", "when": {"called": {"tool": "get_order"}}},
        {"id": "solved", "when": {"gold_world": True}, "after": ["looked"], "weight": 2},
    ]
    spec = ChecklistCredit.model_validate({"items": items})
    solved = [e for e in by_the_expert(24) if e.changes]
    progress = anyio.run(look_through, desk(), solved, spec)
    for episode in solved:
        points = progress.points[episode.key]
        assert sum(points) == 3
        last_write = max(i for i, turn in enumerate(episode.turns) if turn.changes)
        assert points[last_write] >= 2


def test_a_check_that_trips_leaves_its_episode_out_and_says_why() -> None:
    items = [{"id": "a", "when": {"sql": {"query": "SELECT 1", "equals": 1}}}]
    spec = ChecklistCredit.model_validate({"items": items})
    progress = anyio.run(look_through, desk(), episodes()[:2], spec)
    assert not progress.points
    assert all("the world is no database" in why for why in progress.failed.values())


def test_answers_of_the_desk_have_gains_under_a_model() -> None:
    score = partial(sample_logprobs, build_tiny_model(TINY, seed=0))
    found = information_gains(
        episodes(), InformationCredit(), score=score, bridge=renderer().bridge
    )
    for episode in episodes():
        gains = found[episode.key]
        assert gains[-1] is None
        assert all(gain is not None and math.isfinite(gain) for gain in gains[:-1])
    assert any(gain for gains in found.values() for gain in gains)


CREDITS: dict[str, dict[str, Any]] = {
    "discounted": {"turns": "to_go"},
    "gigpo": {},
    "information": {"weight": 1.0},
    "reaction": {},
    "influence": {},
    "checklist": {
        "items": [{"id": "asked", "when": {"count": {"of": "questions", "at_least": 2}}}]
    },
}


@pytest.mark.parametrize("credit", CREDITS)
def test_an_update_takes_each_credit(credit: str) -> None:
    torch.set_num_threads(1)
    spec = GrpoSpec.model_validate({"credit": {credit: CREDITS[credit]}})
    model = build_tiny_model(TINY, seed=0)
    measured: Measured = {}
    if spec.credit.checklist is not None:
        progress = anyio.run(look_through, desk(), episodes(), spec.credit.checklist)
        measured = progress.points
    if spec.credit.information is not None:
        measured = information_gains(
            episodes(),
            spec.credit.information,
            score=partial(sample_logprobs, model),
            bridge=renderer().bridge,
        )
    found = training_set(played(), spec, measured=measured)
    assert found.credit_metrics()["moved"] > 0.1
    assert len(found.samples) == len(found.advantages) == 8
    metrics = Trainer.for_grpo(model, spec).grpo_update(
        found.samples, found.advantages, spec=spec, lr=1e-3
    )
    assert metrics.num_tokens == sum(e.num_sampled for e in episodes())
    assert math.isfinite(metrics.loss)
    assert metrics.grad_norm > 0


def test_every_turn_of_every_scored_episode_has_its_number() -> None:
    spec = GrpoSpec.model_validate({"credit": {"gigpo": {}}})
    for group in played():
        rewards = [e.reward for e in group.episodes]
        for episode, credited in zip(
            group.episodes, turn_advantages(group.episodes, rewards, spec), strict=True
        ):
            assert credited is not None
            assert len(credited.turns) == len(episode.turns)
