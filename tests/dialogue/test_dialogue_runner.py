"""From plans to dialogues: seeds of attempts, faults from outside, whole rounds."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from dialogue_kit import Sampler, TalkingUser, ids_of, note_task, renderer, write_notes
from hypothesis import given
from hypothesis import strategies as st

from muarl.dialogue import episode_seed
from muarl.domain import Domain
from muarl.errors import FaultRateError, UserError
from muarl.policy import GenerateRequest, Generation
from muarl.record import Episode, Outcome, UserReply
from muarl.scheduler import EpisodePlan, Limits
from muarl.scheduler.dialogues import DialogueRunner, episode_keys, spread_keys
from muarl.scheduler.rounds import Interrupted, StopSignal, bounds, run_round
from muarl.spec.run import RolloutSpec
from muarl.spec.user import ScriptedUserSpec, UserSpec
from muarl.testing import build_key, run_in_virtual_time


@pytest.fixture
def domain(tmp_path_factory: pytest.TempPathFactory) -> Domain:
    return write_notes(tmp_path_factory.mktemp("notes"))


class Journal:
    def __init__(self) -> None:
        self.episodes: list[Episode] = []

    def append(self, episode: Episode) -> None:
        self.episodes.append(episode)


TASKS = [note_task(id=f"note-{i}") for i in range(3)]
LIMITS = RolloutSpec(max_tokens=400, context_tokens=8_000, attempts=3)


def says_hello() -> Sampler:
    return Sampler(lambda _request: (ids_of("hello"), True))


def runner(domain: Domain, policy: Any = None) -> DialogueRunner:
    return DialogueRunner(
        domain=domain,
        tasks=TASKS,
        renderer=renderer(),
        limits=LIMITS,
        user=UserSpec(scripted=ScriptedUserSpec()),
        policy_for=lambda _task, _key: policy or says_hello(),
    )


class SeededFault(TalkingUser):
    """Her contract is broken by one seed, whatever is said."""

    def __init__(self, seed: int, bad: set[int]) -> None:
        super().__init__(["hi"])
        self._is_bad = seed in bad

    async def reply(self, agent_text: str) -> UserReply:
        if self._is_bad:
            raise UserError("no phrasing for act 'confirm'")
        return await super().reply(agent_text)


@pytest.mark.anyio
async def test_another_attempt_draws_anew_so_a_seeded_fault_does_not_recur_L2(
    domain: Domain, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = episode_keys(TASKS, run_seed=0, phase="train", group_size=2)
    bad = {episode_seed(key, "user") for key in keys[:3]}
    seeds: list[int] = []

    def user(who: object, task: object, persona: str, seed: int, speaker: object) -> SeededFault:
        seeds.append(seed)
        return SeededFault(seed, bad)

    monkeypatch.setattr(domain, "user", user)
    policy, journal = says_hello(), Journal()
    limits = Limits(concurrency=1, attempts=2, max_fault_rate=1.0)
    groups = await run_round(keys, runner(domain, policy), limits=limits, journal=journal)
    outcomes = [episode.outcome for group in groups for episode in group.episodes]
    assert outcomes == [Outcome.COMPLETED] * 6
    assert len(seeds) == len(set(seeds)) == 9
    assert set(seeds[:1]) == {episode_seed(keys[0], "user")}
    drawn = [request.seed for request in policy.requests]
    assert len(drawn) == len(set(drawn)), "the policy draws anew as well"


@pytest.mark.anyio
async def test_a_first_attempt_is_seeded_by_its_key_alone_L5(domain: Domain) -> None:
    key = build_key(TASKS[0].id)
    assert episode_seed(key, "user", 1) == episode_seed(key, "user")
    assert episode_seed(key, "user", 2) != episode_seed(key, "user", 3) != episode_seed(key, "user")


class Stuck:
    policy_version = 0

    async def generate(self, request: GenerateRequest) -> Generation:
        await anyio.sleep_forever()
        raise AssertionError


def test_a_dialogue_cut_off_by_its_deadline_still_says_what_it_was_L2(
    domain: Domain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domain, "user", lambda *_: TalkingUser(["hi"]))
    keys, journal = episode_keys(TASKS[:1], run_seed=0, phase="train"), Journal()

    async def main() -> Episode:
        limits = Limits(deadline_s=5.0, attempts=2, max_fault_rate=1.0)
        (group,) = await run_round(keys, runner(domain, Stuck()), limits=limits, journal=journal)
        return group.episodes[0]

    episode = run_in_virtual_time(main)
    assert (episode.outcome, episode.error) == (
        Outcome.INFRA_FAULT,
        "dialogue did not finish within 5 s (in train/0/note-0/0: policy message 0)",
    )
    assert (episode.domain, episode.persona, episode.split) == ("notes", "plain", "train")
    assert episode.task_hash == TASKS[0].situation_hash
    assert episode.system == domain.spec.rules
    assert episode.reward is None
    assert journal.episodes == [episode]


@pytest.mark.anyio
async def test_a_round_comes_back_in_the_order_it_was_asked_for(
    domain: Domain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domain, "user", lambda *_: TalkingUser(["hi"]))
    keys = episode_keys(reversed(TASKS), run_seed=0, phase="train", group_size=2)
    told: list[int] = []
    groups = await run_round(
        keys,
        runner(domain),
        limits=bounds(LIMITS),
        journal=Journal(),
        on_group=lambda group: told.append(len(group.episodes)),
    )
    assert [e.key for group in groups for e in group.episodes] == keys
    assert told == [2, 2, 2]


@pytest.mark.anyio
async def test_a_round_that_is_asked_to_stop_finishes_what_is_live_and_says_so_L9(
    domain: Domain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domain, "user", lambda *_: TalkingUser(["hi"]))
    keys = episode_keys(TASKS, run_seed=0, phase="train", group_size=2)
    journal, stop = Journal(), StopSignal()
    limits = Limits(concurrency=1)
    with pytest.raises(Interrupted):
        await run_round(
            keys,
            runner(domain),
            limits=limits,
            journal=journal,
            stop=stop,
            on_group=lambda _group: stop.request(),
        )
    assert 2 <= len(journal.episodes) < 6
    done = {episode.key: episode for episode in journal.episodes}
    again = Journal()
    groups = await run_round(keys, runner(domain), limits=limits, journal=again, done=done)
    assert len(groups) == 3
    assert len(again.episodes) == 6 - len(done), "what was finished is not played again"


@pytest.mark.anyio
async def test_a_stop_between_rounds_is_not_forgotten(domain: Domain) -> None:
    """A round that fits into the free slots would otherwise be live before it could drain."""
    keys, journal, stop = episode_keys(TASKS, run_seed=0, phase="train"), Journal(), StopSignal()
    stop.request()
    with pytest.raises(Interrupted):
        await run_round(keys, runner(domain), limits=Limits(), journal=journal, stop=stop)
    assert journal.episodes == []


@pytest.mark.anyio
async def test_what_every_dialogue_shares_and_is_broken_stops_the_round(
    domain: Domain, monkeypatch: pytest.MonkeyPatch
) -> None:
    def user(*_: object) -> TalkingUser:
        return SeededFault(0, {0})

    monkeypatch.setattr(domain, "user", user)
    keys = episode_keys(TASKS, run_seed=0, phase="train", group_size=64)
    with pytest.raises(FaultRateError, match="no phrasing"):
        await run_round(keys, runner(domain), limits=Limits(concurrency=8), journal=Journal())


@pytest.mark.anyio
async def test_a_plan_gives_the_episode_of_its_key(
    domain: Domain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(domain, "user", lambda *_: TalkingUser(["hi"]))
    key = build_key("note-1", 5, run_seed=3, phase="eval:cold", iteration=2)
    episode = await runner(domain)(EpisodePlan(key))
    assert episode.key == key
    assert episode.task_hash == TASKS[1].situation_hash


@given(num_tasks=st.integers(1, 7), count=st.integers(1, 30))
def test_dialogues_are_spread_evenly_over_tasks_and_are_as_many_as_asked_for(
    num_tasks: int, count: int
) -> None:
    tasks = [note_task(id=f"n{9 - i}") for i in range(num_tasks)]
    keys = spread_keys(tasks, count, run_seed=1, phase="p")
    assert len(set(keys)) == len(keys) == count
    per_task = [[key.sample for key in keys if key.task_id == task.id] for task in tasks]
    assert all(samples == list(range(len(samples))) for samples in per_task)
    sizes = [len(samples) for samples in per_task]
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True), "the first tasks come first"
    groups = [key.group for key in keys]
    assert groups == sorted(groups, key=groups.index), "groups stand together"
