"""Law L7: a rollout that is cancelled, at whatever await, leaves nothing behind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from dialogue_kit import note_task, renderer
from fault_kit import ListJournal, deserves, limits, noting_policy, runner, serve_notes
from noting_vllm import NotingVllm

from muarl.domain import Domain
from muarl.kernel.model import build_tiny_model
from muarl.messages import Message
from muarl.policy import GenerateRequest, Policy
from muarl.policy.torch_sampler import TorchPolicy
from muarl.policy.vllm_server import VllmServerPolicy
from muarl.record import EpisodeKey
from muarl.scheduler.dialogues import episode_keys
from muarl.scheduler.rounds import bounds, run_round
from muarl.spec.model import TinyModelSpec
from muarl.spec.user import LlmUserSpec, UserSpec
from muarl.testing import (
    FaultPlan,
    FaultyPolicy,
    FaultyToolServer,
    HttpServer,
    chat_answer,
    http_server,
)
from muarl.testing.cancelling import cancel_everywhere
from muarl.testing.servers import WORLD_RESOURCE, sound_server
from muarl.tools import ToolServer
from muarl.tools.memory import MemoryToolServer
from muarl.tools.stdio import MirrorToolServer, StdioToolServer


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is going is given its time; what stays is found all the same."""
    monkeypatch.setattr("muarl.testing.cancelling._GOING_S", 30.0)


both_backends = pytest.mark.parametrize("backend", ["asyncio", "trio"])

TASKS = [note_task()]
KEYS = episode_keys(TASKS, run_seed=0, phase="train", group_size=2)


class Rollout:
    """Two dialogues at once, if no others are named; knows what they hold, and what became of them."""

    def __init__(
        self,
        domain: Domain,
        server: ToolServer,
        policy: Policy | None = None,
        keys: Sequence[EpisodeKey] = KEYS,
    ) -> None:
        never = FaultPlan(["error"], rate=0)
        self.keys = keys
        self.domain = domain
        self.server = domain.server = FaultyToolServer(server, {}, never)
        self.policy = FaultyPolicy(policy or noting_policy(), never)
        self.journal = ListJournal()

    async def __call__(self, user: UserSpec | None = None) -> None:
        self.journal.episodes.clear()
        spec = limits()
        await run_round(
            self.keys,
            runner(self.domain, self.policy, spec, user=user, tasks=TASKS),
            limits=bounds(spec),
            journal=self.journal,
        )

    def check(self) -> None:
        """No request and no session is alive, and what is journaled is right."""
        assert self.policy.live == 0
        assert self.server.live == 0
        keys = [episode.key for episode in self.journal.episodes]
        assert len(keys) == len(set(keys))
        assert set(keys) <= set(KEYS)
        for episode in self.journal.episodes:
            assert episode.reward == deserves(episode.key), "half a dialogue is no episode"


@both_backends
@pytest.mark.parametrize("stateless", [True, False])
def test_dialogues_over_a_server_in_memory_L7(
    domain: Domain, backend: str, stateless: bool
) -> None:
    rollout = Rollout(domain, MemoryToolServer(serve_notes, stateless=stateless))
    assert cancel_everywhere(rollout, backend=backend, check=rollout.check) > 10
    assert len(rollout.journal.episodes) == 2, "in the end nothing is left to cancel"


@pytest.mark.usefixtures("short_grace")
@both_backends
def test_dialogues_over_server_processes_L7(domain: Domain, tmp_path: Path, backend: str) -> None:
    # A process takes as long as twenty dialogues in memory. So there is one at a time, and it starts
    # as fast as a Python can: first a dialogue's alone, then that of the gold calls.
    python, script = sound_server()
    command = [python, "-I", "-S", script]
    server = MirrorToolServer(StdioToolServer(command, tmp_path), WORLD_RESOURCE)
    rollout = Rollout(domain, server, keys=KEYS[1:])
    anyio.run(domain.gold_world, TASKS[0])
    assert cancel_everywhere(rollout, backend=backend, check=rollout.check) > 50
    assert len(rollout.journal.episodes) == 1

    async def gold() -> None:
        domain._gold.clear()
        await domain.gold_world(TASKS[0])

    assert cancel_everywhere(gold, backend=backend, check=rollout.check) > 50


