"""Weights from the trainer's GPU straight into the servers' GPUs: vLLM's own NCCL transfer.

vLLM brings both ends: the servers' behind its routes (`vllm serve --weight-transfer-config
'{"backend": "nccl"}'`), the trainer's as a class that sends a module's parameters and steers the
servers through a client of four methods. Its own client knows one server; ours knows several, and
gives the workers of each their ranks in the group.

    rank 0            the trainer
    ranks 1, 2, ...   the workers of the first server, then those of the second, ...

Not run on a GPU yet: see docs/gpu.md.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
import msgspec

from muarl.errors import SetupError, WeightSyncError
from muarl.http.call import Call, Refused
from muarl.http.retry import PassingFailure
from muarl.policy.fleet import Endpoint
from muarl.policy.vllm_start import HOW_TO_SYNC
from muarl.policy.vllm_sync import WeightSync

_HOW_TO_SERVE = f"""{HOW_TO_SYNC} --weight-transfer-config '{{"backend": "nccl"}}'"""


class _WorldSize(msgspec.Struct):
    world_size: int


class FleetClient:
    """What vLLM's trainer side steers the servers with (its `VLLMWeightSyncClient`).

    The methods block, since vLLM calls them from threads of its own; the requests run on the event
    loop.

    Args:
        call: Asks a server.
        urls: Of the servers, in the order of their ranks.
        sizes: Workers of each.
    """

    def __init__(self, call: Call, urls: Sequence[str], sizes: Sequence[int]) -> None:
        self._call = call
        self._urls = urls
        self._sizes = sizes
        self._token = anyio.lowlevel.current_token()

    @property
    def num_servers(self) -> int:
        """How many there are."""
        return len(self._urls)

    @property
    def world_size(self) -> int:
        """All workers and the trainer."""
        return 1 + sum(self._sizes)

    def init_weight_transfer_engine(self, init_info: dict[str, Any]) -> None:
        """Let the workers join the group, each under a rank of its own."""
        before = [sum(self._sizes[:number]) for number in range(len(self._sizes))]
        offset = init_info["rank_offset"]
        self._all(
            "/init_weight_transfer_engine",
            [{"init_info": init_info | {"rank_offset": offset + ranks}} for ranks in before],
        )

    def start_weight_update(self) -> None:
        """Expect weights."""
        self._all("/start_weight_update")

    def update_weights(self, update_info: Any) -> None:
        """Receive what is being sent; returns when it has arrived."""
        self._all("/update_weights", [{"update_info": update_info}] * len(self._urls))

    def finish_weight_update(self, weight_version: str | None = None) -> None:
        """Take what arrived."""
        del weight_version  # the label follows when all is done, as on the other way
        self._all("/finish_weight_update")

    def shutdown_weight_transfer_engine(self) -> None:
        """Leave the group."""
        self._all("/shutdown_weight_transfer_engine")

    def _all(self, path: str, payloads: Sequence[Any] | None = None) -> None:
        anyio.from_thread.run(self._post_all, path, payloads, token=self._token)

    async def _post_all(self, path: str, payloads: Sequence[Any] | None) -> None:
        problems: list[str] = []

        async def one(url: str, payload: Any) -> None:
            body = b"" if payload is None else msgspec.json.encode(payload)
            try:
                await self._call("POST", url + path, body)
            except (PassingFailure, Refused) as failure:
                problems.append(f"{url}{path} {failure}")

        async with anyio.create_task_group() as tasks:
            for url, payload in zip(self._urls, payloads or [None] * len(self._urls), strict=True):
                tasks.start_soon(one, url, payload)
        if problems:
            raise WeightSyncError("; ".join(problems))


class WeightTransfer:
    """The group of the trainer and all workers. `push` is a `Push` for `VllmServerPolicy`.

    Args:
        client: Steers the servers.
        engine: vLLM's trainer side, which has joined the group.
    """

    def __init__(self, client: FleetClient, engine: Any) -> None:
        self._client = client
        self._engine = engine

    @classmethod
    async def join(
        cls, call: Call, urls: Sequence[str], model: Any, trainer_address: str
    ) -> WeightTransfer:
        """Form the group.

        Args:
            call: Asks a server.
            urls: Of the servers.
            model: The trainer's, on a GPU.
            trainer_address: Where the servers' workers reach this machine.

        Raises:
            SetupError: The model is not on a GPU, vLLM is not installed beside the trainer, or a
                server was not started for it.
        """
        if model.device.type != "cuda":
            raise SetupError(
                f"`sync: nccl` sends weights from a GPU, and the trainer's model is on "
                f"{model.device}; take `sync: disk`"
            )
        try:
            from vllm.distributed.weight_transfer import WeightTransferTrainerFactory
            from vllm.distributed.weight_transfer.base import ModuleSource
            from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo
        except ImportError as error:
            raise SetupError(
                f"`sync: nccl` needs vLLM beside the trainer too ({error}): "
                "pip install 'muarl[vllm]', or take `sync: disk`"
            ) from error
        client = FleetClient(call, urls, [await _world_size(call, url) for url in urls])
        info = NCCLTrainerInitInfo(
            master_address=trainer_address,
            master_port=_free_port(trainer_address),
            world_size=client.world_size,
            rank=0,
        )

        def join() -> Any:
            source = ModuleSource(model)
            return WeightTransferTrainerFactory.trainer_init(info, client=client, source=source)

        try:
            engine = await anyio.to_thread.run_sync(join)
        except (WeightSyncError, RuntimeError, OSError) as error:
            raise SetupError(
                f"the servers do not join the trainer: {error}; start them with `{_HOW_TO_SERVE}`"
            ) from error
        return cls(client, engine)

    async def push(
        self, sync: WeightSync, endpoints: Sequence[Endpoint], label: str
    ) -> Sequence[Endpoint]:
        """Send the model's parameters as they are now.

        Raises:
            WeightSyncError: A server is missing; the group has no use without it.
        """
        del label
        if len(endpoints) < self._client.num_servers:
            raise WeightSyncError(f"the transfer needs every server: {sync.reasons()}")
        try:
            await anyio.to_thread.run_sync(self._engine.send_weights)
        except (RuntimeError, ValueError, OSError) as error:  # NCCL's, and what vLLM checks
            raise WeightSyncError(f"the transfer of weights failed: {error}") from error
        return endpoints

    async def leave(self) -> None:
        """Take the group apart."""
        await anyio.to_thread.run_sync(self._client.shutdown_weight_transfer_engine)
        await anyio.to_thread.run_sync(self._engine.shutdown)


async def _world_size(call: Call, url: str) -> int:
    try:
        body = await call("GET", f"{url}/get_world_size")
        return msgspec.json.decode(body, type=_WorldSize).world_size
    except (PassingFailure, Refused, msgspec.MsgspecError) as error:
        raise SetupError(
            f"the vLLM server at {url} does not say how many workers it has ({error}); start it "
            f"with `{_HOW_TO_SERVE}`"
        ) from error


def _free_port(address: str) -> int:
    with socket.socket() as taken:
        taken.bind((address, 0))
        port: int = taken.getsockname()[1]
        return port
