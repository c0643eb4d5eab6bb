"""What is counted adds up, whatever dialogues do, on asyncio, on trio and in virtual time."""

from __future__ import annotations

from collections import Counter
from typing import Any

import anyio
import pytest
from dialogue_kit import write_notes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from observed_run import GET, SCRIPT, ListJournal, observed_round, says

from muarl.domain import Domain
from muarl.errors import EpisodeTimeout, PolicyError
from muarl.observe import Counters, Observation
from muarl.policy import EngineLoad, GenerateRequest, Generation
from muarl.record import Episode, Outcome
from muarl.scheduler import EpisodePlan, Limits, run_groups
from muarl.testing import build_episode, build_key, run_in_virtual_time


@pytest.fixture
def domain(tmp_path_factory: pytest.TempPathFactory) -> Domain:
    return write_notes(tmp_path_factory.mktemp("notes"))


class CheckedCounters(Counters):
    """Checks the first invariant at every event, against its own idea of what is live."""

    def __init__(self) -> None:
        super().__init__(clock=lambda: 0.0)
        self.alive: set[EpisodePlan] = set()
        self.ended: list[tuple[Episode, bool]] = []

    def attempt_started(self, plan: EpisodePlan) -> None:
        super().attempt_started(plan)
        self.alive.add(plan)
        self.check()

    def attempt_ended(self, plan: EpisodePlan, episode: Episode, retry_after_s: Any) -> None:
        super().attempt_ended(plan, episode, retry_after_s)
        self.alive.remove(plan)
        self.ended.append((episode, retry_after_s is None))
        self.check()

    def check(self) -> None:
        snapshot = self.snapshot()
        t = snapshot.totals
        assert snapshot.live == len(self.alive)
        assert t.started == len(self.alive) + t.final + t.retried + t.cut
        assert (t.final, t.retried) == (
            sum(final for _, final in self.ended),
            sum(not final for _, final in self.ended),
        )


ATTEMPT = st.tuples(
    st.integers(0, 4),  # messages
    st.sampled_from([0.5, 1.0, 4.0]),  # seconds each takes: with 4 of 4 s the deadline passes
    st.sampled_from([Outcome.COMPLETED, Outcome.TRUNCATED_TURNS, Outcome.USER_FAULT]),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    acts=st.lists(st.lists(ATTEMPT, min_size=1, max_size=3), min_size=1, max_size=12),
    concurrency=st.integers(1, 5),
    leave_after_s=st.sampled_from([2.0, 7.0, 1000.0]),
)
def test_started_is_live_and_final_and_retried_and_cut_and_tokens_are_the_episodes_own(
    acts: list[list[tuple[int, float, Outcome]]], concurrency: int, leave_after_s: float
) -> None:
    keys = [build_key(f"task-{i // 2}", i % 2) for i in range(len(acts))]
    counters = CheckedCounters()
    generated = 0

    class Policy:
        policy_version = 0

        async def generate(self, request: GenerateRequest) -> Generation:
            nonlocal generated
            await anyio.sleep(request.temperature)
            generated += 5
            return Generation([1] * 5, [-1.0] * 5, "stop", 0)

    async def run_dialogue(plan: EpisodePlan) -> Episode:
        attempts = acts[keys.index(plan.key)]
        messages, seconds, outcome = attempts[min(plan.attempt, len(attempts)) - 1]
        policy = counters.policy(plan, Policy())
        for _ in range(messages):
            await policy.generate(GenerateRequest([1], "d", 0, 8, seconds, (2,)))
        reward = 1.0 if messages % 2 else 0.5
        return build_episode(plan.key, outcome=outcome, num_turns=messages, reward=reward)

    async def main() -> None:
        limits = Limits(concurrency=concurrency, attempts=2, deadline_s=15.0, max_fault_rate=1.0)
        with anyio.move_on_after(leave_after_s):
            async with run_groups(
                keys, run_dialogue, limits=limits, journal=ListJournal(), observer=counters
            ) as groups:
                async for _ in groups:
                    pass
        before = counters.snapshot()
        counters.cut()
        assert counters.snapshot().totals.cut == before.live == len(counters.alive)
        assert counters.snapshot().live == 0

    run_in_virtual_time(main)
    snapshot = counters.snapshot()
    t = snapshot.totals
    assert t.sampled_tokens == generated
    own = sum(episode.num_sampled for episode, _ in counters.ended)
    was_cut = t.cut or snapshot.faults.get("EpisodeTimeout", 0)
    assert t.sampled_tokens == own or (was_cut and t.sampled_tokens > own)
    final = [episode for episode, is_final in counters.ended if is_final]
    assert t.kept_tokens == sum(e.num_sampled for e in final if not e.outcome.is_fault)
    assert snapshot.outcomes == Counter(e.outcome.value for e in final)
    assert snapshot.faults == Counter(e.fault for e, _ in counters.ended if e.fault)
    assert t.scored == sum(e.reward is not None for e in final)
    assert t.succeeded == sum(e.reward == 1.0 for e in final)
    assert snapshot.policy.now == 0
    assert snapshot.policy.done * 5 == generated


