"""An environment in Gymnasium's form answers in the place of user and tools, and its rewards count."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
from bad_input import InProcess
from dialogue_kit import ids_of, renderer
from environment_kit import CAPS, WALK, Says, calls, played, write_walk

from muarl import AgentContext, Rollouts
from muarl.data.replay import replay_all
from muarl.domain import load_domain
from muarl.errors import SpecError
from muarl.messages import ToolCall
from muarl.record import Outcome
from muarl.spec import load_run
from muarl.spec.user import FixedUserSpec, UserKindSpec
from muarl.testing import ScriptedPolicy
from muarl.testing.playing import play_agents
from muarl.train.run_domain import refuse_unfit

BY_CALL = "choices: [left, right], action: call"


@pytest.mark.anyio
async def test_what_it_says_is_what_the_policy_reads_and_its_rewards_add_up(tmp_path: Path) -> None:
    (episode,) = await played(write_walk(tmp_path), lambda: Says("Right.", "hello", " RIGHT"))
    assert (episode.outcome, episode.reward) == (Outcome.COMPLETED, 1.0)
    assert episode.opening.text.endswith("Where to?")
    assert [turn.reply.text for turn in episode.turns if turn.reply] == [
        "You are at 1.",
        "That is no action. Choose one of: left, right.",
        "You are at 2.",
    ]
    assert episode.tools == []
    assert {change.path: change.after for change in episode.changes} == {
        "environment.messages": 3,
        "environment.over": True,
        "environment.return": 1.0,
    }


@pytest.mark.anyio
async def test_an_action_may_be_a_call_and_the_last_one_ends_the_dialogue(tmp_path: Path) -> None:
    domain = load_domain(write_walk(tmp_path, gymnasium=BY_CALL))
    (episode,) = await played(domain, lambda: Says("right", ("right",), ("right", "right")))
    assert (episode.outcome, episode.reward) == (Outcome.COMPLETED, 1.0)
    (tool,) = episode.tools
    assert tool.parameters["properties"]["action"]["enum"] == ["left", "right"]
    first, second, third = episode.turns
    assert first.reply is not None
    assert first.reply.text == "To act, call act(action=...)."
    assert [r.content for r in second.results] == ["You are at 1."]
    assert [(r.content, r.is_error) for r in third.results] == [
        ("You are at 2.", False),
        ("not done: this is over", True),
    ]
    assert third.reply is None, "it is over at once: nobody has to say anything more"


@pytest.mark.anyio
async def test_a_call_that_is_no_action_is_answered_and_not_taken(tmp_path: Path) -> None:
    domain = load_domain(write_walk(tmp_path, gymnasium=BY_CALL))
    odd = calls(("act", {"action": "up"}), ("act", {"action": 1}), ("fly", {}), turn=9)
    (episode,) = await played(domain, lambda: Says(odd, ("left",)))
    assert [r.content for r in episode.turns[0].results] == [
        "That is no action. Choose one of: left, right.",
        "there is act(action), a text",
        "there is act(action), a text",
    ]
    assert (episode.outcome, episode.reward) == (Outcome.COMPLETED, 0.0)
    (without,) = await played(
        write_walk(tmp_path), lambda: Says(calls(("act", {"action": "right"})), "left")
    )
    assert without.turns[0].results[0].is_error


@pytest.mark.anyio
async def test_an_agents_own_loop_may_lead_it(tmp_path: Path) -> None:
    async def agent(context: AgentContext) -> None:
        while True:
            await context.generate(context.opening)
            await context.tell_user("right")

    async def caller(context: AgentContext) -> None:
        await context.generate(context.opening)
        await context.call_tool("act", {"action": "right"})
        await context.call_tool("act", {"action": "right"})

    for loop, gymnasium in ((agent, "choices: [left, right]"), (caller, BY_CALL)):
        domain = load_domain(write_walk(tmp_path / loop.__name__, gymnasium=gymnasium))
        policy = ScriptedPolicy(["Hm."] * 3, ids_of)
        async with Rollouts(
            domain, policy, renderer(), loop=loop, limits=CAPS, group_size=1
        ) as rollouts:
            groups = [group async for group in rollouts]
        ends = {(e.outcome, e.reward) for group in groups for e in group.episodes}
        assert ends == {(Outcome.COMPLETED, 1.0)}


@pytest.mark.anyio
async def test_a_cap_ends_it_and_what_was_earned_by_then_counts(tmp_path: Path) -> None:
    few = CAPS.model_copy(update={"max_turns": 1})
    (episode,) = await played(write_walk(tmp_path), lambda: Says("right"), caps=few)
    assert (episode.outcome, episode.reward) == (Outcome.TRUNCATED_TURNS, 0.5)


@pytest.mark.anyio
async def test_the_sum_of_rewards_is_scaled_as_the_domain_says(tmp_path: Path) -> None:
    scaled = "reward: [{scaled: {path: environment.return, worst: -1, best: 3}}]\n"
    file = write_walk(
        tmp_path, more=scaled, gymnasium="choices: [left, right], arguments: {worth: 2}"
    )
    (episode,) = await played(file, lambda: Says("right", "left", "left"))
    assert episode.reward == (2 - -1) / 4
    (best,) = await played(file, lambda: Says("right"))
    assert best.reward == 1.0
    assert best.rewards[0].reason == "environment.return is 4, from -1 to 3"


@pytest.mark.anyio
async def test_actions_may_be_numbers_or_any_text(tmp_path: Path) -> None:
    numbered = WALK.replace(
        "self.worth = worth", "self.worth = worth\n        self.action_space = Space()"
    )
    numbered += "\n\nclass Space:\n    n, start = 2, 0\n"
    file = write_walk(tmp_path, numbered, gymnasium="arguments: {}")
    (episode,) = await played(file, lambda: Says("2", "one", "1.", "1"))
    assert episode.turns[0].reply is not None
    assert episode.turns[0].reply.text == "That is no action. Say a number from 0 to 1."
    assert (len(episode.turns), episode.reward) == (4, 1.0)
    spoken = WALK.replace("action == 1", "action == 'Go right!'")
    (said,) = await played(
        write_walk(tmp_path / "spoken", spoken, gymnasium="arguments: {}"),
        lambda: Says("Go right!"),
    )
    assert said.reward == 1.0


@pytest.mark.anyio
async def test_the_same_seed_gives_the_same_bytes_and_what_was_recorded_is_replayed_L5(
    tmp_path: Path,
) -> None:
    for gymnasium in ("choices: [left, right]", BY_CALL):
        domain = load_domain(write_walk(tmp_path, gymnasium=gymnasium))
        said = ("right", ("left",)) if gymnasium == BY_CALL else ("right", "left")
        first = await played(domain, lambda: Says(*said), tasks=4)  # noqa: B023
        again = await played(load_domain(tmp_path), lambda: Says(*said), tasks=4)  # noqa: B023
        assert first == again
        tally = await replay_all(domain, first, lambda _, difference: pytest.fail(difference))
        assert (tally.same, tally.different) == (4, 0)


@pytest.mark.anyio
async def test_each_dialogue_has_an_environment_of_its_own_that_is_closed_L3_L7(
    tmp_path: Path,
) -> None:
    domain = load_domain(write_walk(tmp_path))
    episodes = await play_agents(
        domain, domain.tasks("train"), lambda _, rng: Says(*rng.choices(["left", "right"], k=3))
    )
    assert len({turn.reply.text for e in episodes for turn in e.turns if turn.reply}) > 1
    made = domain.python.load("walk.py:Walk", ())
    assert len(made.closed) == len(episodes) == 6


def test_a_person_may_be_the_agent_and_not_the_user(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_walk(tmp_path, more="expert: walk.py:Walk\n")
    InProcess(capfd)("play", tmp_path).refuses(
        2, "an environment answers here, and no user: be the agent"
    )


@pytest.mark.anyio
async def test_calls_alone_begin_it(tmp_path: Path) -> None:
    domain = load_domain(write_walk(tmp_path, gymnasium=BY_CALL))
    world = domain.world_for(domain.tasks("train")[0])
    async with domain.server.session(world) as session:
        answer = await session.call(ToolCall("1", "act", {"action": "right"}))
    assert (answer.content, world["environment"]["return"]) == ("You are at 1.", 0.5)


def test_a_task_is_a_seed_and_no_two_are_the_same(tmp_path: Path) -> None:
    domain = load_domain(write_walk(tmp_path))
    seeds = [
        task.world["environment"]["task"]["seed"]
        for split in ("train", "held_out")
        for task in domain.tasks(split)
    ]
    assert len(set(seeds)) == 9
    assert [t.id for t in domain.tasks("held_out")] == ["held_out-0", "held_out-1", "held_out-2"]
    more = load_domain(write_walk(tmp_path, more=""))
    assert more.tasks("train") == domain.tasks("train")


def test_another_user_is_refused_by_name(tmp_path: Path) -> None:
    domain = load_domain(write_walk(tmp_path))
    task = domain.tasks("train")[0]
    with pytest.raises(SpecError, match=r"an environment answers in this domain; leave the run's"):
        domain.user(UserKindSpec(fixed=FixedUserSpec()), task, "environment", 0)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("user: {fixed: {}}", r"run.yaml:\d+:\d+: an environment answers in this domain"),
        (
            "rollout: {perturb: {server_error: 0.1, typo: 0.1}}",
            r"run.yaml:\d+:\d+: an environment answers all calls .* \(server_error\); only what is said",
        ),
        ("rollout: {perturb: {typo: 0.1}}", ""),
    ],
)
def test_a_run_that_does_not_fit_is_refused_where_it_says_so(
    tmp_path: Path, given: str, says: str
) -> None:
    write_walk(tmp_path)
    (tmp_path / "run.yaml").write_text(
        f"version: 1\ndomain: domain.yaml\nmodel: {{tiny: {{}}}}\ngrpo: {{tasks_per_iteration: 2}}\n{given}\n"
    )
    run = load_run(tmp_path / "run.yaml")
    if not says:
        refuse_unfit(run, load_domain(tmp_path))
        return
    with pytest.raises(SpecError, match=says):
        refuse_unfit(run, load_domain(tmp_path))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("tools: {python: tools.py:serve}", "has no tools: it answers the policy's calls itself"),
        ("user: {}\ndevice: {tools: {python: a.py:b}}", "has no device: no user acts in it"),
        ("world: {data: {environment: {}}}", "the world has a key 'environment'"),
    ],
)
def test_what_an_environment_leaves_no_room_for_is_refused(
    tmp_path: Path, change: str, says: str
) -> None:
    with pytest.raises(SpecError, match=says):
        _ = load_domain(write_walk(tmp_path, more=change)).base


@pytest.mark.parametrize(
    ("gymnasium", "says"),
    [
        ('id: "x:Y-v0"', "give exactly one of make and id"),
        ("choices: [Left, left]", "two choices are the same but for capitals"),
        ("choice: [left]", "choice"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_place(
    tmp_path: Path, gymnasium: str, says: str
) -> None:
    with pytest.raises(SpecError, match=rf"domain.yaml:5:\d+: .*{says}"):
        load_domain(write_walk(tmp_path, gymnasium=gymnasium))


def test_tasks_of_files_beside_an_environment_are_refused(tmp_path: Path) -> None:
    file = write_walk(tmp_path)
    file.write_text(file.read_text().replace("{splits:", "{files: [a.yaml], splits:"))
    with pytest.raises(SpecError, match="the tasks are the environment's own"):
        load_domain(file)


REAL = """\
import gymnasium
import random


