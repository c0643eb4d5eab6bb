"""`VllmPolicy` on a real vLLM engine and a tiny Qwen3 (about a minute, one engine for all)."""

import logging
import os
import signal
from collections.abc import AsyncIterator
from multiprocessing import resource_tracker
from pathlib import Path

import anyio
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

from muarl.errors import PolicyError, WeightSyncError
from muarl.policy.vllm_engine import VllmPolicy

pytestmark = [pytest.mark.vllm, pytest.mark.slow, pytest.mark.anyio, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> list[Weights]:
    require_vllm_or_skip()
    folder = tmp_path_factory.mktemp("models")
    return [Weights(folder, seed) for seed in range(6)]


@pytest.fixture(scope="module")
async def policy(weights: list[Weights]) -> AsyncIterator[VllmPolicy]:
    environment = dict(os.environ)
    before = children()
    complaints = Complaints(logging.WARNING)
    async with VllmPolicy(weights[0].folder, max_model_len=1024) as policy:
        assert dict(os.environ) == environment
        assert len(children() - before) >= 2
        staging = policy.staging_dir
        yield policy
        logging.getLogger("vllm").addHandler(complaints)
    logging.getLogger("vllm").removeHandler(complaints)
    assert complaints.heard == [], "an orderly end is no failure"
    assert children() <= before, "the engine left processes behind"
    assert not staging.exists()


class Complaints(logging.Handler):
    """What a library logs while this is attached."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(record.getMessage())


def children() -> set[int]:
    """Live processes below this one; Python's own resource tracker stays for good."""
    import psutil

    tracker = resource_tracker._resource_tracker._pid
    return {
        child.pid
        for child in psutil.Process().children(recursive=True)
        if child.pid != tracker and child.status() != psutil.STATUS_ZOMBIE
    }


async def engine_has_work(policy: VllmPolicy) -> bool:
    """Asks the engine's own process, not our side's books."""
    has_work: bool = await policy._engine.engine_core.call_utility_async("has_work")
    return has_work


async def test_logprobs_are_those_of_the_tempered_distribution(
    policy: VllmPolicy, weights: list[Weights]
) -> None:
    temperatures = [0.7, 1.0, 1.3, 0.7, 1.0, 1.3]
    prompts = [PROMPT[: 50 + 30 * i] for i in range(6)]
    requests = [ask(i, prompt_ids=prompts[i], temperature=t) for i, t in enumerate(temperatures)]
    for i, out in enumerate(await ask_all(policy, requests)):
        assert len(out.token_ids) == 40
        assert out.finish_reason == "length"
        assert max(weights[0].gaps(prompts[i], out, temperatures[i])) < TOLERANCE
        untempered = max(weights[0].gaps(prompts[i], out))
        assert (untempered > 0.05) == (temperatures[i] != 1.0)


async def test_greedy_takes_the_best_token_and_reports_temperature_one(
    policy: VllmPolicy, weights: list[Weights]
) -> None:
    import torch

    # Beside a sampled request, where vLLM takes another path than for a greedy batch.
    out, _ = await ask_all(policy, [ask(temperature=0.0), ask(temperature=1.3)])
    assert max(weights[0].gaps(PROMPT, out)) < TOLERANCE
    with torch.no_grad():
        logits = weights[0].model(torch.tensor([PROMPT + out.token_ids[:-1]])).logits[0]
    assert logits[len(PROMPT) - 1 :].argmax(-1).tolist() == out.token_ids


async def test_sampling_ends_after_a_stop_token_and_only_there(policy: VllmPolicy) -> None:
    stops = tuple(range(0, VOCAB, 16))
    free, stopped = await ask_all(
        policy, [ask(3, max_tokens=200), ask(3, max_tokens=200, stop_token_ids=stops)]
    )
    # The model's own end token (id 1) means nothing here.
    assert len(free.token_ids) == 200
    end = next(i for i, token in enumerate(free.token_ids) if token in stops)
    assert stopped.token_ids == free.token_ids[: end + 1]
    assert stopped.finish_reason == "stop"
    assert len(stopped.logprobs) == end + 1


async def test_same_seed_samples_the_same_whatever_runs_beside_it(policy: VllmPolicy) -> None:
    alone = await policy.generate(ask(7))
    crowd = await ask_all(policy, [ask(seed) for seed in range(32)])
    assert crowd[7].token_ids == alone.token_ids
    assert len({tuple(out.token_ids) for out in crowd}) == 32


async def test_a_huge_seed_is_a_seed(policy: VllmPolicy) -> None:
    first, second, other = await ask_all(policy, [ask(2**64 - 1), ask(2**64 - 1), ask(2**64 - 2)])
    assert first.token_ids == second.token_ids != other.token_ids


async def test_cancellation_reaches_the_engine(policy: VllmPolicy) -> None:
    async with talking(policy, 16) as talk:
        await talk.first_message.wait()
        assert 0 < policy.num_unfinished <= 16
        with anyio.fail_after(60):  # where the machine starves us, all may just have been answered
            while (load := policy.load()) is None or not load.running:  # noqa: ASYNC110
                await anyio.sleep(0.001)
        assert 0 < load.kv_use <= 1
        talk.tasks.cancel_scope.cancel()
    assert policy.num_unfinished == 0
    # A few passes later (requests of one token) the engine itself has nothing left to do.
    for _ in range(20):
        await policy.generate(ask(max_tokens=1))
        if not await engine_has_work(policy):
            break
    else:
        pytest.fail("the engine goes on with what was cancelled")
    assert (await policy.generate(ask(max_tokens=2))).finish_reason == "length"


async def test_a_request_the_engine_refuses_is_a_policy_error(policy: VllmPolicy) -> None:
    with pytest.raises(PolicyError, match="refused"):
        await policy.generate(ask(prompt_ids=[1] * 2000))
    with pytest.raises(PolicyError, match="max_tokens"):
        await policy.generate(ask(max_tokens=0))
    assert policy.num_unfinished == 0


async def test_ctrl_c_in_the_terminal_does_not_stop_the_engine(policy: VllmPolicy) -> None:
    import psutil

    engine = [pid for pid in children() if psutil.Process(pid).name().startswith("VLLM")]
    assert len(engine) == 2
    for pid in engine:
        os.kill(pid, signal.SIGINT)
    assert len((await policy.generate(ask(max_tokens=20))).token_ids) == 20


async def test_three_syncs_move_the_version_and_the_logprobs(
    policy: VllmPolicy, weights: list[Weights]
) -> None:
    for version in (1, 2, 3):
        old, new = weights[version - 1], weights[version]
        before = await policy.generate(ask(version))
        assert before.policy_version == policy.policy_version == version - 1
        assert max(old.gaps(PROMPT, before)) < TOLERANCE
        assert max(new.gaps(PROMPT, before)) > 0.1

        gap = await policy.load_weights(new.folder, version, new.probe())

        assert gap < TOLERANCE
        after = await policy.generate(ask(version))
        assert after.policy_version == policy.policy_version == version
        assert max(new.gaps(PROMPT, after)) < TOLERANCE
        assert max(old.gaps(PROMPT, after)) > 0.1


async def test_a_message_in_flight_goes_on_under_the_new_weights(
    policy: VllmPolicy, weights: list[Weights]
) -> None:
    await sync_in_flight(policy, {3: weights[3]}, [weights[0], *weights[4:]])


async def test_weights_that_do_not_answer_as_the_trainer_says_are_refused(
    policy: VllmPolicy, weights: list[Weights]
) -> None:
    version = policy.policy_version
    with pytest.raises(WeightSyncError, match="does not hold the trainer's weights"):
        await policy.load_weights(weights[1].folder, version + 1, weights[2].probe())
    with pytest.raises(WeightSyncError, match="no safetensors"):
        await policy.load_weights(Path("/nowhere"), version + 1, weights[1].probe())
    broken = policy.staging_dir / "model.safetensors"
    broken.write_bytes(b"not a safetensors file")
    with pytest.raises(WeightSyncError, match="cannot read"):
        await policy.load_weights(policy.staging_dir, version + 1, weights[1].probe())
    assert policy.policy_version == version
    # The engine is neither stuck nor dead.
    await policy.load_weights(weights[1].folder, version + 1, weights[1].probe())
    assert policy.policy_version == version + 1