@pytest.mark.anyio
async def test_messages_calls_replies_and_tokens_of_real_dialogues_are_counted(
    domain: Domain,
) -> None:
    counters, journal = CheckedCounters(), ListJournal()
    groups = await observed_round(domain, counters, journal=journal)
    snapshot = counters.snapshot()
    t = snapshot.totals
    assert (t.started, t.final, t.retried, t.groups) == (4, 4, 0, len(groups) == 2 and 2)
    assert t.sampled_tokens == t.kept_tokens == sum(e.num_sampled for e in journal.episodes) > 0
    assert (snapshot.policy.done, snapshot.tools.done, snapshot.users.done) == (16, 8, 12)
    assert t.tool_errors == 4
    assert snapshot.outcomes == {"completed": 4}
    assert (t.scored, t.succeeded) == (4, 4)
    assert snapshot.live == snapshot.policy.now == snapshot.tools.now == snapshot.users.now == 0


@pytest.mark.anyio
async def test_faults_are_counted_by_the_error_that_caused_them(domain: Domain) -> None:
    class Down:
        policy_version = 0

        async def generate(self, request: GenerateRequest) -> Generation:
            raise PolicyError("no policy answered at http://127.0.0.1:8000/v1")

    def policy_for(_task: object, key: Any) -> Any:
        return Down() if key.sample else says(GET, *SCRIPT[:1], "Done.", "More.")

    counters = CheckedCounters()
    await observed_round(domain, counters, policy_for=policy_for, attempts=3)
    snapshot = counters.snapshot()
    assert snapshot.faults == {"PolicyError": 6}
    assert snapshot.last_fault.startswith("PolicyError: no policy answered at")
    assert snapshot.totals.retried == 4
    assert snapshot.policy.failed == 6
    assert snapshot.outcomes == {"completed": 2, "infra_fault": 2}


def test_a_deadline_is_a_kind_of_fault() -> None:
    counters = CheckedCounters()
    (key,) = [build_key()]

    async def main() -> None:
        async with run_groups(
            [key],
            lambda _plan: anyio.sleep_forever(),  # type: ignore[arg-type, return-value]
            limits=Limits(deadline_s=9.0, attempts=1, max_fault_rate=1.0),
            journal=ListJournal(),
            observer=counters,
        ) as groups:
            assert [group.num_faults async for group in groups] == [1]

    run_in_virtual_time(main)
    assert counters.snapshot().faults == {EpisodeTimeout.__name__: 1}


