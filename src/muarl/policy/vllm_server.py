"""The policy on vLLM servers (`vllm serve`), one or several, over HTTP.

Owns: weight syncs, and what is looked at before the first message. Does not own: the servers'
processes; text; how a message comes to its answer, which is `vllm_message`'s. Token ids go in and come out.

Runs on asyncio and on trio. Invariants, those marked with a test on a real server:
  1. log-probs are those of the distribution sampled from, temperature included (real);
  2. a cancelled `generate` leaves no request in the engine (real);
  3. after a weight sync each endpoint still in use answers with the new weights, proved by a probe,
     or it raises (real);
  4. what old weights sampled after a sync, because their server was started anew, is thrown away.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
import anyio.to_thread

from muarl.errors import EpisodeTimeout, SetupError, WeightSyncError
from muarl.http.call import Call, call
from muarl.http.key import ApiKey
from muarl.http.transport import connections
from muarl.own_folder import own_folder
from muarl.policy.fleet import Endpoint, Fleet
from muarl.policy.logprob_probe import HALF_TOLERANCE, LogprobProbe
from muarl.policy.protocol import EngineLoad, GenerateRequest, Generation
from muarl.policy.vllm_load import LoadReader
from muarl.policy.vllm_message import AskedMessage
from muarl.policy.vllm_process import nothing_outlives_us, tmpfs
from muarl.policy.vllm_served_adapters import ServedAdapters
from muarl.policy.vllm_start import HOW_TO_ADAPT, HOW_TO_SYNC, look_at_all
from muarl.policy.vllm_sync import Push, WeightSync, from_disk, gap_of
from muarl.policy.vllm_weights import prepare_weights
from muarl.policy.weight_labels import WeightLabels


class VllmServerPolicy:
    """Samples from vLLM servers; an async context manager that holds the connections.

    Example:
        async with VllmServerPolicy(["http://10.0.0.5:8000", "http://10.0.0.6:8000"]) as policy:
            generation = await policy.generate(request)
    """

    def __init__(
        self,
        endpoints: Sequence[str],
        *,
        version: int = 0,
        api_key_env: str | None = None,
        timeout_s: float = 100.0,
        sync_timeout_s: float = 300.0,
        logprob_tolerance: float = HALF_TOLERANCE,
        weights_dir: str | Path | None = None,
        context_tokens: int | None = None,
        run: str | None = None,
    ) -> None:
        """Describe the servers; entering the context looks at them.

        Args:
            endpoints: Base URLs, `http://127.0.0.1:8000`. All serve the same model.
            version: Version of the weights that they hold.
            api_key_env: Environment variable that holds their `--api-key`; None sends none.
            timeout_s: Seconds one message may take, with all its tries.
            sync_timeout_s: Seconds a weight sync may take.
            logprob_tolerance: Largest gap a probe may show; 1e-4 fits servers in float32.
            weights_dir: Folder on a file system that the servers share with this process, for new
                weights; None takes one in memory, for servers on this machine.
            context_tokens: What a context must be able to hold; None: anything.
            run: Name of the run, if several of its processes sample from these servers and one of
                them syncs their weights: see `follow`.

        Raises:
            SetupError: The key is not set.
        """
        self._fleet = Fleet(url.rstrip("/") for url in endpoints)
        self._version = version
        self._key = ApiKey(api_key_env)
        self._timeout_s = timeout_s
        self._sync_timeout_s = sync_timeout_s
        self.logprob_tolerance = logprob_tolerance
        self._weights_dir = weights_dir
        self._context_tokens = context_tokens
        self._run = run
        self._labels = WeightLabels(run)
        self._folder: Path | None = None
        self._takes_weights = self._takes_adapters = False
        self._adapters: ServedAdapters
        self._call: Call
        self._load_reader: LoadReader
        self._held: AsyncExitStack

    @property
    def policy_version(self) -> int:
        return self._version

    @property
    def staging_dir(self) -> Path:
        """A private folder to save new weights in, where the servers can read them.

        Raises:
            SetupError: The servers take no new weights, nor adapters.
        """
        if self._folder is None:
            self.require_weight_sync()
        assert self._folder is not None
        return self._folder / "new"

    @property
    def urls(self) -> list[str]:
        """Base URLs of the servers."""
        return [endpoint.url for endpoint in self._fleet.endpoints]

    @property
    def call(self) -> Call:
        """Asks a server anything."""
        return self._call

    def load(self) -> EngineLoad | None:
        return self._load_reader.latest()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as held:
            send = await held.enter_async_context(connections())
            self._call = partial(call, send, self._key)
            facts = await look_at_all(self._call, self.urls, self._context_tokens)
            for server in facts:
                if server.label is not None:
                    self._labels.found(server.label, self._version)
            self._load_reader = LoadReader(self._call, self.urls)
            self._takes_weights = all(server.takes_weights for server in facts)
            self._takes_adapters = all(server.takes_adapters for server in facts)
            self._adapters = ServedAdapters(self._call, self._fleet.endpoints, self._run)
            if self._takes_weights or self._takes_adapters:
                place = self._weights_dir or tmpfs()
                self._folder = held.enter_context(own_folder(place, "muarl-weights-"))
                held.enter_context(nothing_outlives_us([], self._folder))
                self.staging_dir.mkdir()
                (self._folder / "tied").mkdir()
            reading = await held.enter_async_context(anyio.create_task_group())
            reading.start_soon(self._load_reader.run, name="load of vLLM servers")
            held.callback(reading.cancel_scope.cancel)
            self._held = held.pop_all()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._held.__aexit__(exc_type, exc, traceback)

    async def generate(self, request: GenerateRequest) -> Generation:
        with self._adapters.newest() as adapter:
            message = AskedMessage(
                self._call, self._fleet, self._labels, lambda: self._version, request, adapter
            )
            return await message.answered(self._timeout_s)

    async def load_weights(self, weights_dir: Path, version: int, probe: LogprobProbe) -> float:
        """Put the safetensors of a folder into the running servers.

        Messages in flight are frozen, lose their cached keys and values, and go on under the new
        weights; `Generation.switches` says where.

        Args:
            weights_dir: Holds the safetensors; see `staging_dir`.
            version: Version of these weights.
            probe: What the trainer says about fixed tokens under these weights.

        Returns:
            The largest absolute log-prob gap on the probe.

        Raises:
            SetupError: The servers take no new weights.
            WeightSyncError: No server took them, or one does not answer with them.
        """
        self.require_weight_sync()
        tied = self.staging_dir.with_name("tied")
        # A server does not say whether it runs on a CPU, where a tied head has to be named.
        ready = await anyio.to_thread.run_sync(prepare_weights, weights_dir, tied, True)
        return await self.push_weights(from_disk(ready), version, probe)

    async def push_weights(self, push: Push, version: int, probe: LogprobProbe) -> float:
        """Get weights into the running servers by any way; otherwise as `load_weights`."""
        label = self._labels.issue(version)
        syncing = WeightSync(self._call, self._fleet.endpoints).swap(push, label)
        gap = await self._proved(syncing, version, probe, None)
        self._labels.require(label)
        return gap

    async def load_adapters(self, adapters_dir: Path, version: int, probe: LogprobProbe) -> float:
        """Have the servers sample with adapters, under a name of their own.

        Messages in flight end under the adapters that they began with.

        Args:
            adapters_dir: As peft saves them; see `staging_dir`.
            version: Version of these adapters.
            probe: What the trainer says about fixed tokens with them.

        Returns:
            The largest absolute log-prob gap on the probe.

        Raises:
            SetupError: The servers take no adapters.
            WeightSyncError: No server took them, or one does not answer with them.
        """
        self.require_adapters()
        adapter = self._adapters.issue(version)
        loading = self._adapters.load(adapter, adapters_dir, self.staging_dir.parent)
        gap = await self._proved(loading, version, probe, adapter.name)
        await self._adapters.use(adapter)
        return gap

    def follow(self, version: int, *, adapters: bool = False) -> None:
        """Another process of the run has synced this version: sample with it from now on.

        Call wherever that process loaded weights or adapters, in the same order.
        """
        if adapters:
            self._adapters.follow(version)
        else:
            label = self._labels.issue(version)
            self._labels.require(label)
        self._version = version
        for endpoint in self._fleet.endpoints:
            endpoint.is_stale = False  # one that did not take them shows it in its first message

    async def _proved(
        self,
        syncing: Awaitable[Sequence[Endpoint]],
        version: int,
        probe: LogprobProbe,
        model: str | None,
    ) -> float:
        """Await a sync, and have the servers that it says it reached prove it."""
        # Shielded: cancelled half way, servers would stay paused on unknown weights.
        with anyio.move_on_after(self._sync_timeout_s, shield=True):
            held = await syncing
            gap = await gap_of(self._call, held, probe, model)
            if not gap <= self.logprob_tolerance:
                raise WeightSyncError(
                    f"after the sync of version {version} the servers' log-probs are off by "
                    f"{gap:.4g} (at most {self.logprob_tolerance:g} is taken for rounding): they "
                    "do not hold the trainer's weights"
                )
            self._version = version
            return gap
        raise WeightSyncError(
            f"sync of version {version} did not finish within {self._sync_timeout_s:g} s"
        )

    async def probe_gap(self, probe: LogprobProbe) -> float:
        """Largest absolute difference between any server's log-probs and the probe's."""
        with self._adapters.newest() as adapter, anyio.move_on_after(self._sync_timeout_s):
            model = adapter and adapter.name
            return await gap_of(self._call, self._fleet.endpoints, probe, model)
        raise EpisodeTimeout("the log-probs of fixed tokens", self._sync_timeout_s)

    def require_weight_sync(self) -> None:
        """See to it before anything is trained.

        Raises:
            SetupError: The servers take no new weights.
        """
        if not self._takes_weights:
            raise SetupError(
                f"the vLLM servers take no new weights; start them with `{HOW_TO_SYNC}`"
            )

    def require_adapters(self) -> None:
        """See to it before anything is trained.

        Raises:
            SetupError: The servers take no adapters.
        """
        if not self._takes_adapters:
            raise SetupError(
                f"the vLLM servers take no adapters; start them with `{HOW_TO_ADAPT}`, N at least "
                "model.lora.rank"
            )
