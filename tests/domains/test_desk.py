"""The order desk: what skill earns, what its lack earns, and that its splits share nothing."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path

import anyio
import pytest

from muarl.data.expert import ExpertPolicy
from muarl.data.trivial import TRIVIAL, trivial_agent
from muarl.domain import Agent, Domain, load_domain
from muarl.errors import SpecError
from muarl.messages import Message, ToolCall, ToolSpec
from muarl.record import Episode, EpisodeKey
from muarl.render import Renderer, train_tokenizer
from muarl.scheduler import Limits, run_groups
from muarl.scheduler.dialogues import DialogueRunner, spread_keys
from muarl.scheduler.journal import Unjournaled
from muarl.seeds import generator
from muarl.spec import RequestSpec, TaskSpec
from muarl.spec.run import RolloutSpec
from muarl.spec.user import ScriptedUserSpec, UserSpec

DESK = Path(__file__).parents[2] / "domains" / "desk"
FLOOR = 0.15
SPLITS = ("train", "dev", "held_out")

AgentFor = Callable[[TaskSpec, random.Random], Agent]


@cache
def desk() -> Domain:
    return load_domain(DESK)


@cache
def renderer() -> Renderer:
    return Renderer(train_tokenizer([], vocab_size=400))


def play(tasks: Sequence[TaskSpec], count: int, agent_for: AgentFor) -> list[Episode]:
    """Play as many of the tasks, spread over all."""
    tasks = tasks[:: max(1, len(tasks) // count)][:count]

    def policy_for(task: TaskSpec, key: EpisodeKey) -> ExpertPolicy:
        return ExpertPolicy(agent_for(task, generator(str(key), "agent")), renderer())

    runner = DialogueRunner(
        domain=desk(),
        tasks=tasks,
        renderer=renderer(),
        limits=RolloutSpec(max_tokens=10_000, context_tokens=100_000),
        user=UserSpec(scripted=ScriptedUserSpec()),
        policy_for=policy_for,
    )
    keys = spread_keys(tasks, count, run_seed=7, phase="test")

    async def main() -> list[Episode]:
        limits = Limits(concurrency=16, attempts=1)
        async with run_groups(keys, runner, limits=limits, journal=Unjournaled()) as groups:
            episodes = [episode async for group in groups for episode in group.episodes]
        return sorted(episodes, key=lambda episode: episode.key.task_id)

    episodes = anyio.run(main)
    assert [e.error for e in episodes if e.outcome.is_fault] == []
    return episodes


def success(episodes: Sequence[Episode]) -> float:
    return sum(episode.reward or 0.0 for episode in episodes) / len(episodes)


def expert(**imperfections: float) -> AgentFor:
    return lambda task, rng: desk().expert(task, imperfections, rng)


@cache
def tools() -> tuple[ToolSpec, ...]:
    async def main() -> tuple[ToolSpec, ...]:
        async with desk().server.session(desk().base.fork()) as session:
            return session.tools

    return anyio.run(main)


@pytest.mark.parametrize("split", SPLITS)
def test_the_expert_solves_every_task(split: str) -> None:
    episodes = play(desk().tasks(split), 300, expert())
    failed = [(e.key.task_id, e.rewards[0].reason) for e in episodes if e.reward != 1.0]
    assert failed == []
    assert {e.persona for e in episodes} == set(desk().spec.personas)
    confirmed = [m.score for e in episodes for m in e.metrics if m.score is not None]
    assert set(confirmed) == {1.0}, "the expert asks before each write"


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("name", TRIVIAL)
def test_no_trivial_policy_passes_the_floor_L10(name: str, split: str) -> None:
    """At most what its luck earns where something is to be done, and 1 wherever nothing is."""
    offered, tasks = tools(), desk().tasks(split)
    to_do = [task for task in tasks if task.gold]
    idle = 1 - len(to_do) / len(tasks)
    episodes = play(to_do, 200, lambda _task, rng: trivial_agent(name, desk(), offered, rng))
    assert idle + (1 - idle) * success(episodes) <= FLOOR


@pytest.mark.parametrize("split", SPLITS)
def test_gold_calls_change_the_world_L10(split: str) -> None:
    for task in desk().tasks(split)[:200]:
        assert anyio.run(_gold_changes, task) == bool(task.gold)


async def _gold_changes(task: TaskSpec) -> bool:
    return desk().world_for(task) != await desk().gold_world(task)


# --- imperfections --------------------------------------------------------------------------------


def test_imperfections_lower_success() -> None:
    habits = dict.fromkeys(("skip_confirm", "quit", "stale", "refuse"), 0.3)
    assert success(play(desk().tasks("train"), 100, expert(**habits))) < 0.75


@pytest.mark.parametrize("habit", ["quit", "refuse", "stale", "skip_confirm"])
def test_each_imperfection_of_consequence_lowers_success(habit: str) -> None:
    assert success(play(desk().tasks("train"), 60, expert(**{habit: 1.0}))) < 0.9


@pytest.mark.parametrize("habit", ["skip_lookup", "comply", "skip_confirm"])
def test_imperfections_of_manner_show_in_what_is_done(habit: str) -> None:
    careful, careless = (
        play(desk().tasks("train"), 60, expert(**rates)) for rates in ({}, {habit: 1.0})
    )

    def manner(episodes: list[Episode]) -> tuple[int, int, float]:
        calls = [call for episode in episodes for call in episode.calls()]
        confirmed = [m.score for e in episodes for m in e.metrics if m.score is not None]
        lookups = sum(name == "get_order" for name, _, _ in calls)
        refused = sum(is_error for _, _, is_error in calls)
        return lookups, refused, sum(confirmed) / max(1, len(confirmed))

    lookups, refused, confirmed = manner(careful)
    assert (refused, confirmed) == (0, 1.0)
    fewer, more, less = manner(careless)
    assert {
        "skip_lookup": fewer == 0 < lookups,
        "comply": more > 0,
        "skip_confirm": less < 1.0,
    }[habit]


def test_an_unknown_imperfection_is_refused_at_its_place() -> None:
    task = desk().tasks("train")[0]
    with pytest.raises(SpecError) as caught:
        desk().expert(task, {"lazy": 0.5, "quit": 0.1}, random.Random(0))
    (problem,) = caught.value.problems
    lines = (DESK / "domain.yaml").read_text().splitlines()
    assert lines[problem.line - 1].startswith("expert:")
    assert problem.column == len("expert: ") + 1
    assert "unknown imperfections ['lazy']" in problem.message
    assert "quit" in problem.message.partition("choose from")[2]


# --- reads ----------------------------------------------------------------------------------------


class Nosy:
    """Does what another agent does, and reads the world at random in between."""

    def __init__(self, agent: Agent, rng: random.Random) -> None:
        self._agent = agent
        self._rng = rng
        self._history: list[Message] = []
        self._reading = False

    def act(self, history: Sequence[Message]) -> Message:
        self._history += [] if self._reading else history[-1:]
        self._reading = self._rng.random() < 0.5
        if not self._reading:
            return self._agent.act(self._history)
        said = " ".join(message.content for message in history).replace(",", " ").split()
        tool, argument = self._rng.choice([("get_order", "order_id"), ("find_orders", "account")])
        call = ToolCall(id="read", name=tool, arguments={argument: self._rng.choice(said)})
        return Message("assistant", "", tool_calls=(call,))


def test_extra_reads_never_change_the_reward() -> None:
    def nosy(task: TaskSpec, rng: random.Random) -> Agent:
        return Nosy(expert(quit=0.3, stale=0.5)(task, rng), random.Random(task.id))

    plain = play(desk().tasks("train"), 80, expert(quit=0.3, stale=0.5))
    reading = play(desk().tasks("train"), 80, nosy)
    finished = [
        (one, two) for one, two in zip(plain, reading, strict=True) if not two.outcome.is_truncated
    ]
    assert len(finished) > 40
    assert sum(len(two.calls()) - len(one.calls()) for one, two in finished) > 100
    for one, two in finished:
        assert one.reward == two.reward
        assert one.changes == two.changes
    assert 0 < success(plain) < 1


# --- splits ---------------------------------------------------------------------------------------


def values(request: RequestSpec) -> set[str]:
    found = {fact.value for fact in request.facts if fact.id != "city"}
    return found | (values(request.instead) if request.instead else set())


def entities(task: TaskSpec) -> set[str]:
    """Orders and accounts that a task brings along or names."""
    assert task.user is not None
    orders = task.world["orders"]
    named = {value for request in task.user.requests for value in values(request)}
    return {
        *orders,
        *(order["account"] for order in orders.values()),
        *(fact.value for fact in task.user.facts),
        *named,
        *(call.arguments["order_id"] for call in task.gold),
    }


def test_the_splits_share_no_order_and_no_account_L10() -> None:
    found = [
        {entity for task in desk().tasks(split) for entity in entities(task)} for split in SPLITS
    ]
    assert [len(names) > 250 for names in found] == [True, True, True]
    assert all(one.isdisjoint(other) for one, other in combinations(found, 2))


def test_the_splits_share_no_wording_whatever_it_is_for_L10() -> None:
    """Neither for the same act nor for another one: "it is A12" must not mean an account in training
    and an order when it counts."""
    spec = desk().spec
    assert spec.user is not None
    found: dict[str, set[str]] = {split: set() for split in SPLITS}
    for phrasings in (spec.user.phrasings, *(p.phrasings for p in spec.personas.values())):
        assert set(phrasings) in (set(SPLITS), set())
        for split, acts in phrasings.items():
            wordings = {wording for act in acts.values() for wording in act}
            found[split] |= {re.sub(r"{\w+}", "{}", wording.casefold()) for wording in wordings}
    assert min(map(len, found.values())) > 30
    assert [one & other for one, other in combinations(found.values(), 2)] == [set()] * 3


def test_the_same_seed_gives_the_same_tasks_L5() -> None:
    again = load_domain(DESK)
    for split in SPLITS:
        one, two = ([t.content_hash for t in d.tasks(split)] for d in (desk(), again))
        assert one == two
        assert len(set(one)) == len(one)
    assert again.base == desk().base


def test_the_gold_calls_earn_one_and_the_issue_is_met() -> None:
    spec = desk().spec
    assert 5 <= len(tools()) <= 7
    assert {*spec.writes, *spec.terminal} <= {tool.name for tool in tools()}
    assert len(spec.writes) >= 1
    assert len(spec.personas) >= 3
    assert 200 <= len(desk().base["orders"]) <= 1_000
