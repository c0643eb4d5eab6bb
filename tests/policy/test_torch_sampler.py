"""The embedded sampler against transformers' own forward pass."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Sequence

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from muarl.errors import PolicyError, SetupError
from muarl.policy import EngineLoad, GenerateRequest, Generation
from muarl.policy.torch_sampler import TorchPolicy

pytestmark = pytest.mark.anyio

VOCAB = 64
TEMPERATURES = [0.0, 0.7, 1.0, 1.3]
PREFIX = [random.Random(0).randrange(VOCAB) for _ in range(60)]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def qwen(vocab: int = VOCAB, **changes: object) -> PreTrainedModel:
    settings = {
        "vocab_size": vocab,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": 512,
    }
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(Qwen3Config(**{**settings, **changes}))
    sharpen(model)
    return model


def sharpen(model: PreTrainedModel) -> None:
    """Make a random model's distribution uneven, so that wrong attention shows."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(6)


def ask(prompt: list[int], **changes: object) -> GenerateRequest:
    settings: dict[str, object] = {
        "dialogue": "a",
        "seed": 1,
        "max_tokens": 5,
        "temperature": 1.0,
        "stop_token_ids": (),
    }
    return GenerateRequest(prompt_ids=list(prompt), **{**settings, **changes})  # type: ignore[arg-type]


def reference(model: PreTrainedModel, request: GenerateRequest, sampled: list[int]) -> torch.Tensor:
    """[sampled, V] log-probabilities from one plain forward over the whole context."""
    with torch.no_grad():
        logits = model(torch.tensor([request.prompt_ids + sampled])).logits[0].double()
    logits = logits[len(request.prompt_ids) - 1 : -1]
    return (logits / (request.temperature or 1.0)).log_softmax(-1)


def gap(model: PreTrainedModel, exchanges: list[tuple[GenerateRequest, Generation]]) -> float:
    """Largest difference of a sampled log-prob from the plain forward's."""
    model.eval()
    worst = 0.0
    for request, generation in exchanges:
        expected = reference(model, request, generation.token_ids)
        for row, token, logprob in zip(
            expected, generation.token_ids, generation.logprobs, strict=True
        ):
            worst = max(worst, abs(row[token].item() - logprob))
    return worst


async def converse(
    policy: TorchPolicy,
    number: int,
    *,
    turns: int = 4,
    prefix: list[int] = PREFIX,
) -> list[tuple[GenerateRequest, Generation]]:
    """A dialogue of several turns, its lengths and temperature given by its number."""
    draw = random.Random(number)
    context = list(prefix)
    exchanges = []
    for turn in range(turns):
        context += [draw.randrange(VOCAB) for _ in range(draw.randint(1, 12))]
        request = ask(
            context,
            dialogue=f"dialogue {number}",
            seed=1000 * number + turn,
            max_tokens=draw.randint(1, 9),
            temperature=TEMPERATURES[number % 4],
        )
        generation = await policy.generate(request)
        exchanges.append((request, generation))
        context += generation.token_ids
        for _ in range(draw.randint(0, 3)):
            await anyio.lowlevel.checkpoint()
    return exchanges


async def converse_all(
    policy: TorchPolicy, numbers: range, **how: object
) -> dict[int, list[tuple[GenerateRequest, Generation]]]:
    results: dict[int, list[tuple[GenerateRequest, Generation]]] = {}

    async def one(number: int) -> None:
        results[number] = await converse(policy, number, **how)  # type: ignore[arg-type]

    async with anyio.create_task_group() as tasks:
        for number in numbers:
            tasks.start_soon(one, number)
    return results


@pytest.mark.parametrize("prefixes", [None, [], [PREFIX], [PREFIX[:40], PREFIX[:50], [1] * 40]])
async def test_logprobs_of_many_dialogues_equal_a_plain_forward(
    prefixes: list[list[int]] | None,
) -> None:
    model = qwen()
    async with TorchPolicy(model, max_len=200, slots=12, prefixes=prefixes) as policy:
        results = await converse_all(policy, range(12))
    exchanges = [exchange for result in results.values() for exchange in result]
    assert len(exchanges) == 48
    assert {request.temperature for request, _ in exchanges} == set(TEMPERATURES)
    assert gap(model, exchanges) < 1e-5


async def test_logprobs_stay_exact_when_slots_are_evicted() -> None:
    model = qwen()
    async with TorchPolicy(model, max_len=200, slots=3) as policy:
        results = await converse_all(policy, range(10))
    assert gap(model, [exchange for result in results.values() for exchange in result]) < 1e-5


