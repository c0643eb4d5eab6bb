"""Law L10: what is evaluated was not trained on, and it is as much as was asked for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from dialogue_kit import renderer
from proof_shop import generated, with_expert
from spec_files import write_all

from muarl.data.expert import ExpertPolicy
from muarl.domain import Domain, load_domain
from muarl.errors import SpecError
from muarl.evaluate.held_out import HeldOut, evaluation_tasks, refuse_near_duplicates
from muarl.record import Outcome
from muarl.scheduler.journal import Unjournaled
from muarl.seeds import generator
from muarl.spec import FactSpec, PredicateSpec, RequestSpec, RunSpec, UserGoalSpec
from muarl.testing import ScriptedPolicy


def run(episodes: int = 5, **changes: object) -> RunSpec:
    return RunSpec.model_validate(
        {
            "version": 1,
            "domain": "domain.yaml",
            "model": {"tiny": {}},
            "grpo": {},
            "rollout": {"max_tokens": 2_000, "context_tokens": 20_000},
            "eval": {"episodes": episodes},
            **changes,
        }
    )


def held_out(domain: Domain, spec: RunSpec) -> HeldOut:
    return HeldOut(domain=domain, run=spec, renderer=renderer(), journal=Unjournaled())


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    write_all(tmp_path)
    generated(tmp_path)
    with_expert(tmp_path)
    return tmp_path


def planted(shop: Path, twin: str, **changes: object) -> Domain:
    """The shop, with one training task put into the other split."""
    domain = load_domain(shop)
    train, held_out = domain.tasks("train"), domain.tasks("held_out")
    changes |= {"split": "held_out", **({"id": twin} if twin else {})}
    copy = train[1].model_copy(update=changes)
    domain._tasks["held_out"] = (*held_out, copy)
    return domain


def test_other_tasks_than_those_trained_on_are_evaluated(shop: Path) -> None:
    tasks = evaluation_tasks(load_domain(shop), run())
    assert [task.id for task in tasks] == ["held_out-0", "held_out-1"]
    assert [task.id for task in evaluation_tasks(load_domain(shop), run(episodes=1))] == [
        "held_out-0"
    ]


@pytest.mark.parametrize("twin", ["", "renamed"])
def test_a_task_that_is_trained_on_is_refused_by_its_id_and_by_its_content_L10(
    shop: Path, twin: str
) -> None:
    with pytest.raises(SpecError, match="shares 1 tasks with what is trained on"):
        evaluation_tasks(planted(shop, twin), run())


@pytest.mark.parametrize(
    "changes",
    [
        {"goal": "Cancel W1, please."},
        {"personas": ["terse"]},
        {"reward": [PredicateSpec(gold_world=True)]},
        {
            "user": UserGoalSpec(
                requests=[
                    RequestSpec(
                        ask="cancel",
                        facts=[FactSpec(id="order_id", value="W1", disclose="on_request")],
                    )
                ]
            )
        },
    ],
)
def test_the_same_thing_to_do_in_other_words_is_refused_L10(
    shop: Path, changes: dict[str, object]
) -> None:
    with pytest.raises(SpecError, match="shares 1 tasks with what is trained on"):
        evaluation_tasks(planted(shop, "renamed", **changes), run())


@pytest.mark.parametrize(
    "changes",
    [
        {"world": {"orders": {"W1": {"status": "sent"}}}},
        {"gold": []},
        {"user": UserGoalSpec(requests=[RequestSpec(ask="cancel")])},
    ],
)
def test_another_thing_to_do_is_another_task(shop: Path, changes: dict[str, object]) -> None:
    assert len(evaluation_tasks(planted(shop, "renamed", **changes), run())) == 3


def test_where_only_the_goal_says_what_to_do_its_words_are_compared_L10(shop: Path) -> None:
    bare = {"user": None, "gold": [], "world": {}}
    domain = planted(shop, "other", **bare, goal="Ask when W1 comes.")
    first, *others = domain.tasks("train")
    asks = {"goal": "Ask when W2 comes.", "id": "asks", **bare}
    domain._tasks["train"] = (first.model_copy(update=asks), *others)
    assert len(evaluation_tasks(domain, run())) == 3
    asks["goal"] = "ask when W1 comes"
    domain._tasks["train"] = (first.model_copy(update=asks), *others)
    with pytest.raises(SpecError, match="shares 1 tasks"):
        evaluation_tasks(domain, run())


def test_the_training_split_itself_is_refused_L10(shop: Path) -> None:
    for changes in ({}, {"grpo": None, "cold_start": {}}):
        spec = run(**{"eval": {"split": "train"}, **changes})
        with pytest.raises(SpecError, match="split 'train' shares 3 tasks with what is trained on"):
            evaluation_tasks(load_domain(shop), spec)
    untrained = run(eval={"split": "train"}, grpo=None)
    assert len(evaluation_tasks(load_domain(shop), untrained)) == 3


@pytest.mark.parametrize("goal", ["Have W1 cancelled, please.", "It was 1 mistake."])
def test_the_same_task_in_other_words_is_refused_with_the_pair_L10(shop: Path, goal: str) -> None:
    message = "split 'held_out' has 1 tasks nearly the same .*'twin' like 'train-1'"
    with pytest.raises(SpecError, match=message):
        refuse_near_duplicates(planted(shop, "twin", goal=goal), run())


def test_a_task_that_is_nearly_one_that_is_trained_on_is_refused_with_the_pair_L10(
    shop: Path,
) -> None:
    goal = "Have order W1 cancelled, which you made by mistake last night, and be told so by mail."
    bare: dict[str, object] = {"user": None, "gold": [], "world": {}}
    domain = planted(shop, "twin", goal=goal.replace("mail", "phone"), **bare)
    first, second, *others = domain.tasks("train")
    refuse_near_duplicates(domain, run())
    trained = second.model_copy(update={"goal": goal, **bare})
    domain._tasks["train"] = (first, trained, *others)
    message = "split 'held_out' has 1 tasks nearly the same .*'twin' like 'train-1'"
    with pytest.raises(SpecError, match=message):
        refuse_near_duplicates(domain, run())
    with pytest.raises(SpecError, match=message):
        refuse_near_duplicates(domain, run(grpo=None), trained=["train"])
    refuse_near_duplicates(domain, run(grpo=None, cold_start=None))


@pytest.mark.anyio
@pytest.mark.parametrize("episodes", [1, 2, 3, 5])
async def test_an_evaluation_plays_as_many_dialogues_as_the_run_says_L8(
    shop: Path, episodes: int
) -> None:
    domain = load_domain(shop)
    played = await held_out(domain, run(episodes)).by(
        lambda task, key: ExpertPolicy(domain.expert(task, {}, generator(str(key))), renderer()),
        phase="p",
    )
    assert [e.reward for e in played] == [1.0] * episodes
    sizes = Counter(e.key.task_id for e in played).values()
    assert max(sizes) - min(sizes) <= 1
    assert len({e.key for e in played}) == episodes


@pytest.mark.anyio
async def test_trials_play_the_same_tasks_again_with_draws_of_their_own(shop: Path) -> None:
    spec = run(eval={"episodes": 2, "trials": 3})
    episodes = await held_out(load_domain(shop), spec).by_trivial("do_nothing")
    assert Counter(e.key.task_id for e in episodes) == {"held_out-0": 3, "held_out-1": 3}
    assert len({e.key for e in episodes}) == 6


@pytest.mark.anyio
async def test_a_policy_is_sampled_at_the_evaluations_temperature(shop: Path) -> None:
    policy = ScriptedPolicy(["Done, anything else?"] * 9, encode=renderer().tokenizer.encode)
    episodes = await held_out(load_domain(shop), run(2)).by_policy(
        policy, phase="cold", temperature=0.25
    )
    assert {request.temperature for request in policy.requests} == {0.25}
    assert {e.key.phase for e in episodes} == {"eval:cold:T0.25"}


@pytest.mark.anyio
async def test_a_trivial_policy_is_scored_on_the_same_tasks_L10(shop: Path) -> None:
    episodes = await held_out(load_domain(shop), run(2)).by_trivial("do_nothing")
    assert [e.key.task_id for e in episodes] == ["held_out-0", "held_out-1"]
    assert [e.reward for e in episodes] == [0.0, 0.0]
    assert not any(e.outcome.is_fault or e.outcome == Outcome.TRUNCATED_LENGTH for e in episodes)
