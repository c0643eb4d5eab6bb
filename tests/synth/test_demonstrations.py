"""Expert dialogues: played on the real tools and users, and believed only if they replay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from dialogue_kit import TalkingUser, dialogue, renderer, write_notes
from msgspec.structs import replace
from proof_shop import with_expert
from spec_files import spoil, write_all

from muarl.data.expert import ExpertPolicy
from muarl.data.replay import replay_problem
from muarl.data.trivial import TRIVIAL, CallOnce, DoNothing, trivial_agent
from muarl.domain import Domain, load_domain
from muarl.errors import FaultRateError, SpecError, TrainError
from muarl.messages import Message, ToolCall
from muarl.record import Episode, Outcome
from muarl.scheduler.rounds import Interrupted, StopSignal
from muarl.seeds import generator
from muarl.spec.model import ColdStartSpec
from muarl.spec.run import RolloutSpec
from muarl.synth import stages
from muarl.synth.demonstrations import demonstrations
from muarl.world import Change

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    write_all(tmp_path)
    with_expert(tmp_path)
    return tmp_path


LIMITS = RolloutSpec(max_tokens=2_000, context_tokens=20_000)


async def played(folder: Path, count: int = 6, **fields: Any) -> list[Episode]:
    spec = ColdStartSpec(episodes=count, **fields.pop("spec", {}))
    domain = load_domain(folder)
    limits = fields.pop("limits", LIMITS)
    return await demonstrations(domain, renderer(), spec, limits, run_seed=3, **fields)


async def test_as_many_dialogues_are_played_as_asked_for_and_they_replay(shop: Path) -> None:
    told: list[int] = []
    episodes = await played(shop, on_episode=told.append)
    assert len(episodes) == 6
    assert [e.outcome for e in episodes] == [Outcome.COMPLETED] * 6
    assert [e.reward for e in episodes] == [1.0] * 6
    assert all(e.num_sampled and not e.forks for e in episodes)
    assert told == [6]
    assert len(await played(shop, count=2)) == 2
    assert len(await played(shop, spec={"split": "train"}, count=1)) == 1


async def test_the_same_seed_gives_the_same_demonstrations_L5(shop: Path) -> None:
    one, two = [await played(shop) for _ in range(2)]
    assert [e.samples for e in one] == [e.samples for e in two]


async def test_the_expert_talks_with_the_user_the_cold_start_names(shop: Path) -> None:
    quiet = {"pool": {"mute": {"user": {"scripted": {"knobs": {"silence": 1.0}}}}}}
    episodes = await played(shop, spec={"user": quiet}, count=2)
    assert {e.user for e in episodes} == {"mute"}
    plain = await played(shop, count=2)
    assert {e.user for e in plain} == {""}
    assert [e.turns for e in plain] != [e.turns for e in episodes]


async def test_dialogues_that_do_not_replay_are_refused(shop: Path) -> None:
    """A tool that answers differently each time: what the expert was told cannot be verified."""
    spoil(shop / "tools.py", "def serve(world):", "calls = []\n\n\ndef serve(world):")
    spoil(shop / "tools.py", 'return "ok"', 'calls.append(1)\n        return f"ok {len(calls)}"')
    with pytest.raises(TrainError) as caught:
        await played(shop)
    message = str(caught.value)
    assert message.startswith("6 of 6 expert dialogues could not be verified; the first: ")
    assert "cold_start/0/cancel-1/0: turn " in message
    assert "cancel: answered 'ok " in message


@pytest.mark.parametrize(("max_fault_rate", "error"), [(0.2, FaultRateError), (1.0, TrainError)])
async def test_dialogues_that_end_in_a_fault_are_refused(
    shop: Path, max_fault_rate: float, error: type[Exception]
) -> None:
    spoil(shop / "expert.py", "last = history[-1]", 'raise RuntimeError("lost")')
    limits = LIMITS.model_copy(update={"max_fault_rate": max_fault_rate})
    with pytest.raises(error, match="the agent raised RuntimeError: lost"):
        await played(shop, limits=limits)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("import sys; sys.exit(0)", "the agent raised SystemExit: 0"),
        ("raise KeyboardInterrupt", "the agent raised KeyboardInterrupt"),
        ("return 3", "the agent's `act` returned 3, which is no message of an assistant's; let it"),
        ("return last", "the agent's `act` returned Message"),
    ],
)
async def test_an_expert_that_exits_or_says_no_message_is_a_fault(
    shop: Path, said: str, problem: str
) -> None:
    spoil(shop / "expert.py", "last = history[-1]", f"last = history[-1]; {said}")
    with pytest.raises(FaultRateError, match=problem):
        await played(shop)


@pytest.mark.parametrize(("lost", "is_refused"), [(1, False), (2, True)])
async def test_one_lost_dialogue_in_a_hundred_is_borne(
    shop: Path, monkeypatch: pytest.MonkeyPatch, lost: int, is_refused: bool
) -> None:
    async def problem(domain: object, task: object, episode: Episode) -> str | None:
        return "another answer" if episode.key.sample < lost else None

    monkeypatch.setattr(stages, "replay_problem", problem)
    if is_refused:
        with pytest.raises(TrainError, match=f"{lost} of 100 expert dialogues"):
            await played(shop, count=100)
    else:
        episodes = await played(shop, count=100)
        assert [e.key.sample for e in episodes] == list(range(1, 100))


async def test_a_stop_leaves_before_all_are_played(shop: Path) -> None:
    stop = StopSignal()
    with pytest.raises(Interrupted):
        await played(shop, count=200, stop=stop, on_episode=lambda _n: None, journal=Stopping(stop))


class Stopping:
    """A journal that asks for the end at its first episode."""

    def __init__(self, stop: StopSignal) -> None:
        self._stop = stop

    def append(self, episode: Episode) -> None:
        self._stop.request()


# --- replay ---------------------------------------------------------------------------------------


class Acts:
    """An agent that says its messages in order."""

    def __init__(self, *messages: Message) -> None:
        self._messages = list(messages)

    def act(self, history: Sequence[Message]) -> Message:
        return self._messages.pop(0)


def put(value: Any) -> ToolCall:
    return ToolCall("", "put", {"key": "a", "value": value})


MESSAGES = (
    Message("assistant", "", tool_calls=(put({"x": [1]}), ToolCall("", "get", {"key": "gone"}))),
    Message("assistant", "", tool_calls=(put(1),)),
    Message("assistant", "Done."),
)


@pytest.fixture
async def notes(tmp_path: Path) -> tuple[Domain, Episode]:
    domain = write_notes(tmp_path)
    policy = ExpertPolicy(Acts(*MESSAGES), renderer())
    episode = await dialogue(domain, policy, TalkingUser(["hi"])).run()
    assert episode.reward == 1.0
    return domain, episode


async def test_a_true_episode_replays(notes: tuple[Domain, Episode]) -> None:
    domain, episode = notes
    assert await replay_problem(domain, domain.tasks("train")[0], episode) is None


Plant = Callable[[Episode], None]


def in_result(turn: int, index: int, **changes: Any) -> Plant:
    def plant(episode: Episode) -> None:
        results = episode.turns[turn].results
        results[index] = replace(results[index], **changes)

    return plant


def in_changes(*changes: Change) -> Plant:
    def plant(episode: Episode) -> None:
        episode.changes = list(changes)

    return plant


def in_calls(episode: Episode) -> None:
    turn = episode.turns[1]
    turn.message = replace(
        turn.message,
        tool_calls=(replace(turn.message.tool_calls[0], arguments={"key": "a", "value": 2}),),
    )


def without_a_result(episode: Episode) -> None:
    del episode.turns[0].results[1]


@pytest.mark.parametrize(
    ("plant", "problem"),
    [
        (in_result(0, 0, content="done"), "turn 0, put: answered 'ok', recorded 'done'"),
        (in_result(0, 1, is_error=False), "turn 0, get: answered 'no note gone'"),
        (without_a_result, "turn 0: 2 calls, 1 recorded results"),
        (in_changes(), "recorded no change, now `notes.a: added 1`"),
        (
            in_changes(Change("notes.a", None, 2, "added")),
            "recorded `notes.a: added 2`, now `notes.a: added 1`",
        ),
        (in_changes(Change("notes.a", 0, 1, "changed")), "recorded `notes.a: 0 -> 1`, now"),
        (
            in_changes(Change("notes.a", None, 1, "added"), Change("notes.b", None, 1, "added")),
            "recorded `notes.b: added 1`, now no change",
        ),
        (in_calls, "the final world differs"),
    ],
)
async def test_replay_finds_what_was_changed_in_a_record(
    notes: tuple[Domain, Episode], plant: Plant, problem: str
) -> None:
    domain, episode = notes
    planted = msgspec.msgpack.decode(msgspec.msgpack.encode(episode), type=Episode)
    plant(planted)
    found = await replay_problem(domain, domain.tasks("train")[0], planted)
    assert found is not None
    assert problem in found


async def test_replay_takes_numbers_that_are_equal_for_equal(
    notes: tuple[Domain, Episode],
) -> None:
    domain, episode = notes
    episode.changes = [Change("notes.a", None, 1.0, "added")]
    assert await replay_problem(domain, domain.tasks("train")[0], episode) is None


# --- agents as policies ---------------------------------------------------------------------------


async def test_an_agents_message_that_is_too_long_is_cut_as_a_policys_would_be(
    tmp_path: Path,
) -> None:
    domain = write_notes(tmp_path)
    policy = ExpertPolicy(Acts(*MESSAGES), renderer())
    episode = await dialogue(domain, policy, TalkingUser(["hi"]), max_tokens=5).run()
    assert episode.outcome == Outcome.TRUNCATED_LENGTH
    assert episode.changes == []


async def test_a_domain_without_an_expert_has_no_cold_start(tmp_path: Path) -> None:
    write_all(tmp_path)
    with pytest.raises(SpecError, match="the domain names no expert"):
        await played(tmp_path)


async def test_what_the_expert_does_not_know_is_said_once(shop: Path) -> None:
    spoil(
        shop / "expert.py",
        "self.order = None",
        'self.order = None\n        if imperfections:\n            raise ValueError("no habits")',
    )
    with pytest.raises(SpecError) as caught:
        await played(shop, spec={"imperfections": {"lazy": 0.5}})
    (problem,) = caught.value.problems
    where = f"({shop / 'expert.py'}:9, in __init__)"
    assert problem.message == f"expert.py:Expert: no habits {where}"


async def test_a_trivial_policy_has_one_of_the_known_names(tmp_path: Path) -> None:
    domain = write_notes(tmp_path)
    kinds = {name: type(trivial_agent(name, domain, [], generator(0))) for name in TRIVIAL}
    assert len(set(kinds.values())) == len(TRIVIAL)
    assert kinds["transfer_at_once"] is CallOnce
    with pytest.raises(KeyError):
        trivial_agent("do_noting", domain, [], generator(0))
    spoil(tmp_path / "domain.yaml", "terminal: [leave]", "terminal: []")
    agent = trivial_agent("transfer_at_once", load_domain(tmp_path), [], generator(0))
    assert isinstance(agent, DoNothing)


def test_no_agent_without_skill_needs_a_model_to_be_played(tmp_path: Path) -> None:
    domain = write_notes(tmp_path)

    async def main() -> list[Outcome]:
        async with domain.server.session(domain.base.fork()) as session:
            tools = session.tools
        outcomes = []
        for name in TRIVIAL:
            policy = ExpertPolicy(trivial_agent(name, domain, tools, generator(name)), renderer())
            user = TalkingUser(["note: a is 1", "well?", "and?"])
            outcomes.append((await dialogue(domain, policy, user).run()).outcome)
        return outcomes

    assert anyio.run(main) == [Outcome.COMPLETED] * len(TRIVIAL)
