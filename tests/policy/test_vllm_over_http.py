"""`VllmServerPolicy` on real vLLM servers on a CPU, two of them, and a tiny Qwen3."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from functools import partial

import anyio
import anyio.lowlevel
import pytest
from tiny_weights import (
    PROMPT,
    TOLERANCE,
    VOCAB,
    Weights,
    ask,
    ask_all,
    require_vllm_or_skip,
    sync_in_flight,
    talking,
)

from muarl.errors import PolicyError, SetupError, WeightSyncError
from muarl.http.call import Refused
from muarl.http.retry import PassingFailure
from muarl.policy.vllm_server import VllmServerPolicy
from muarl.policy.vllm_transfer import FleetClient
from muarl.testing.vllm_serve import vllm_servers

pytestmark = [pytest.mark.vllm, pytest.mark.slow, pytest.mark.anyio, pytest.mark.timeout(1800)]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> list[Weights]:
    require_vllm_or_skip()
    folder = tmp_path_factory.mktemp("models")
    return [Weights(folder, seed) for seed in range(4)]


@pytest.fixture(scope="module")
def urls(weights: list[Weights]) -> Iterator[list[str]]:
    with vllm_servers(weights[0].folder, 2) as urls:
        yield urls


@pytest.fixture
async def policy(urls: list[str], weights: list[Weights]) -> AsyncIterator[VllmServerPolicy]:
    """Both servers, with the first weights."""
    # A starved machine takes its time over a message; tests are not about that.
    async with VllmServerPolicy(urls, logprob_tolerance=TOLERANCE, timeout_s=600) as policy:
        if await policy.probe_gap(weights[0].probe()) > TOLERANCE:
            await policy.load_weights(weights[0].folder, 0, weights[0].probe())
        yield policy


async def metric(policy: VllmServerPolicy, name: str, label: str = "") -> list[float]:
    """What each server's engine itself counts."""
    found = []
    for url in policy.urls:
        text = (await policy.call("GET", f"{url}/metrics")).decode()
        values = re.findall(rf"^vllm:{name}\{{.*{label}.*\}} (\S+)$", text, re.MULTILINE)
        found.append(sum(map(float, values)))
    return found


async def held(policy: VllmServerPolicy) -> float:
    """Requests the engines hold now."""
    running = await metric(policy, "num_requests_running")
    waiting = await metric(policy, "num_requests_waiting")
    return sum(running) + sum(waiting)


async def until_idle(policy: VllmServerPolicy) -> None:
    with anyio.fail_after(300):
        while await held(policy):
            pass


async def test_logprobs_are_those_of_the_tempered_distribution(
    policy: VllmServerPolicy, weights: list[Weights]
) -> None:
    temperatures = [0.7, 1.0, 1.3, 0.7, 1.0, 1.3]
    prompts = [PROMPT[: 50 + 30 * i] for i in range(6)]
    requests = [
        ask(i, prompt_ids=prompts[i], temperature=t, dialogue=str(i))
        for i, t in enumerate(temperatures)
    ]
    for i, out in enumerate(await ask_all(policy, requests)):
        assert len(out.token_ids) == len(out.logprobs) == 40
        assert out.finish_reason == "length"
        assert max(weights[0].gaps(prompts[i], out, temperatures[i])) < TOLERANCE
        untempered = max(weights[0].gaps(prompts[i], out))
        assert (untempered > 0.05) == (temperatures[i] != 1.0)


async def test_greedy_reports_temperature_one(
    policy: VllmServerPolicy, weights: list[Weights]
) -> None:
    out = await policy.generate(ask(temperature=0.0))
    assert max(weights[0].gaps(PROMPT, out)) < TOLERANCE


async def test_sampling_ends_after_a_stop_token_and_only_there(policy: VllmServerPolicy) -> None:
    stops = tuple(range(0, VOCAB, 16))
    free, stopped = await ask_all(
        policy, [ask(3, max_tokens=200), ask(3, max_tokens=200, stop_token_ids=stops)]
    )
    assert len(free.token_ids) == 200  # the model's own end token (id 1) means nothing here
    end = next(i for i, token in enumerate(free.token_ids) if token in stops)
    assert stopped.token_ids == free.token_ids[: end + 1]
    assert stopped.finish_reason == "stop"


async def test_the_seed_decides_not_the_endpoint(policy: VllmServerPolicy) -> None:
    crowd = await ask_all(policy, [ask(2**64 - 1, dialogue=str(n)) for n in range(8)])
    assert len({tuple(out.token_ids) for out in crowd}) == 1
    other = await policy.generate(ask(2**64 - 2))
    assert other.token_ids != crowd[0].token_ids


