"""`muarl.open_policy`: a model that samples and learns in a program of one's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from short_run import SHORT, carry_out, ready_model, write_run

from muarl import GrpoSpec, Rollouts, RolloutSpec, SetupError, load_domain, load_run, open_policy
from muarl.domain import Domain
from muarl.kernel.model import load_model, weights_checksum
from muarl.record import read_journal
from muarl.scheduler import Group
from muarl.train.run_folder import RunFolder

LIMITS = RolloutSpec.model_validate({**SHORT["rollout"], "context_tokens": 1000})
LEARNS = GrpoSpec(lr=3e-3, kl_coef=0.01, entropy_coef=0.001)


@pytest.fixture
def desk(tmp_path: Path) -> Domain:
    write_run(tmp_path, model=ready_model())
    return load_domain(tmp_path / "desk")


async def play(model: Any, desk: Domain, iteration: int) -> list[Group]:
    async with Rollouts(
        desk,
        model.policy,
        model.renderer,
        tasks=desk.tasks("train")[:4],
        group_size=4,
        limits=LIMITS,
        seed=5,
        iteration=iteration,
    ) as rollouts:
        groups = [group async for group in rollouts]
    return sorted(groups, key=lambda group: group.key)


async def learn_twice(desk: Domain, out: Path) -> list[dict[str, Any]]:
    async with open_policy(ready_model()["path"], limits=LIMITS, learns=LEARNS, threads=1) as model:
        figures = [await model.learn(await play(model, desk, number)) for number in range(2)]
        assert model.version == 2
        (group, *_) = await play(model, desk, 2)
        assert {turn.policy_version for e in group.episodes for turn in e.turns} == {2}
        model.save(out)
    return figures


def test_a_program_of_ones_own_learns_and_does_it_again_alike(desk: Domain, tmp_path: Path) -> None:
    figures = anyio.run(learn_twice, desk, tmp_path / "a", backend="asyncio")
    again = anyio.run(learn_twice, desk, tmp_path / "b", backend="trio")
    assert [f["policy_version"] for f in figures] == [1, 2]
    for of_round in figures:
        assert of_round["token_drift"] == 0
        assert of_round["mismatch"]["kl"] < 1e-6
        assert of_round["lag_max"] == 0
        assert of_round["alarms"] == []
        assert math.isfinite(of_round["grad_norm"])
    assert [f["reward_mean"] for f in figures] == [f["reward_mean"] for f in again]
    saved = [weights_checksum(load_model(tmp_path / name)) for name in "ab"]
    assert saved[0] == saved[1] != weights_checksum(load_model(Path(ready_model()["path"])))


def test_it_plays_and_learns_what_a_run_does(tmp_path: Path) -> None:
    path = write_run(
        tmp_path,
        model=ready_model(),
        grpo={**SHORT["grpo"], "iterations": 1, "updates_per_iteration": 1},
    )
    carry_out(path, tmp_path / "out")
    run = load_run(path).spec
    played = [
        e for e in read_journal(RunFolder(tmp_path / "out").journal) if e.key.phase == "train"
    ]
    desk = load_domain(tmp_path / "desk")
    drawn = list(dict.fromkeys(episode.key.task_id for episode in played))
    tasks = [task for task in desk.tasks("train") if task.id in drawn]

    async def own() -> dict[str, list[Any]]:
        assert run.grpo is not None
        learns = GrpoSpec(lr=run.grpo.lr, kl_coef=0.01, entropy_coef=0.001)
        async with open_policy(run.model.path or "", limits=run.rollout, learns=learns) as model:
            async with Rollouts(
                desk,
                model.policy,
                model.renderer,
                tasks=tasks,
                group_size=4,
                limits=run.rollout,
                seed=5,
            ) as rollouts:
                groups = [group async for group in rollouts]
            figures = await model.learn(groups)
        assert figures["lag_max"] == 0
        return {str(e.key): [s.token_ids for s in e.samples] for g in groups for e in g.episodes}

    assert anyio.run(own) == {str(e.key): [s.token_ids for s in e.samples] for e in played}


def test_older_groups_are_counted(desk: Domain) -> None:
    async def main() -> list[dict[str, Any]]:
        async with open_policy(ready_model()["path"], limits=LIMITS, learns=LEARNS) as model:
            groups = await play(model, desk, 0)
            return [await model.learn(groups) for _ in range(2)]

    assert [figures["lag_max"] for figures in anyio.run(main)] == [0, 1]


@pytest.mark.parametrize(
    ("open_it", "said"),
    [
        (lambda: open_policy("nowhere"), "no model in nowhere"),
        (
            lambda: open_policy(ready_model()["path"], learns=GrpoSpec(tasks_per_iteration=3)),
            "tasks_per_iteration is for runs of `muarl train`",
        ),
        (
            lambda: open_policy(
                ready_model()["path"],
                learns=GrpoSpec.model_validate({"credit": {"information": {"weight": 0.5}}}),
            ),
            "looks at more than episodes",
        ),
    ],
)
def test_what_cannot_be_opened_is_said(open_it: Callable[[], Any], said: str) -> None:
    async def main() -> None:
        async with open_it():
            pass

    with pytest.raises(SetupError, match=said):
        anyio.run(main)


def test_one_that_only_samples_says_so_when_it_is_to_learn() -> None:
    async def main() -> None:
        async with open_policy(ready_model()["path"], limits=LIMITS) as model:
            await model.learn([])

    with pytest.raises(SetupError, match="learns="):
        anyio.run(main)


def test_what_nothing_can_be_learned_from_is_said(desk: Domain) -> None:
    async def learn() -> None:
        async with open_policy(ready_model()["path"], limits=LIMITS, learns=LEARNS) as model:
            groups = await play(model, desk, 0)
            with pytest.raises(
                TypeError, match=r"groups\[0\] must be a muarl Group, got .* Episode"
            ):
                await model.learn(groups[0].episodes)
            with pytest.raises(TypeError, match="groups must be a list, got None"):
                await model.learn(None)  # type: ignore[arg-type]
            with pytest.raises(ValueError, match="nothing to learn from"):
                await model.learn([])
            assert model.version == 0
        with pytest.raises(SetupError, match="the block of `open_policy` was left"):
            await model.learn(groups)

    anyio.run(learn)