async def test_dialogues_of_several_domains_and_none_share_what_they_can() -> None:
    model = qwen()
    other = [(token + 1) % VOCAB for token in PREFIX]
    prefixes = [PREFIX, other, PREFIX[:40] + other[:30], []]
    exchanges = []

    async def one(number: int) -> None:
        prefix = prefixes[number % 4]
        exchanges.extend(await converse(policy, number, prefix=prefix))

    async with (
        TorchPolicy(model, max_len=200, slots=16) as policy,
        anyio.create_task_group() as tasks,
    ):
        for number in range(16):
            tasks.start_soon(one, number)
    assert gap(model, exchanges) < 1e-5


async def test_a_llama_with_one_key_head_is_sampled_exactly_too() -> None:
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCAB,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=1,
            max_position_embeddings=512,
        )
    )
    sharpen(model)
    async with TorchPolicy(model, max_len=200, slots=6) as policy:
        results = await converse_all(policy, range(6))
    assert gap(model, [exchange for result in results.values() for exchange in result]) < 1e-5


async def test_a_model_with_sliding_windows_is_refused_at_once() -> None:
    model = qwen(use_sliding_window=True, sliding_window=8, max_window_layers=1)
    with pytest.raises(SetupError, match="full attention in every layer"):
        TorchPolicy(model, max_len=100, slots=1)


async def test_a_model_that_computes_something_else_is_refused_at_once() -> None:
    model = qwen()
    attention = model.model.layers[0].self_attn
    attention.register_forward_pre_hook(
        lambda _, args, named: (args, {**named, "hidden_states": named["hidden_states"].cumsum(1)}),
        with_kwargs=True,
    )
    with pytest.raises(SetupError, match=r"cannot run Qwen3ForCausalLM.*logits differ"):
        TorchPolicy(model, max_len=100, slots=1)


async def test_greedy_equals_greedy_of_transformers() -> None:
    model = qwen().eval()
    prompt = PREFIX[:20]
    async with TorchPolicy(model, max_len=100, slots=2) as policy:
        generation = await policy.generate(ask(prompt, temperature=0.0, max_tokens=20))
    expected = model.generate(
        torch.tensor([prompt]),
        max_new_tokens=20,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
    )
    assert generation.token_ids == expected[0, 20:].tolist()


async def test_changed_history_is_computed_anew() -> None:
    model = qwen()
    exchanges = []
    edited = [*PREFIX[:30], 5, *PREFIX[31:]]
    async with TorchPolicy(model, max_len=200, slots=4) as policy:
        await converse_all(policy, range(1, 4))  # so that there is a shared prefix
        for prompt in ([*PREFIX, 1, 2, 3], [*PREFIX, 1, 9], PREFIX[:10], edited, PREFIX[:1]):
            request = ask(prompt, dialogue="edited")
            exchanges.append((request, await policy.generate(request)))
            exchanges.append((request, await policy.generate(request)))
    assert gap(model, exchanges) < 1e-5


async def test_sampled_frequencies_fit_the_distribution() -> None:
    model = qwen(vocab=8)
    request = ask([1, 2, 3], max_tokens=1, temperature=1.3)
    counts: Counter[int] = Counter()

    async def one(seed: int) -> None:
        changed = ask([1, 2, 3], dialogue=str(seed), seed=seed, max_tokens=1, temperature=1.3)
        counts[(await policy.generate(changed)).token_ids[0]] += 1

    async with (
        TorchPolicy(model, max_len=10, slots=100) as policy,
        anyio.create_task_group() as tasks,
    ):
        for seed in range(600):
            tasks.start_soon(one, seed)
    expected = 600 * reference(model, request, [0])[0].exp()
    chi_square = sum((counts[i] - e.item()) ** 2 / e.item() for i, e in enumerate(expected))
    assert chi_square < 24.3  # 7 degrees of freedom, p = 0.001


async def test_a_seed_draws_the_same_alone_and_in_a_crowd() -> None:
    model = qwen()
    async with TorchPolicy(model, max_len=200, slots=16) as policy:
        crowd = await converse_all(policy, range(16))
    async with TorchPolicy(model, max_len=200, slots=1) as policy:
        for number in (0, 7, 15):
            alone = await converse(policy, number)
            assert [g.token_ids for _, g in alone] == [g.token_ids for _, g in crowd[number]]


@pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() != "AVX512",
    reason="the rounding of matrix kernels was measured on AVX-512 only",
)
@pytest.mark.parametrize("threads", [1, 2])
async def test_what_runs_beside_a_message_does_not_change_a_bit_of_it(threads: int) -> None:
    model = qwen()
    long = PREFIX * 4  # own tokens enough for kernels to split their sums
    settings = {"max_len": 500, "prefixes": [PREFIX], "threads": threads}
    async with TorchPolicy(model, slots=24, **settings) as policy:  # type: ignore[arg-type]
        crowd = await converse_all(policy, range(24), prefix=long)
    for number in (0, 23):
        async with TorchPolicy(model, slots=1, **settings) as policy:  # type: ignore[arg-type]
            alone = await converse(policy, number, prefix=long)
        assert [g for _, g in alone] == [g for _, g in crowd[number]]


async def test_other_seeds_draw_otherwise() -> None:
    async with TorchPolicy(qwen(), max_len=200, slots=4) as policy:
        drawn = {
            tuple((await policy.generate(ask(PREFIX, seed=seed, max_tokens=20))).token_ids)
            for seed in (0, 1, -1, 2**70)
        }
    assert len(drawn) == 4


async def test_a_message_ends_with_a_stop_token_or_at_the_cap() -> None:
    model = qwen()
    async with TorchPolicy(model, max_len=200, slots=4) as policy:
        free = await policy.generate(ask(PREFIX, max_tokens=20))
        assert (free.finish_reason, len(free.token_ids)) == ("length", 20)
        stop = free.token_ids[7]
        cut = free.token_ids.index(stop) + 1
        stopped = await policy.generate(ask(PREFIX, max_tokens=20, stop_token_ids=(VOCAB, stop)))
        assert stopped.finish_reason == "stop"
        assert stopped.token_ids == free.token_ids[:cut]
        assert stopped.logprobs == pytest.approx(free.logprobs[:cut], abs=1e-5)
        last = await policy.generate(ask(PREFIX, max_tokens=cut, stop_token_ids=(stop,)))
        assert last.finish_reason == "stop"


async def test_cancelling_a_call_frees_its_slot() -> None:
    passes = 0

    def count(*_: object) -> None:
        nonlocal passes
        passes += 1

    async with TorchPolicy(qwen(), max_len=100_000, slots=1) as policy:
        policy._engine._model.register_forward_hook(count)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(policy.generate, ask(PREFIX, dialogue="endless", max_tokens=90_000))
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        before = passes
        await policy.generate(ask(PREFIX, dialogue="next", max_tokens=5))
    assert 5 <= passes - before < 100, "the only slot would be busy for 90,000 passes"


async def test_it_says_how_many_messages_it_samples_and_how_many_wait_for_a_slot() -> None:
    async with (
        TorchPolicy(qwen(), max_len=20_000, slots=2) as policy,
        anyio.create_task_group() as ask_all,
    ):
        assert policy.load() == EngineLoad(running=0, waiting=0, kv_use=0.0)
        for number in range(3):
            request = ask([1, 2, 3], dialogue=str(number), max_tokens=19_000)  # cancelled below
            ask_all.start_soon(policy.generate, request)
        with anyio.fail_after(60):
            while policy.load() != EngineLoad(running=2, waiting=1, kv_use=1.0):
                await anyio.lowlevel.checkpoint()
        ask_all.cancel_scope.cancel()


async def test_after_a_weight_change_nothing_of_the_old_weights_is_used() -> None:
    model = qwen()
    async with TorchPolicy(model, max_len=200, slots=8, policy_version=3) as policy:
        before = await converse_all(policy, range(8), turns=2)
        assert {g.policy_version for result in before.values() for _, g in result} == {3}
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.1)
        policy.set_version(4)
        after = await converse_all(policy, range(8), turns=4)  # the same contexts, continued
    exchanges = [exchange for result in after.values() for exchange in result]
    assert {generation.policy_version for _, generation in exchanges} == {4}
    assert gap(model, exchanges) < 1e-5


async def test_a_message_under_way_begins_again_with_new_weights() -> None:
    model, trained = qwen(), qwen()
    with torch.no_grad():
        trained.get_input_embeddings().weight.mul_(0.9)
    request = ask(PREFIX, max_tokens=40)
    results: list[Generation] = []
    passes, is_under_way, is_awaited = 0, threading.Event(), threading.Event()

    def hold_the_tenth_pass(*_: object) -> None:
        nonlocal passes
        passes += 1
        if passes == 10:
            is_under_way.set()
            is_awaited.wait(60)

    async def one() -> None:
        results.append(await policy.generate(request))

    async def let_go() -> None:
        await anyio.wait_all_tasks_blocked()  # the one that wants to change weights among them
        assert passes == 10
        is_awaited.set()

    async with (
        TorchPolicy(model, max_len=500, slots=2) as policy,
        anyio.create_task_group() as tasks,
    ):
        policy._engine._model.register_forward_hook(hold_the_tenth_pass)
        tasks.start_soon(one)
        assert await anyio.to_thread.run_sync(is_under_way.wait, 60)
        tasks.start_soon(let_go)
        await policy.load_weights(trained, 1)
        assert not results
    assert results[0].policy_version == 1
    assert gap(trained, [(request, results[0])]) < 1e-5