def test_a_stretch_of_time_is_what_came_between_two_snapshots() -> None:
    now = 0.0
    counters = Counters(clock=lambda: now)
    plan = EpisodePlan(build_key())
    good, fault = build_episode(), build_episode(outcome=Outcome.USER_FAULT, num_turns=1)

    counters.attempt_started(plan)
    counters.attempt_ended(plan, fault, 0.0)
    counters.tick(1.0)
    earlier = counters.snapshot()
    now = 4.0
    for _ in range(2):
        counters.attempt_started(plan)
    counters.attempt_ended(plan, good, None)
    counters.window_set(EngineLoad(running=3, waiting=6, kv_use=0.5, preemptions=2), 64)
    counters.tick(0.002)
    counters.tick(0.002)
    stretch = counters.snapshot().since(earlier)
    assert stretch.seconds == 4.0
    assert (stretch.totals.started, stretch.totals.final, stretch.totals.retried) == (2, 1, 0)
    assert stretch.faults == {}
    assert stretch.last_fault == ""
    assert stretch.outcomes == {"completed": 1}
    assert stretch.window == 64
    figures = stretch.figures()
    assert figures["attempts"] == 2
    assert figures["kept_tokens"] == 10
    assert figures["queue_mean"] == 6
    assert figures["kv_use_mean"] == 0.5
    assert figures["preemptions"] == 2
    assert 2.0 <= figures["loop_lag_max_ms"] <= 2.4
    assert stretch.per_second(6) == 1.5


def test_an_engine_that_says_nothing_of_itself_has_no_figures() -> None:
    figures = Counters(clock=lambda: 0.0).snapshot().figures()
    for name in ("queue_mean", "kv_use_mean", "preemptions", "in_flight_mean", "loop_lag_p99_ms"):
        assert figures[name] is None
    assert figures["faults_by_kind"] == {}


def test_preemptions_of_an_engine_that_began_anew_are_added_to_those_of_the_last() -> None:
    counters = Counters()
    for preemptions in (0, 3, 3, 1):
        counters.window_set(EngineLoad(0, 0, 0.0, preemptions), 1)
    assert counters.snapshot().totals.preemptions == 3
    counters.window_set(EngineLoad(0, 0, 0.0, 2), 1)
    assert counters.snapshot().totals.preemptions == 4


def test_the_loops_lag_is_what_it_was_made_to_be() -> None:
    from trio.testing import MockClock

    clock = MockClock(autojump_threshold=0)
    observation = Observation()

    async def main() -> None:
        async with observation.running():
            await anyio.sleep(0.95)
            clock.jump(2.0)  # as if something had held the loop for two seconds
            await anyio.sleep(1.0)

    anyio.run(main, backend="trio", backend_options={"clock": clock})
    lag = observation.counters.snapshot().loop_lag
    longest = lag.quantile(1.0)
    assert longest is not None
    assert 1.95 <= longest <= 1.95 * 1.2
    # 9 wakings in time, 20 that were late by 1.95 s, 1.85 s, ... 0.05 s, 9 or 10 in time again.
    assert 38 <= len(lag) <= 39
    in_time, next_one = lag.quantile(18 / len(lag)), lag.quantile(20 / len(lag))
    assert in_time == 1e-4
    assert next_one is not None
    assert next_one >= 0.05


@pytest.mark.anyio
async def test_what_was_live_when_everything_ended_is_cut(domain: Domain) -> None:
    observation = Observation()

    class Waits:
        policy_version = 0

        async def generate(self, request: GenerateRequest) -> Generation:
            await anyio.sleep_forever()
            raise AssertionError

    with anyio.CancelScope() as everything:
        async with observation.running(), anyio.create_task_group() as tasks:

            async def end() -> None:
                await anyio.wait_all_tasks_blocked()
                assert observation.counters.snapshot().policy.now == 4
                everything.cancel()

            tasks.start_soon(end)
            await observed_round(domain, observation, policy_for=lambda _t, _k: Waits())
    snapshot = observation.counters.snapshot()
    assert (snapshot.totals.cut, snapshot.live) == (4, 0)
    assert (snapshot.policy.now, snapshot.policy.failed) == (0, 4)
