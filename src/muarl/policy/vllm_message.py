"""One message, asked of vLLM servers until one of them answers.

A message has no effect on any world, so it is sent again, to the same endpoint or another, until its
deadline. A cancelled call closes its connection, upon which vLLM aborts the request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from math import inf

import anyio
import msgspec

from muarl.errors import EpisodeTimeout, PolicyError
from muarl.http.breaker import Permit
from muarl.http.call import Call, Refused, reported
from muarl.http.retry import Backoff, PassingFailure, shortly, wait_of
from muarl.policy.fleet import Endpoint, Fleet
from muarl.policy.protocol import GenerateRequest, Generation
from muarl.policy.vllm_served_adapters import ServedAdapter
from muarl.policy.vllm_versions import split_versions
from muarl.policy.vllm_wire import GENERATE, Sampled, generate_body, message_id, read_sampled
from muarl.policy.weight_labels import WeightLabels

_LOOK_AGAIN_S = 0.5
"""How often a message without an endpoint looks for one."""
_LABEL_CHARS = 80
_NOT_FOUND = 404
_log = logging.getLogger(__name__)


class AskedMessage:
    """A message on its way.

    Args:
        call: Asks a server anything.
        fleet: The servers.
        labels: Of the weights that they may answer with.
        version: Gives the version of the weights that they hold now.
        request: The message.
        adapter: What it is sampled with; None: the weights themselves.
    """

    def __init__(
        self,
        call: Call,
        fleet: Fleet,
        labels: WeightLabels,
        version: Callable[[], int],
        request: GenerateRequest,
        adapter: ServedAdapter | None,
    ) -> None:
        self._call, self._fleet, self._labels, self._version = call, fleet, labels, version
        self._dialogue = request.dialogue
        self._id = message_id(request)
        self._body = generate_body(request, self._id, adapter and adapter.name)
        self._adapter = adapter
        self._failures: list[str] = []
        self._barred: dict[Endpoint, float] = {}  # until when

    async def answered(self, timeout_s: float) -> Generation:
        """Its answer.

        Args:
            timeout_s: What it may take, with all its tries.

        Raises:
            PolicyError: It was refused, or no server can answer it in time.
            EpisodeTimeout: None did.
        """
        with anyio.move_on_after(timeout_s) as deadline:
            generation = await self._until_answered(timeout_s, deadline)
            return generation if self._adapter is None else _all_of(generation, self._adapter)
        tried = f" (last try: {self._failures[-1]})" if self._failures else ""
        raise EpisodeTimeout(f"a message of the policy{tried}", timeout_s)

    async def _until_answered(self, timeout_s: float, deadline: anyio.CancelScope) -> Generation:
        backoff = Backoff()
        while True:
            now = anyio.current_time()
            self._barred = {at: until for at, until in self._barred.items() if until > now}
            chosen = self._fleet.choose(self._dialogue, now, self._barred)
            if chosen is None:
                await self._wait(now, timeout_s, deadline)
                continue
            endpoint, permit = chosen
            try:
                return await self._ask(endpoint, permit)
            except PassingFailure as failure:
                endpoint.last_failure = f"{endpoint.url} {failure}"
                self._failures.append(endpoint.last_failure)
                self._barred[endpoint] = anyio.current_time() + wait_of(failure, backoff)

    async def _wait(self, now: float, timeout_s: float, deadline: anyio.CancelScope) -> None:
        """Wait until an endpoint may be asked, or for a moment if that is not known."""
        failures, barred = self._failures, self._barred
        well = [endpoint for endpoint in self._fleet.endpoints if not endpoint.is_stale]
        if not well:
            raise PolicyError(
                f"no vLLM server holds version {self._version()} of the weights"
                + (f" (last try: {failures[-1]})" if failures else "")
            )
        if min(barred.get(endpoint, -inf) for endpoint in well) > deadline.deadline:
            raise PolicyError(
                f"the vLLM server at {failures[-1]}; the next try would come after the "
                f"{timeout_s:g} s that a message may take"
            )
        if not failures:  # of this message: it found all endpoints left alone, and says why
            failures += [well[0].last_failure] if well[0].last_failure else []
        wait_s = min(
            max(barred.get(endpoint, now) - now, endpoint.breaker.wait_s(now)) for endpoint in well
        )
        await anyio.sleep(min(wait_s, _LOOK_AGAIN_S))

    async def _ask(self, endpoint: Endpoint, permit: Permit) -> Generation:
        """Ask one endpoint once, and tell its breaker how that went."""
        required, version = self._labels.required, self._version()
        try:
            with reported(endpoint.breaker, permit):
                answer = await self._call("POST", endpoint.url + GENERATE, self._body)
                sampled = read_sampled(answer, self._id)
        except Refused as refusal:
            if self._adapter is not None and self._adapter.name in str(refusal):
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


def _all_of(generation: Generation, adapter: ServedAdapter) -> Generation:
    """A message that one adapter sampled from first to last: the server's labels know none."""
    return msgspec.structs.replace(generation, policy_version=adapter.version, switches=())
