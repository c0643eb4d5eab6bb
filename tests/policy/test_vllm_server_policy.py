"""`VllmServerPolicy` against servers that only look like vLLM, on asyncio and trio."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import torch
from fake_vllm import FakeVllm, fake_vllm, probe_of, read_weights
from safetensors.torch import save_file

from muarl.errors import EpisodeTimeout, PolicyError, SetupError, WeightSyncError
from muarl.http.breaker import Breaker
from muarl.http.retry import PassingFailure
from muarl.policy import EngineLoad, GenerateRequest, Generation
from muarl.policy.vllm_load import LoadReader
from muarl.policy.vllm_message import AskedMessage
from muarl.policy.vllm_server import VllmServerPolicy
from muarl.testing.http_server import HTTP_FAULTS, HttpAnswer
from muarl.testing.plan import FaultPlan

pytestmark = pytest.mark.anyio

MANY = 64
"""Dialogues of which, wherever their endpoints' ports send them, each endpoint gets some."""


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Real sockets need real time: shorter waits, in the same proportions."""
    monkeypatch.setattr("muarl.http.retry._FIRST_WAIT_S", 0.02)
    monkeypatch.setattr("muarl.policy.vllm_message._LOOK_AGAIN_S", 0.02)


def ask(dialogue: str = "d", **changes: Any) -> GenerateRequest:
    fields: dict[str, Any] = {
        "prompt_ids": [10, 11, 12],
        "dialogue": dialogue,
        "seed": 2**64 - 1,
        "max_tokens": 5,
        "temperature": 0.7,
        "stop_token_ids": (3,),
    }
    return GenerateRequest(**(fields | changes))


def policy_of(fakes: list[FakeVllm], **settings: Any) -> VllmServerPolicy:
    return VllmServerPolicy([fake.url for fake in fakes], **settings)


def posted(fake: FakeVllm) -> int:
    """How much it was asked to do, what a policy looks at when it begins included."""
    return sum(request.method == "POST" for request in fake.server.requests)


async def until(condition: Any) -> None:
    with anyio.fail_after(60):
        while not condition():
            await anyio.lowlevel.checkpoint()


def save_weights(folder: Path, value: float) -> str:
    save_file({"w": torch.tensor([value])}, folder / "model.safetensors")
    return read_weights(str(folder))


class TestMessages:
    async def test_ids_go_in_and_out_as_they_are(self) -> None:
        async with fake_vllm() as (fake,), policy_of([fake]) as policy:
            out = await policy.generate(ask())
        assert out == Generation([0, 1, 2, 3, 4], [-0.7] * 5, "length", 0)
        asked = fake.server.requests[-1].json()
        assert asked.pop("request_id").startswith("muarl-")
        assert asked == {
            "token_ids": [10, 11, 12],
            "sampling_params": {
                "temperature": 0.7,
                "seed": 2**63 - 1,
                "max_tokens": 5,
                "stop_token_ids": [3],
                "logprobs": 0,
                "ignore_eos": True,
                "detokenize": False,
            },
        }

    async def test_the_key_goes_along(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("THE_KEY", "sk-secret")
        async with fake_vllm() as (fake,), policy_of([fake], api_key_env="THE_KEY") as policy:
            await policy.generate(ask())
            assert fake.headers["authorization"] == "Bearer sk-secret"

    async def test_a_dialogue_stays_with_one_endpoint_and_all_have_some(self) -> None:
        async with fake_vllm(3) as fakes, policy_of(fakes) as policy:
            for turn in range(3):
                for number in range(MANY):
                    await policy.generate(ask(str(number), prompt_ids=[9] * (turn + 1) + [number]))
        homes = Counter(prompt[-1] for fake in fakes for prompt in fake.messages)
        assert homes == dict.fromkeys(range(MANY), 3)
        for fake in fakes:
            dialogues = [prompt[-1] for prompt in fake.messages]
            assert dialogues, "how evenly is the fleet's own test: ports differ from run to run"
            assert all(dialogues.count(dialogue) == 3 for dialogue in dialogues)

    async def test_a_message_under_two_weights_says_where_the_new_ones_began(self) -> None:
        async with fake_vllm() as (fake,), policy_of([fake], version=3) as policy:
            label = policy._labels.issue(4)
            whole = fake._reply([1, 2, 3], [-1.0] * 3)
            whole["choices"][0]["weight_versions"] = [
                {"version": "default", "start": 0, "end": 2},
                {"version": label, "start": 2, "end": 3},
                {"version": label, "start": 3, "end": 3},
            ]
            fake._generate = lambda _: whole  # type: ignore[method-assign]
            out = await policy.generate(ask())
        assert out.version_ranges() == [(0, 2, 3), (2, 3, 4)]


class TestFaults:
    @pytest.mark.parametrize("fault", [f for f in HTTP_FAULTS if f not in ("hang", "slow")])
    async def test_what_may_pass_is_tried_again(self, fault: Any) -> None:
        plan = FaultPlan([fault], rate=0.0)
        async with fake_vllm(plan=plan, retry_after_s=0.1) as (fake,), policy_of([fake]) as policy:
            plan.rate = 1.0
            results: list[Generation] = []
            async with anyio.create_task_group() as tasks:

                async def one() -> None:
                    results.append(await policy.generate(ask()))

                tasks.start_soon(one)
                await until(lambda: plan.drawn[fault] >= 2)
                plan.rate = 0.0
        assert len(results) == 1

    async def test_with_a_fifth_of_all_requests_failing_every_message_comes_through(self) -> None:
        plan = FaultPlan([f for f in HTTP_FAULTS if f != "hang"], rate=0.0, seed=1)
        settings = {"slow_s": 0.05, "retry_after_s": 0.05}
        done = 0
        async with (
            fake_vllm(plan=plan, **settings) as (fake,),
            policy_of([fake], timeout_s=600) as policy,
        ):
            plan.rate = 0.2
            async with anyio.create_task_group() as tasks:

                async def one(number: int) -> None:
                    nonlocal done
                    await policy.generate(ask(str(number), prompt_ids=[number, 1]))
                    done += 1

                for number in range(60):
                    tasks.start_soon(one, number)
        assert done == 60
        assert len(plan.drawn) > 4

    async def test_a_404_that_answers_another_request_loses_no_message_nor_its_server(self) -> None:
        plan = FaultPlan(["swapped"], rate=0.0)
        async with fake_vllm(plan=plan, keep=True) as (fake,), policy_of([fake]) as policy:
            assert fake.server.requests[-1].path.endswith("lora_adapter"), "which it answered 404"
            generate = fake._generate

            def no_more_faults(asked: dict[str, Any]) -> Any:
                plan.rate = 0.0
                return generate(asked)

            fake._generate = no_more_faults  # type: ignore[method-assign]
            plan.rate = 1.0
            await policy.generate(ask())
        assert plan.drawn["swapped"] == 1

    async def test_an_endpoint_that_is_gone_is_left_alone_and_its_dialogues_move(self) -> None:
        async with fake_vllm(2) as fakes, policy_of(fakes) as policy:
            home = policy._fleet.ranked("d")[0]
            home.breaker = Breaker(failures=8, first_rest_s=1e6)
            broken = next(fake for fake in fakes if fake.url == home.url)
            other = next(fake for fake in fakes if fake is not broken)
            broken.refuses.add("/inference/v1/generate")
            looked = posted(broken)
            for _ in range(12):
                await policy.generate(ask())
            assert len(other.messages) == 12
            assert not broken.messages
            assert posted(broken) == looked + 8
            broken.refuses.clear()
            home.breaker._rests_until = anyio.current_time()
            await policy.generate(ask())
        assert len(broken.messages) == 1

    async def test_a_message_that_found_its_server_left_alone_says_why(self) -> None:
        async with fake_vllm() as (fake,), policy_of([fake]) as policy:
            policy._fleet.endpoints[0].breaker = Breaker(failures=1, first_rest_s=1e6)
            fake.refuses.add("/inference/v1/generate")
            looked = posted(fake)
            for timeout_s in (2, 0.1):  # the second is not sent at all
                policy._timeout_s = timeout_s
                with pytest.raises(EpisodeTimeout, match=f"answered 500.* within {timeout_s} s"):
                    await policy.generate(ask())
        assert posted(fake) == looked + 1

    async def test_what_will_not_pass_is_not_tried_again(self) -> None:
        async with fake_vllm() as (fake,), policy_of([fake]) as policy:
            fake._generate = lambda _: HttpAnswer(400, b'{"message": "prompt too long"}')  # type: ignore[method-assign]
            before = len(fake.server.requests)
            with pytest.raises(PolicyError, match=r"refused a message: .*prompt too long"):
                await policy.generate(ask())
            assert len(fake.server.requests) == before + 1

    async def test_a_hanging_server_is_a_named_timeout_and_is_hung_up_on(self) -> None:
        plan = FaultPlan(["hang"], rate=0.0)
        async with fake_vllm(plan=plan) as (fake,), policy_of([fake], timeout_s=0.3) as policy:
            plan.rate = 1.0
            with pytest.raises(EpisodeTimeout, match=r"a message of the policy.* within 0\.3 s"):
                await policy.generate(ask())
            await until(lambda: fake.server.live == 0)

    async def test_a_cancelled_message_hangs_up(self) -> None:
        plan = FaultPlan(["hang"], rate=0.0)
        async with fake_vllm(plan=plan) as (fake,), policy_of([fake]) as policy:
            plan.rate = 1.0
            async with anyio.create_task_group() as tasks:
                for number in range(5):
                    tasks.start_soon(policy.generate, ask(str(number)))
                await until(lambda: plan.drawn["hang"] == 5)
                tasks.cancel_scope.cancel()
            await until(lambda: fake.server.live == 0)
            plan.rate = 0.0
            assert (await policy.generate(ask())).finish_reason == "length"

    async def test_a_wait_beyond_the_deadline_fails_at_once(self) -> None:
        plan = FaultPlan(["rate_limit_wait"], rate=0.0)
        async with fake_vllm(plan=plan, retry_after_s=99) as (fake,), policy_of([fake]) as policy:
            policy._timeout_s = 90
            plan.rate = 1.0
            with anyio.fail_after(60), pytest.raises(PolicyError, match=r"429.*the next try would"):
                await policy.generate(ask())

    async def test_a_server_that_asks_for_no_wait_is_not_asked_at_once(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("muarl.http.retry._FIRST_WAIT_S", 300.0)
        async with fake_vllm() as (fake,), policy_of([fake]) as policy:
            policy._timeout_s = 60
            asked: list[object] = []
            busy = HttpAnswer(429, b"", {"Retry-After": "0"})
            fake._generate = lambda what: asked.append(what) or busy  # type: ignore[method-assign,func-returns-value]
            with pytest.raises(PolicyError, match=r"429.*the next try would come after the 60 s"):
                await policy.generate(ask())
            assert len(asked) == 1

    async def test_a_message_whose_time_is_up_before_its_first_try_says_so(self) -> None:
        """So late may a message be whose endpoint rests, when the event loop is held up."""
        async with fake_vllm() as (fake,), policy_of([fake], timeout_s=0.05) as policy:
            resting = policy._fleet.endpoints[0].breaker = Breaker(failures=1, first_rest_s=60)
            permit = resting.admit(anyio.current_time())
            assert permit is not None
            resting.failed(permit, anyio.current_time())
            overdue = AskedMessage(
                policy.call, policy._fleet, policy._labels, lambda: 0, ask(), adapter=None
            )
            with pytest.raises(EpisodeTimeout, match=r"a message of the policy did not finish"):
                await overdue.answered(timeout_s=-1)
            with pytest.raises(EpisodeTimeout, match=r"a message of the policy did not finish"):
                await policy.generate(ask())

    async def test_after_a_rate_limit_another_endpoint_is_asked_at_once(self) -> None:
        async with fake_vllm(2) as fakes, policy_of(fakes) as policy:
            home = next(f for f in fakes if f.url == policy._fleet.ranked("d")[0].url)
            busy = HttpAnswer(429, b"", {"Retry-After": "3600"})
            home._generate = lambda _: busy  # type: ignore[method-assign]
            with anyio.fail_after(60):
                await policy.generate(ask())


class TestStart:
    async def test_a_server_that_is_not_there_is_named_with_the_command(self) -> None:
        policy = VllmServerPolicy(["http://127.0.0.1:9"])
        with pytest.raises(SetupError, match=r"127\.0\.0\.1:9 cannot be reached.*`vllm serve"):
            async with policy:
                pass

    async def test_log_probs_that_do_not_heed_the_temperature_are_found_out(self) -> None:
        async with fake_vllm() as (fake,):
            fake.heeds_temperature = False
            with pytest.raises(SetupError, match="--logprobs-mode processed_logprobs"):
                async with policy_of([fake]):
                    pass

    async def test_an_old_vllm_is_refused(self) -> None:
        async with fake_vllm() as (fake,):
            fake.version = "0.9.1"
            with pytest.raises(SetupError, match=r"is version 0\.9\.1; muarl needs 0\.32"):
                async with policy_of([fake]):
                    pass

    async def test_a_server_for_shorter_contexts_is_refused(self) -> None:
        async with fake_vllm(2) as fakes:
            fakes[1].max_model_len = 512
            says = rf"{fakes[1].url} holds contexts of 512 tokens; .* 1024 .*--max-model-len 1024"
            with pytest.raises(SetupError, match=says):
                async with policy_of(fakes, context_tokens=1024):
                    pass
            for enough in (1024, 0):
                fakes[1].max_model_len = enough
                async with policy_of(fakes, context_tokens=1024):
                    pass

    async def test_a_newer_vllm_is_tried_with_a_warning(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with fake_vllm() as (fake,):
            fake.version = "1.2.0"
            async with policy_of([fake]):
                assert "muarl was tested with 0.32" in caplog.text

    async def test_something_that_is_no_vllm_is_said_so(self) -> None:
        async with fake_vllm() as (fake,):
            fake.answer = lambda _: {"hello": 1}  # type: ignore[method-assign]
            fake.server._answer = fake.answer
            with pytest.raises(SetupError, match="does not say its version"):
                async with policy_of([fake]):
                    pass

    async def test_every_servers_problem_is_said(self) -> None:
        async with fake_vllm(2) as fakes:
            for fake in fakes:
                fake.version = "0.9.1"
            with pytest.raises(SetupError) as error:
                async with policy_of(fakes):
                    pass
        assert all(fake.url in str(error.value) for fake in fakes)


class TestWeights:
    async def test_a_sync_moves_weights_version_and_label_everywhere(self) -> None:
        async with fake_vllm(2) as fakes, policy_of(fakes) as policy:
            for version, value in enumerate([0.5, 0.25], 1):
                weights = save_weights(policy.staging_dir, value)
                gap = await policy.load_weights(policy.staging_dir, version, probe_of(weights))
                assert gap == 0
                assert [fake.weights for fake in fakes] == [weights] * 2
                assert (await policy.generate(ask())).policy_version == policy.policy_version
                assert policy.policy_version == version
            assert not any(fake.is_paused for fake in fakes)
            staging = policy.staging_dir
        assert not staging.exists()

    async def test_weights_that_do_not_answer_as_the_trainer_says_are_refused(self) -> None:
        async with fake_vllm() as (fake,), policy_of([fake]) as policy:
            save_weights(policy.staging_dir, 0.5)
            with pytest.raises(WeightSyncError, match="off by"):
                await policy.load_weights(policy.staging_dir, 1, probe_of("other"))
            assert policy.policy_version == 0
            assert not fake.is_paused

    @pytest.mark.parametrize(
        "path", ["/pause", "/collective_rpc", "/reset_prefix_cache", "/update_weight_version"]
    )
    async def test_an_endpoint_that_takes_no_weights_is_used_no_more_until_it_does(
        self, path: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.WARNING)
        async with fake_vllm(2) as fakes, policy_of(fakes) as policy:
            broken, sound = fakes
            broken.refuses.add(path)
            weights = save_weights(policy.staging_dir, 0.5)
            await policy.load_weights(policy.staging_dir, 1, probe_of(weights))
            assert f"no more samples from {broken.url}" in caplog.text
            for number in range(MANY):
                assert (await policy.generate(ask(str(number)))).policy_version == 1
            assert not broken.messages
            broken.refuses.clear()
            await policy.load_weights(policy.staging_dir, 2, probe_of(weights))
            for number in range(MANY):
                assert (await policy.generate(ask(str(number)))).policy_version == 2
            assert broken.messages
            assert sound.messages

    async def test_if_none_takes_them_that_is_an_error_and_all_go_on(self) -> None:
        async with fake_vllm() as (fake,), policy_of([fake]) as policy:
            fake.refuses.add("/collective_rpc")
            weights = save_weights(policy.staging_dir, 0.5)
            with pytest.raises(WeightSyncError, match=r"/collective_rpc answered 500.*said no"):
                await policy.load_weights(policy.staging_dir, 1, probe_of(weights))
            assert not fake.is_paused

    async def test_a_server_that_was_started_anew_is_found_out(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with fake_vllm(2) as fakes, policy_of(fakes) as policy:
            weights = save_weights(policy.staging_dir, 0.5)
            await policy.load_weights(policy.staging_dir, 1, probe_of(weights))
            restarted, other = fakes
            restarted.weights, restarted.label = "start", "default"
            for number in range(8):
                assert (await policy.generate(ask(str(number)))).policy_version == 1
            assert len(other.messages) == 8
            other.label = "somebody else's" + "!" * 1_000_000
            with pytest.raises(PolicyError, match="no vLLM server holds version 1"):
                await policy.generate(ask())
            assert "its weights are \"somebody else's!" in caplog.text
            assert len(caplog.text) < 2_000

    async def test_without_dev_mode_sampling_works_and_a_sync_says_what_is_missing(self) -> None:
        async with fake_vllm() as (fake,):
            fake.has_dev_mode = False
            async with policy_of([fake]) as policy:
                assert (await policy.generate(ask())).policy_version == 0
                with pytest.raises(SetupError, match="VLLM_SERVER_DEV_MODE=1 vllm serve"):
                    policy.require_weight_sync()

    async def test_a_sync_that_hangs_is_a_named_error(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("muarl.policy.vllm_sync._RESUME_DEADLINE_S", 0.1)
        plan = FaultPlan(["hang"], rate=0.0)
        async with fake_vllm(plan=plan) as (fake,), policy_of([fake]) as policy:
            policy._sync_timeout_s = 0.3
            weights = save_weights(policy.staging_dir, 0.5)
            plan.rate = 1.0
            with pytest.raises(WeightSyncError, match=r"did not finish within 0\.3 s"):
                await policy.load_weights(policy.staging_dir, 1, probe_of(weights))

    async def test_when_time_is_up_the_servers_are_not_left_paused(self) -> None:
        async with fake_vllm(2) as fakes, policy_of(fakes) as policy:
            policy._sync_timeout_s = 1.0

            async def never(*_: Any) -> Any:
                await anyio.sleep_forever()

            with pytest.raises(WeightSyncError, match=r"did not finish within 1 s"):
                await policy.push_weights(never, 1, probe_of("start"))
            assert [fake.is_paused for fake in fakes] == [False, False]


async def test_the_load_is_read_when_somebody_looks_message_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("muarl.policy.vllm_load._DEADLINE_S", 600.0)
    async with fake_vllm(2) as fakes, policy_of(fakes) as policy:
        await policy.generate(ask())
        assert not [r for fake in fakes for r in fake.server.requests if r.path == "/metrics"]
        with anyio.fail_after(60):
            while (load := policy.load()) is None:
                await anyio.lowlevel.checkpoint()
        assert load == EngineLoad(running=6, waiting=4, kv_use=0.25, preemptions=0)


async def test_a_server_that_misses_a_reading_is_not_taken_for_one_that_is_full() -> None:
    """Its count of preemptions would seem to come anew, and admission back off."""
    counts: dict[str, int | None] = {"a": 3, "b": 40}

    async def call(method: str, url: str, body: bytes = b"") -> bytes:
        count = counts[url.removesuffix("/metrics")]
        if count is None:
            raise PassingFailure("cannot be reached")
        return b"vllm:num_preemptions_total %d\n" % count

    reader = LoadReader(call, ["a", "b"])
    seen = []
    for said in ({"a": 3, "b": 40}, {"a": 3, "b": None}, {"a": 4, "b": 40}, {"a": 4, "b": 2}):
        counts.update(said)
        load = await reader._read()
        assert load is not None
        seen.append(load.preemptions)
    assert seen == [0, 0, 1, 1]

    async def test_processes_of_one_run_follow_the_one_that_syncs(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.WARNING)
        async with (
            fake_vllm(2) as fakes,
            policy_of(fakes, run="r") as first,
            policy_of(fakes, run="r") as other,
        ):
            for version in (1, 2):
                weights = save_weights(first.staging_dir, version / 2)
                await first.load_weights(first.staging_dir, version, probe_of(weights))
                other.follow(version)
                for policy in (first, other):
                    assert (await policy.generate(ask())).policy_version == version
            synced = [request.path for fake in fakes for request in fake.server.requests].count(
                "/collective_rpc"
            )
            assert synced == 2 * 2, "each version once for each endpoint"
            # One that did not take them shows it, to the others too.
            fakes[0].refuses.add("/collective_rpc")
            weights = save_weights(first.staging_dir, 0.125)
            await first.load_weights(first.staging_dir, 3, probe_of(weights))
            other.follow(3)
            for number in range(MANY):
                assert (await other.generate(ask(str(number)))).policy_version == 3
        assert f"no more samples from {fakes[0].url}" in caplog.text
