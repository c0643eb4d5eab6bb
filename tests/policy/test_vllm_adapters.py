"""Adapters on vLLM servers that only look like it: a name for each version, and old ones gone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import torch
from fake_vllm import FakeVllm, fake_vllm, probe_of, read_weights
from safetensors.torch import save_file

from muarl.errors import PolicyError, SetupError, WeightSyncError
from muarl.policy import GenerateRequest
from muarl.policy.vllm_server import VllmServerPolicy

pytestmark = pytest.mark.anyio
FILE = "adapter_model.safetensors"


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def ask(dialogue: str = "d") -> GenerateRequest:
    return GenerateRequest(
        prompt_ids=[10, 11],
        dialogue=dialogue,
        seed=1,
        max_tokens=3,
        temperature=1.0,
        stop_token_ids=(),
    )


@asynccontextmanager
async def served(count: int) -> AsyncIterator[tuple[list[FakeVllm], VllmServerPolicy]]:
    async with fake_vllm(count) as fakes:
        for fake in fakes:
            fake.adapters, fake.has_dev_mode = {}, False
        async with VllmServerPolicy([fake.url for fake in fakes]) as policy:
            yield fakes, policy


def save(folder: Path, value: float) -> str:
    save_file({"w": torch.tensor([value])}, folder / FILE)
    return read_weights(str(folder), FILE)


async def load(policy: VllmServerPolicy, version: int, value: float) -> float:
    weights = save(policy.staging_dir, value)
    return await policy.load_adapters(policy.staging_dir, version, probe_of(weights))


async def test_each_version_is_an_adapter_of_its_name_and_old_ones_are_removed() -> None:
    async with served(2) as (fakes, policy):
        assert (await policy.generate(ask())).policy_version == 0, "without adapters"
        for version in (1, 2):
            assert await load(policy, version, version / 2) == 0
            assert (await policy.generate(ask())).policy_version == policy.policy_version == version
            for fake in fakes:
                (name,) = fake.adapters or {}
                assert name.startswith(f"muarl-v{version}-")
            assert await policy.probe_gap(probe_of(f"[{version / 2}]")) == 0
        assert [path.name for path in policy.staging_dir.parent.glob("muarl-v*")] == [name]
        staging = policy.staging_dir
    assert not staging.exists()


async def test_a_message_ends_under_the_adapter_it_began_with_which_stays_as_long() -> None:
    async with served(1) as ((fake,), policy):
        await load(policy, 1, 0.5)
        (old,) = fake.adapters or {}
        with policy._adapters.newest() as adapter:  # as `generate` does for its length
            assert adapter is not None
            await load(policy, 2, 0.25)
            assert adapter.name == old
            assert old in (fake.adapters or {})
        await load(policy, 3, 0.125)
        assert len(fake.adapters or {}) == 1


async def test_a_server_started_anew_without_its_adapters_is_used_no_more_until_it_has_them() -> (
    None
):
    async with served(2) as (fakes, policy):
        await load(policy, 1, 0.5)
        fakes[0].adapters = {}
        for number in range(16):
            assert (await policy.generate(ask(str(number)))).policy_version == 1
        assert not fakes[0].messages, "it refuses them all"
        await load(policy, 2, 0.25)
        for number in range(16):
            await policy.generate(ask(str(number)))
        assert fakes[0].messages
        for fake in fakes:
            fake.adapters = {}
        with pytest.raises(PolicyError, match="no vLLM server holds version 2"):
            await policy.generate(ask())


async def test_adapters_that_do_not_answer_as_the_trainer_says_are_refused() -> None:
    async with served(1) as ((_,), policy):
        save(policy.staging_dir, 0.5)
        with pytest.raises(WeightSyncError, match="off by"):
            await policy.load_adapters(policy.staging_dir, 1, probe_of("other"))
        assert policy.policy_version == 0
        assert (await policy.generate(ask())).policy_version == 0


async def test_servers_that_take_no_adapters_are_said_how_to_start() -> None:
    async with fake_vllm() as (fake,), VllmServerPolicy([fake.url]) as policy:
        with pytest.raises(SetupError, match=r"VLLM_ALLOW_RUNTIME_LORA_UPDATING=1.*--enable-lora"):
            policy.require_adapters()


async def test_processes_of_one_run_follow_the_one_that_loads_adapters() -> None:
    async with fake_vllm(2) as fakes:
        for fake in fakes:
            fake.adapters, fake.has_dev_mode = {}, False
        urls = [fake.url for fake in fakes]
        async with (
            VllmServerPolicy(urls, run="r") as first,
            VllmServerPolicy(urls, run="r") as other,
        ):
            for version in (1, 2):
                await load(first, version, version / 2)
                other.follow(version, adapters=True)
                assert (await other.generate(ask())).policy_version == version
                assert await other.probe_gap(probe_of(f"[{version / 2}]")) == 0