@both_backends
def test_dialogues_with_a_user_behind_an_endpoint_L7(
    domain: Domain, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    monkeypatch.undo()  # the domain's own users: here an LLM
    rollout = Rollout(domain, MemoryToolServer(serve_notes, stateless=True))

    def say(messages: list[dict[str, Any]]) -> str:
        return "Note it." if len(messages) == 2 else "Thanks.\n###STOP###"

    async def work(endpoint: HttpServer) -> None:
        llm = LlmUserSpec(base_url=f"{endpoint.url}/v1", model="user")
        await rollout(UserSpec(llm=llm))

    @asynccontextmanager
    async def around() -> AsyncIterator[HttpServer]:
        async with http_server(chat_answer(say)) as endpoint:
            yield endpoint
            assert endpoint.live == 0, "every connection was closed"

    assert cancel_everywhere(work, backend=backend, around=around, check=rollout.check) > 20
    assert len(rollout.journal.episodes) == 2


@both_backends
def test_dialogues_with_a_policy_behind_an_endpoint_L7(domain: Domain, backend: str) -> None:
    vllm = NotingVllm(KEYS)
    journal = ListJournal()

    async def work(policy: VllmServerPolicy) -> None:
        rollout = Rollout(domain, MemoryToolServer(serve_notes, stateless=True), policy)
        try:
            await rollout()
        finally:
            rollout.check()
            journal.episodes = rollout.journal.episodes

    @asynccontextmanager
    async def around() -> AsyncIterator[VllmServerPolicy]:
        async with http_server(vllm.answer) as vllm.server:
            async with VllmServerPolicy([vllm.url]) as policy:
                yield policy
            assert vllm.server.live == 0, "every connection was closed"

    assert cancel_everywhere(work, backend=backend, around=around) > 20
    assert len(journal.episodes) == 2


@both_backends
def test_a_policy_that_is_opened_used_and_closed_over_kept_connections_L7(
    domain: Domain, backend: str
) -> None:
    vllm = NotingVllm(KEYS)
    journal = ListJournal()

    async def work(_server: HttpServer) -> None:
        async with VllmServerPolicy([vllm.url]) as policy:
            rollout = Rollout(domain, MemoryToolServer(serve_notes, stateless=True), policy)
            try:
                await rollout()
            finally:
                rollout.check()
                journal.episodes = rollout.journal.episodes

    @asynccontextmanager
    async def around() -> AsyncIterator[HttpServer]:
        async with http_server(vllm.answer, keep=True) as vllm.server:
            yield vllm.server
            assert vllm.server.live == 0, "every connection was closed"

    assert cancel_everywhere(work, backend=backend, around=around) > 20
    assert len(journal.episodes) == 2


@both_backends
def test_the_embedded_engine_is_idle_after_dialogues_were_cancelled_L7(
    domain: Domain, backend: str
) -> None:
    size = TinyModelSpec(vocab_size=renderer().tokenizer.vocab_size, num_layers=1)
    model = build_tiny_model(size, seed=0)
    spec = limits(max_tokens=4, context_tokens=1_000)

    async def work(engine: TorchPolicy) -> None:
        players = runner(domain, engine, spec, tasks=TASKS)
        await run_round(KEYS, players, limits=bounds(spec), journal=ListJournal())

    @asynccontextmanager
    async def around() -> AsyncIterator[TorchPolicy]:
        async with TorchPolicy(model, max_len=1_000, slots=4, threads=1) as engine:
            yield engine
            # A request that waits its turn behind anything that was left is answered at the end.
            prompt = renderer().start([Message("user", "hello")], [])
            with anyio.fail_after(60):
                await engine.generate(GenerateRequest(prompt, "last", 0, 1, 1.0, ()))
            assert not engine._engine.busy
            assert not engine._arrivals

    assert cancel_everywhere(work, backend=backend, around=around) > 5
