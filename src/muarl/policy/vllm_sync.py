"""Exchange the weights of running vLLM servers, by vLLM's own routes.

    pause, requests frozen ──> the weights go over ──> caches emptied ──> new label ──> resume

The routes stand open on a server that was started with VLLM_SERVER_DEV_MODE=1.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec

from muarl.errors import WeightSyncError
from muarl.http.call import Call, Refused, persistently
from muarl.http.retry import PassingFailure
from muarl.policy.fleet import Endpoint
from muarl.policy.logprob_probe import LogprobProbe
from muarl.policy.vllm_wire import GENERATE, new_request_id, read_scores, score_body

Push = Callable[["WeightSync", Sequence[Endpoint], str], Awaitable[Sequence[Endpoint]]]
"""Gets the weights into paused endpoints, under a label; returns those that took them."""

_RESUME_DEADLINE_S = 10.0

_log = logging.getLogger(__name__)


class WeightSync:
    """One exchange of weights.

    An endpoint that fails on the way is marked stale, so that nothing more is sampled from it; the
    exchange goes on as long as one is left.

    Args:
        call: Asks a server.
        endpoints: All of them, stale ones too: they may be well again.
    """

    def __init__(self, call: Call, endpoints: Sequence[Endpoint]) -> None:
        self._call = call
        self._endpoints = endpoints
        self._failures: dict[Endpoint, str] = {}

    async def swap(self, push: Push, label: str) -> Sequence[Endpoint]:
        """Exchange the weights everywhere.

        Args:
            push: Brings them over.
            label: What the servers are to call them.

        Returns:
            The endpoints that hold them now.

        Raises:
            WeightSyncError: None does.
        """
        paused = await self.on_each(self._endpoints, "/pause?mode=keep")
        try:
            held = await push(self, paused, label)
            # Frozen requests lose their keys and values too, and have them computed anew.
            held = await self.on_each(held, "/reset_prefix_cache?reset_running_requests=true")
            held = await self.on_each(held, "/update_weight_version", {"new_version": label})
        finally:
            # Also where pausing seemed to fail, and where time is up: nothing must stay frozen.
            resumed: list[Endpoint] = []
            with anyio.move_on_after(_RESUME_DEADLINE_S, shield=True):
                resumed = await self.on_each(self._endpoints, "/resume")
        held = [endpoint for endpoint in held if endpoint in resumed]
        self.keep_only(held)
        if not held:
            raise WeightSyncError(f"no server took the new weights: {self.reasons()}")
        return held

    async def on_each(
        self, endpoints: Sequence[Endpoint], path: str, payload: Any = None
    ) -> list[Endpoint]:
        """POST to endpoints at once; those where it went well, in order."""
        body = b"" if payload is None else msgspec.json.encode(payload)
        well: set[Endpoint] = set()

        async def one(endpoint: Endpoint) -> None:
            try:
                await persistently(self._call, "POST", endpoint.url + path, body)
            except (PassingFailure, Refused) as failure:
                self._failures.setdefault(endpoint, f"{path.partition('?')[0]} {failure}")
            else:
                well.add(endpoint)

        async with anyio.create_task_group() as tasks:
            for endpoint in endpoints:
                tasks.start_soon(one, endpoint)
        return [endpoint for endpoint in endpoints if endpoint in well]

    def keep_only(self, held: Sequence[Endpoint]) -> None:
        """Sample from these, and from no other until it took the next weights."""
        for endpoint in self._endpoints:
            endpoint.is_stale = endpoint not in held
            if endpoint.is_stale:
                _log.warning("no more samples from %s: %s", endpoint.url, self._why(endpoint))

    def reasons(self) -> str:
        """What went wrong, endpoint by endpoint."""
        return "; ".join(f"{endpoint.url} {why}" for endpoint, why in self._failures.items())

    def _why(self, endpoint: Endpoint) -> str:
        return self._failures.get(endpoint, "did not take them")


def from_disk(folder: Path) -> Push:
    """Let each server read safetensors from a folder, which it must see under the same path."""

    async def push(
        sync: WeightSync, endpoints: Sequence[Endpoint], label: str
    ) -> Sequence[Endpoint]:
        del label
        reload = {"method": "reload_weights", "kwargs": {"weights_path": str(folder)}}
        return await sync.on_each(endpoints, "/collective_rpc", reload)

    return push


async def gap_of(
    call: Call, endpoints: Sequence[Endpoint], probe: LogprobProbe, model: str | None
) -> float:
    """Largest absolute difference between any endpoint's log-probs and the probe's.

    Args:
        call: Asks a server.
        endpoints: Which.
        probe: What the trainer says.
        model: Name of an adapter; None: the model without one.

    Raises:
        WeightSyncError: One does not say.
    """
    gaps: list[float] = []
    problems: list[str] = []

    async def one(endpoint: Endpoint) -> None:
        request_id = new_request_id()
        body = score_body(probe.token_ids, request_id, model)
        try:
            answer = await persistently(call, "POST", endpoint.url + GENERATE, body)
            gaps.append(probe.gap(read_scores(answer, request_id)))
        except (PassingFailure, Refused, ValueError) as problem:
            problems.append(f"{endpoint.url} {problem}")

    async with anyio.create_task_group() as tasks:
        for endpoint in endpoints:
            tasks.start_soon(one, endpoint)
    if problems:
        raise WeightSyncError("cannot tell which weights the servers hold: " + problems[0])
    return max(gaps)