async def test_a_dialogues_turns_find_their_prefix_in_one_servers_cache(
    policy: VllmServerPolicy, anyio_backend_name: str
) -> None:
    unseen = {"asyncio": 0, "trio": 500}[anyio_backend_name]
    before = await metric(policy, "request_success_total")
    hits = sum(await metric(policy, "prefix_cache_hits_total"))
    for number in range(8):
        prompt = [(unseen + number * 31 + 7 * i) % VOCAB for i in range(256)]
        for _ in range(3):
            out = await policy.generate(
                ask(number, prompt_ids=prompt, dialogue=f"sticky {number}", max_tokens=8)
            )
            prompt = [*prompt, *out.token_ids, *range(20)]
    after = await metric(policy, "request_success_total")
    served = [new - old for new, old in zip(after, before, strict=True)]
    assert sum(served) == 24
    assert all(count % 3 == 0 for count in served)
    # Of each prompt 256 tokens are cached for the second and third turn: two blocks of 128.
    assert sum(await metric(policy, "prefix_cache_hits_total")) - hits == 8 * 2 * 256


async def test_cancellation_reaches_the_engine(policy: VllmServerPolicy) -> None:
    at_their_end = partial(metric, policy, "request_success_total", 'finished_reason="length"')
    before = sum(await at_their_end())
    async with talking(policy, 16) as talk:
        await talk.first_message.wait()
        talk.tasks.cancel_scope.cancel()
    await until_idle(policy)
    # Not idle because what was asked for came to its end.
    assert sum(await at_their_end()) < before + len(talk.messages) + 16
    assert (await policy.generate(ask(max_tokens=2))).finish_reason == "length"


async def test_a_request_the_engine_refuses_is_a_policy_error(policy: VllmServerPolicy) -> None:
    with pytest.raises(PolicyError, match=r"refused a message: it answered 4\d\d"):
        await policy.generate(ask(prompt_ids=[1] * 2000))
    with pytest.raises(PolicyError, match="max_tokens"):
        await policy.generate(ask(max_tokens=0))


async def test_two_syncs_move_version_and_logprobs_on_both_servers(
    policy: VllmServerPolicy, weights: list[Weights]
) -> None:
    for version in (1, 2):
        old, new = weights[version - 1], weights[version]
        assert await policy.load_weights(new.folder, version, new.probe()) < TOLERANCE
        for number in range(4):
            out = await policy.generate(ask(version, dialogue=str(number)))
            assert out.policy_version == policy.policy_version == version
            assert max(new.gaps(PROMPT, out)) < TOLERANCE
            assert max(old.gaps(PROMPT, out)) > 0.1


async def test_a_message_in_flight_goes_on_under_the_new_weights(
    policy: VllmServerPolicy, weights: list[Weights]
) -> None:
    await sync_in_flight(policy, {0: weights[0]}, weights[1:])


async def test_weights_that_do_not_answer_as_the_trainer_says_are_refused(
    policy: VllmServerPolicy, weights: list[Weights]
) -> None:
    with pytest.raises(WeightSyncError, match="off by"):
        await policy.load_weights(weights[1].folder, 1, weights[2].probe())
    assert policy.policy_version == 0
    await policy.load_weights(weights[1].folder, 1, weights[1].probe())
    assert policy.policy_version == 1


async def test_the_load_is_the_engines_own(policy: VllmServerPolicy) -> None:
    with anyio.fail_after(60):
        while (load := policy.load()) is None:
            await anyio.lowlevel.checkpoint()
    assert 0 <= load.kv_use <= 1


async def test_the_routes_of_the_nccl_transfer_are_there(
    policy: VllmServerPolicy, urls: list[str]
) -> None:
    """Without a transfer engine they refuse; but they are there, and understand what is asked."""
    client = FleetClient(policy.call, urls, [1, 1])
    info = {"rank_offset": 1, "master_address": "127.0.0.1", "master_port": 1, "world_size": 3}
    problems = {}
    for path, payloads in {
        "/init_weight_transfer_engine": [{"init_info": info}] * 2,
        "/start_weight_update": None,
        "/update_weights": [{"update_info": {"names": [], "dtype_names": [], "shapes": []}}] * 2,
        "/finish_weight_update": None,
    }.items():
        with pytest.raises(WeightSyncError) as problem:
            await client._post_all(path, payloads)
        problems[path] = str(problem.value)
    assert not [words for words in problems.values() if "404" in words or "422" in words]
    size = await policy.call("GET", f"{urls[0]}/get_world_size")
    assert size == b'{"world_size":1}'


async def test_a_plain_server_is_told_what_it_lacks(urls: list[str]) -> None:
    """A path that is no route, asked of a real server."""
    async with VllmServerPolicy(urls) as policy:
        with pytest.raises(Refused, match="answered 404"):
            await policy.call("GET", f"{urls[0]}/nothing")
        with pytest.raises((Refused, PassingFailure)):
            await policy.call("POST", f"{urls[0]}/collective_rpc", b"{}")


def test_a_server_with_raw_logprobs_is_found_out(weights: list[Weights]) -> None:
    arguments = ["--logprobs-mode", "raw_logprobs"]
    with vllm_servers(weights[0].folder, arguments=arguments, dev_mode=False) as urls:

        async def enter() -> None:
            async with VllmServerPolicy(urls):
                pass

        with pytest.raises(SetupError, match="do not heed the temperature"):
            anyio.run(enter)
