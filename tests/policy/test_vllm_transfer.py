"""How vLLM's trainer side would steer several servers; the transfer itself needs GPUs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import pytest
import torch

from muarl.errors import SetupError, WeightSyncError
from muarl.http.retry import PassingFailure
from muarl.policy.fleet import Fleet
from muarl.policy.vllm_sync import WeightSync
from muarl.policy.vllm_transfer import FleetClient, WeightTransfer

pytestmark = pytest.mark.anyio

URLS = ["http://a", "http://b", "http://c"]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


class Servers:
    """Notes what it is asked; the paths in `broken` fail."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.broken: set[str] = set()

    async def __call__(self, method: str, url: str, body: bytes = b"") -> bytes:
        del method
        self.asked.append((url, json.loads(body) if body else None))
        if url in self.broken:
            raise PassingFailure("answered 500: no such worker")
        return b"{}"


async def in_a_foreign_thread(work: Callable[[], None]) -> None:
    """As vLLM calls it: from a thread of an executor within a worker thread."""
    from concurrent.futures import ThreadPoolExecutor

    def outer() -> None:
        with ThreadPoolExecutor(1) as threads:
            threads.submit(work).result()

    await anyio.to_thread.run_sync(outer)


async def test_every_worker_gets_a_rank_of_its_own() -> None:
    servers = Servers()
    client = FleetClient(servers, URLS, [2, 4, 1])
    assert client.world_size == 8
    info = {"master_address": "10.0.0.1", "rank_offset": 1, "world_size": 8}
    await in_a_foreign_thread(lambda: client.init_weight_transfer_engine(info))
    assert dict(servers.asked) == {
        "http://a/init_weight_transfer_engine": {"init_info": info},
        "http://b/init_weight_transfer_engine": {"init_info": info | {"rank_offset": 3}},
        "http://c/init_weight_transfer_engine": {"init_info": info | {"rank_offset": 7}},
    }


async def test_a_round_reaches_all_servers_and_the_label_follows_later() -> None:
    servers = Servers()
    client = FleetClient(servers, URLS, [1, 1, 1])
    update = {"names": ["w"], "dtype_names": ["float32"], "shapes": [[2]]}

    def round_trip() -> None:
        client.start_weight_update()
        client.update_weights(update)
        client.finish_weight_update()
        client.shutdown_weight_transfer_engine()

    await in_a_foreign_thread(round_trip)
    for url in URLS:
        assert [(path, body) for path, body in servers.asked if path.startswith(url)] == [
            (f"{url}/start_weight_update", None),
            (f"{url}/update_weights", {"update_info": update}),
            (f"{url}/finish_weight_update", None),
            (f"{url}/shutdown_weight_transfer_engine", None),
        ]


async def test_a_server_that_fails_is_named() -> None:
    servers = Servers()
    servers.broken.add("http://b/start_weight_update")
    client = FleetClient(servers, URLS, [1, 1, 1])
    with pytest.raises(WeightSyncError, match="http://b/start_weight_update answered 500"):
        await in_a_foreign_thread(client.start_weight_update)


class Engine:
    """vLLM's trainer side, as far as we call it."""

    def __init__(self, problem: Exception | None = None) -> None:
        self._problem = problem
        self.sent = 0

    def send_weights(self) -> None:
        if self._problem:
            raise self._problem
        self.sent += 1


async def swap(servers: Servers, engine: Engine) -> None:
    transfer = WeightTransfer(FleetClient(servers, URLS, [1, 1, 1]), engine)
    await WeightSync(servers, Fleet(URLS).endpoints).swap(transfer.push, "label-1")


async def test_weights_go_over_while_the_servers_are_paused() -> None:
    servers, engine = Servers(), Engine()
    await swap(servers, engine)
    assert engine.sent == 1
    assert [url.partition("//a")[2] for url, _ in servers.asked if "//a" in url] == [
        "/pause?mode=keep",
        "/reset_prefix_cache?reset_running_requests=true",
        "/update_weight_version",
        "/resume",
    ]


@pytest.mark.parametrize("problem", [RuntimeError("NCCL error 5"), ValueError("yielded more")])
async def test_a_failed_transfer_is_said_and_the_servers_go_on(problem: Exception) -> None:
    servers = Servers()
    with pytest.raises(WeightSyncError, match=str(problem)):
        await swap(servers, Engine(problem))
    assert sum(url.endswith("/resume") for url, _ in servers.asked) == 3


async def test_the_transfer_needs_every_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muarl.http.retry._FIRST_WAIT_S", 0.01)
    servers, engine = Servers(), Engine()
    servers.broken.add("http://b/pause?mode=keep")
    with pytest.raises(WeightSyncError, match="needs every server: http://b /pause answered 500"):
        await swap(servers, engine)
    assert engine.sent == 0


async def test_a_model_on_a_cpu_cannot_be_sent() -> None:
    with pytest.raises(SetupError, match="`sync: disk`"):
        await WeightTransfer.join(Servers(), URLS, torch.nn.Linear(1, 1).weight, "127.0.0.1")