async def test_messages_that_are_asked_for_while_new_weights_come_are_sampled_by_them() -> None:
    model, trained = qwen(), qwen()
    with torch.no_grad():
        trained.get_input_embeddings().weight.mul_(0.9)
    results: list[Generation] = []
    copying, go_on = threading.Event(), threading.Event()

    class Slow(TorchPolicy):
        def _copy(self, trained: Sequence[torch.nn.Parameter]) -> None:
            super()._copy(trained)
            copying.set()
            go_on.wait(60)

    async with Slow(model, max_len=200, slots=2) as policy, anyio.create_task_group() as tasks:

        async def one() -> None:
            results.append(await policy.generate(ask(PREFIX)))

        async def let_go() -> None:
            await anyio.wait_all_tasks_blocked()
            go_on.set()

        tasks.start_soon(policy.load_weights, trained, 1)
        assert await anyio.to_thread.run_sync(copying.wait, 60)
        tasks.start_soon(one)
        tasks.start_soon(let_go)
    assert results[0].policy_version == 1
    assert gap(trained, [(ask(PREFIX), results[0])]) < 1e-5


async def test_weights_that_changed_in_silence_are_noticed() -> None:
    model = qwen()
    async with TorchPolicy(model, max_len=200, slots=2) as policy:
        await policy.generate(ask(PREFIX))
        with torch.no_grad():
            model.get_input_embeddings().weight.mul_(0.9)
        with pytest.raises(PolicyError, match="set_version"):
            await policy.generate(ask(PREFIX))


async def test_the_model_can_be_trained_between_and_keeps_its_settings() -> None:
    model = qwen().train()
    implementation = model.config._attn_implementation
    async with TorchPolicy(model, max_len=200, slots=2) as policy:
        generation = await policy.generate(ask(PREFIX))
        model(torch.tensor([PREFIX]), labels=torch.tensor([PREFIX])).loss.backward()
    assert model.training
    assert model.config._attn_implementation == implementation
    assert all(parameter.grad is not None for parameter in model.parameters())
    assert gap(model, [(ask(PREFIX), generation)]) < 1e-5


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (ask(PREFIX, max_tokens=141), "exceed max_len 200"),
        (ask([]), "at least 1"),
        (ask(PREFIX, max_tokens=0), "at least 1"),
        (ask([1, VOCAB]), "outside the model's vocabulary"),
        (ask([1, -1]), "outside the model's vocabulary"),
    ],
)
async def test_an_impossible_request_is_refused_alone(
    request_: GenerateRequest, message: str
) -> None:
    async with TorchPolicy(qwen(), max_len=200, slots=2) as policy:
        with pytest.raises(PolicyError, match=message):
            await policy.generate(request_)
        assert len((await policy.generate(ask(PREFIX, max_tokens=140))).token_ids) == 140


async def test_a_failing_engine_reaches_every_caller_and_later_ones() -> None:
    errors: list[str] = []

    async def one(number: int) -> None:
        with pytest.raises(PolicyError, match="broken weights") as caught:
            await policy.generate(ask(PREFIX, dialogue=str(number)))
        errors.append(str(caught.value))

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("broken weights")

    async with TorchPolicy(qwen(), max_len=200, slots=2) as policy:
        policy._engine._model.forward = broken
        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(one, number)
        await one(5)
    assert len(errors) == 5


async def test_outside_its_context_the_policy_refuses() -> None:
    policy = TorchPolicy(qwen(), max_len=200, slots=2)
    with pytest.raises(PolicyError, match="async with"):
        await policy.generate(ask(PREFIX))
    async with policy:
        await policy.generate(ask(PREFIX))
    with pytest.raises(PolicyError, match="closed"):
        await policy.generate(ask(PREFIX))


async def test_an_error_of_the_block_leaves_it_as_it_is() -> None:
    with pytest.raises(KeyError, match="bug"):
        async with TorchPolicy(qwen(), max_len=64, slots=2):
            raise KeyError("bug")
    with anyio.move_on_after(0.01) as scope:
        async with TorchPolicy(qwen(), max_len=64, slots=2):
            await anyio.sleep_forever()
    assert scope.cancelled_caught
