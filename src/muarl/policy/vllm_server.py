"""The policy on vLLM servers (`vllm serve`), one or several, over HTTP.

Owns: which endpoint gets a message, retries, deadlines, weight syncs, and what is looked at before
the first message. Does not own: the servers' processes; text. Token ids go in and come out.

A message has no effect on any world, so it is sent again, to the same endpoint or another, until
its deadline. A cancelled call closes its connection, upon which vLLM aborts the request.

Runs on asyncio and on trio. Invariants, those marked with a test on a real server:
  1. log-probs are those of the distribution sampled from, temperature included (real);
  2. a cancelled `generate` leaves no request in the engine (real);
  3. after a weight sync each endpoint still in use answers with the new weights, proved by a probe,
     or it raises (real);
  4. what old weights sampled after a sync, because their server was started anew, is thrown away.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from math import inf
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
import anyio.to_thread
import msgspec

from muarl.errors import EpisodeTimeout, PolicyError, SetupError, WeightSyncError
from muarl.http.breaker import Permit
from muarl.http.call import Call, Refused, call, reported
from muarl.http.key import ApiKey
from muarl.http.retry import Backoff, PassingFailure, shortly, wait_of
from muarl.http.transport import connections
from muarl.own_folder import own_folder
from muarl.policy.fleet import Endpoint, Fleet
from muarl.policy.logprob_probe import HALF_TOLERANCE, LogprobProbe
from muarl.policy.protocol import EngineLoad, GenerateRequest, Generation
from muarl.policy.vllm_load import LoadReader
from muarl.policy.vllm_process import nothing_outlives_us, tmpfs
from muarl.policy.vllm_served_adapters import ServedAdapter, ServedAdapters
from muarl.policy.vllm_start import HOW_TO_ADAPT, HOW_TO_SYNC, look_at_all
from muarl.policy.vllm_sync import Push, WeightSync, from_disk, gap_of
from muarl.policy.vllm_versions import split_versions
from muarl.policy.vllm_weights import prepare_weights
from muarl.policy.vllm_wire import (
    GENERATE,
    Sampled,
    generate_body,
    message_id,
    read_sampled,
)
from muarl.policy.weight_labels import WeightLabels

_LOOK_AGAIN_S = 0.5
"""How often a message without an endpoint looks for one."""
_LABEL_CHARS = 80
_NOT_FOUND = 404
_log = logging.getLogger(__name__)


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
        request_id = message_id(request)
        failures: list[str] = []
        with (
            self._adapters.newest() as adapter,
            anyio.move_on_after(self._timeout_s) as deadline,
        ):
            body = generate_body(request, request_id, adapter and adapter.name)
            generation = await self._until_answered(
                request.dialogue, request_id, body, adapter, deadline, failures
            )
            return generation if adapter is None else _all_of(generation, adapter.version)
        tried = f" (last try: {failures[-1]})" if failures else ""
        raise EpisodeTimeout(f"a message of the policy{tried}", self._timeout_s)

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

    async def _until_answered(
        self,
        dialogue: str,
        request_id: str,
        body: bytes,
        adapter: ServedAdapter | None,
        deadline: anyio.CancelScope,
        failures: list[str],
    ) -> Generation:
        """Ask until it goes well; what goes wrong on the way is added to `failures`."""
        backoff = Backoff()
        barred: dict[Endpoint, float] = {}  # until when
        while True:
            now = anyio.current_time()
            barred = {endpoint: until for endpoint, until in barred.items() if until > now}
            chosen = self._fleet.choose(dialogue, now, barred)
            if chosen is None:
                await self._wait(now, barred, deadline, failures)
                continue
            endpoint, permit = chosen
            try:
                return await self._ask(endpoint, permit, request_id, body, adapter)
            except PassingFailure as failure:
                endpoint.last_failure = f"{endpoint.url} {failure}"
                failures.append(endpoint.last_failure)
                barred[endpoint] = anyio.current_time() + wait_of(failure, backoff)

    async def _wait(
        self,
        now: float,
        barred: dict[Endpoint, float],
        deadline: anyio.CancelScope,
        failures: list[str],
    ) -> None:
        """Wait until an endpoint may be asked, or for a moment if that is not known."""
        well = [endpoint for endpoint in self._fleet.endpoints if not endpoint.is_stale]
        if not well:
            raise PolicyError(
                f"no vLLM server holds version {self._version} of the weights"
                + (f" (last try: {failures[-1]})" if failures else "")
            )
        if min(barred.get(endpoint, -inf) for endpoint in well) > deadline.deadline:
            raise PolicyError(
                f"the vLLM server at {failures[-1]}; the next try would come after the "
                f"{self._timeout_s:g} s that a message may take"
            )
        if not failures:  # of this message: it found all endpoints left alone, and says why
            failures += [well[0].last_failure] if well[0].last_failure else []
        wait_s = min(
            max(barred.get(endpoint, now) - now, endpoint.breaker.wait_s(now)) for endpoint in well
        )
        await anyio.sleep(min(wait_s, _LOOK_AGAIN_S))

    async def _ask(
        self,
        endpoint: Endpoint,
        permit: Permit,
        request_id: str,
        body: bytes,
        adapter: ServedAdapter | None,
    ) -> Generation:
        """Ask one endpoint once, and tell its breaker how that went."""
        required, version = self._labels.required, self._version
        try:
            with reported(endpoint.breaker, permit):
                answer = await self._call("POST", endpoint.url + GENERATE, body)
                sampled = read_sampled(answer, request_id)
        except Refused as refusal:
            if adapter is not None and adapter.name in str(refusal):
                endpoint.is_stale = True
                raise PassingFailure(
                    "does not know the adapters it was given; started anew?"
                ) from refusal
            if refusal.status == _NOT_FOUND:
                # The route was there a moment ago: a proxy's word, or the answer to another request.
                raise PassingFailure(str(refusal)) from refusal
            raise PolicyError(
                f"the vLLM server at {endpoint.url} refused a message: it {refusal}"
            ) from refusal
        self._refuse_old_weights(endpoint, sampled, required)
        first, switches = split_versions(sampled.spans, self._labels.version, unlabelled=version)
        return Generation(
            sampled.token_ids, sampled.logprobs, sampled.finish_reason, first, switches
        )

    def _refuse_old_weights(self, endpoint: Endpoint, sampled: Sampled, required: int) -> None:
        labels = [label for label, _, _ in sampled.spans]
        are_known = all(map(self._labels.knows, labels))
        if labels and not (are_known and self._labels.is_enough(labels[-1], required)):
            endpoint.is_stale = True
            label = shortly(labels[-1], _LABEL_CHARS)
            _log.warning("no more samples from %s: its weights are %r", endpoint.url, label)
        if endpoint.is_stale:
            raise PassingFailure("samples with other weights than it was given; started anew?")

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


def _all_of(generation: Generation, version: int) -> Generation:
    """A message that one adapter sampled from first to last: the server's labels know none."""
    return msgspec.structs.replace(generation, policy_version=version, switches=())