class Text(gymnasium.Env):
    action_space = gymnasium.spaces.Discrete(2, start=5)
    observation_space = gymnasium.spaces.Text(100)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.wanted = int(self.np_random.integers(5, 7))
        return f"Say {self.wanted}.", {}

    def step(self, action):
        assert self.action_space.contains(action)
        return "Well.", float(action == self.wanted), True, False, {}


def make():
    return gymnasium.wrappers.TimeLimit(Text(), 3)


gymnasium.register("muarl-test/Text-v0", entry_point=make)
"""


@pytest.mark.anyio
async def test_a_real_gymnasium_environment_is_one(tmp_path: Path) -> None:
    if os.environ.get("MUARL_REQUIRE_GYMNASIUM") is None:
        pytest.importorskip("gymnasium")
    file = write_walk(tmp_path, REAL, gymnasium="arguments: {}")
    file.write_text(file.read_text().replace("walk.py:Walk", "walk.py:make"))

    class Reads:
        def act(self, history: Any) -> Any:
            return Says(history[-1].content.removeprefix("Say ")).act(history)

    episodes = await played(file, Reads, tasks=6)
    assert {(e.outcome, e.reward) for e in episodes} == {(Outcome.COMPLETED, 1.0)}
    assert {e.opening.text for e in episodes} == {"Say 5.", "Say 6."}
    file.write_text(file.read_text().replace('make: "walk.py:make"', 'id: "muarl-test/Text-v0"'))
    (other,) = await played(file, Reads)
    assert other.reward == 1.0


def test_ids_of_calls_do_not_repeat_in_a_dialogue() -> None:
    from muarl.data.trivial import RandomAction

    agent = RandomAction([calls(("act", {"action": "left"}))], random.Random(0))
    made: list[ToolCall] = [agent.act([]).tool_calls[0] for _ in range(3)]
    assert len({call.id for call in made}) == 3
