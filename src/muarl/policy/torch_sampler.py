"""The embedded policy: samples from a transformers model in this process.

    async with TorchPolicy(model, max_len=1024, slots=256) as policy:
        generation = await policy.generate(request)

The model's weights are read in place. Where whoever trains it waits while anything is sampled, they may
be the trainer's own: after an optimizer step call `set_version`, which drops every cached key and value.
Where training goes on meanwhile, sample from a copy, and bring new weights over with `load_weights`.
Steps run in a worker thread, so the event loop serves tools and users meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

import anyio
import anyio.to_thread
import torch
from transformers import PreTrainedModel

from muarl.errors import PolicyError
from muarl.policy.protocol import EngineLoad, GenerateRequest, Generation
from muarl.policy.torch_engine import Engine, Row


class TorchPolicy:
    """Samples all waiting dialogues as one batch.

    Args:
        model: A causal language model whose layers all use full attention. Its parameters are read
            in place.
        max_len: Longest context, sampled tokens included.
        slots: Dialogues whose keys and values are held; more wait for their turn.
        threads: Of torch, in the thread that samples; None leaves them as they are. With two or
            more set `OMP_WAIT_POLICY=PASSIVE` before torch is imported, or they starve each other.
        policy_version: Version of the weights now.
        prefixes: Tokens that many dialogues begin with, such as rules and tool schemas; they are
            held once, which is faster and exact. None finds them out. Given ones make a message's
            log-probs independent of what else is sampled to the last bit, not only to rounding.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        max_len: int,
        slots: int,
        threads: int | None = None,
        policy_version: int = 0,
        prefixes: Sequence[list[int]] | None = None,
    ) -> None:
        self._max_len = max_len
        self._vocab_size: int = model.config.get_text_config(decoder=True).vocab_size
        self._threads = threads
        self._engine = Engine(model, max_len=max_len, slots=slots, prefixes=prefixes)
        self._engine.policy_version = policy_version
        self._version = policy_version
        self._parameters = list(model.parameters())
        self._stamp = self._weights_stamp()
        self._stale = False
        self._loading = False
        self._arrivals: list[Row] = []
        self._done: dict[Row, anyio.Event] = {}
        self._wake = anyio.Event()
        # Held while a step reads the weights: whoever changes them waits for its end.
        self._weights = anyio.Lock()
        self._thread = anyio.CapacityLimiter(1)
        self._failure: str | None = "the embedded sampler is not open; use `async with`"
        self._tasks = anyio.create_task_group()

    @property
    def policy_version(self) -> int:
        return self._version

    def load(self) -> EngineLoad | None:
        return self._engine.load()

    def set_version(self, version: int) -> None:
        """Say that the weights are now those of `version`.

        Nothing computed by older weights is used again: cached keys and values are dropped, and a
        message under way begins again, with the same seed.
        """
        self._version = version
        self._stamp = self._weights_stamp()
        self._stale = True

    def _weights_stamp(self) -> int:
        """Grows whenever autograd sees a parameter written in place."""
        return sum(parameter._version for parameter in self._parameters)

    async def load_weights(self, trained: PreTrainedModel, version: int) -> None:
        """Take over the weights of another model of the same shape, in the middle of whatever is sampled.

        Sampling waits for the copy, and begins what is under way again; see `set_version`.

        Args:
            trained: Must not change meanwhile.
            version: Of its weights.
        """
        # Shielded: cancelled half way, the weights would be of two versions.
        with anyio.CancelScope(shield=True):
            async with self._weights:
                self._loading = True
                try:
                    await anyio.to_thread.run_sync(self._copy, list(trained.parameters()))
                    self.set_version(version)
                finally:
                    self._loading = False

    def _copy(self, trained: Sequence[torch.nn.Parameter]) -> None:
        with torch.no_grad():
            for ours, theirs in zip(self._parameters, trained, strict=True):
                ours.copy_(theirs)

    async def generate(self, request: GenerateRequest) -> Generation:
        self._check(request)
        row = Row(request)
        done = self._done[row] = anyio.Event()
        self._arrivals.append(row)
        self._wake.set()
        try:
            await done.wait()
        finally:
            row.cancelled = row.result is None
            self._done.pop(row, None)
        if row.result is None:
            raise PolicyError(self._failure)
        return row.result

    def _check(self, request: GenerateRequest) -> None:
        if self._failure is not None:
            raise PolicyError(self._failure)
        if not self._loading and self._stamp != self._weights_stamp():
            raise PolicyError(
                f"the weights changed, but the policy still answers as version {self._version}; "
                "call `set_version` after every optimizer step"
            )
        prompt, wanted = len(request.prompt_ids), request.max_tokens
        if not prompt or wanted < 1:
            raise PolicyError(
                f"dialogue {request.dialogue!r} asked for {wanted} tokens after a prompt of "
                f"{prompt}; both must be at least 1"
            )
        if prompt + wanted > self._max_len:
            raise PolicyError(
                f"dialogue {request.dialogue!r}: a prompt of {prompt} tokens and max_tokens "
                f"{wanted} exceed max_len {self._max_len} of the embedded sampler; lower the "
                "dialogue's caps or raise max_len"
            )
        if not 0 <= min(request.prompt_ids) <= max(request.prompt_ids) < self._vocab_size:
            raise PolicyError(
                f"dialogue {request.dialogue!r}: the prompt has ids outside the model's "
                f"vocabulary of {self._vocab_size}"
            )

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self._failure = None
        self._tasks.start_soon(self._run, name="embedded sampler")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._tasks.cancel_scope.cancel()
        try:
            # The caller's own error is not told to the task group, which would wrap it.
            await self._tasks.__aexit__(None, None, None)
        finally:
            self._fail("the embedded sampler was closed")

    async def _run(self) -> None:
        """Step while there is work; otherwise wait for some."""
        while True:
            if not self._arrivals and not self._engine.busy:
                self._wake = anyio.Event()
                await self._wake.wait()
            async with self._weights:
                for row in self._arrivals:
                    self._engine.add(row)
                self._arrivals.clear()
                if self._stale:
                    self._engine.restart(self._version)
                    self._stale = False
                try:
                    finished = await anyio.to_thread.run_sync(self._step, limiter=self._thread)
                except Exception as error:  # noqa: BLE001 - reaches every caller as PolicyError
                    self._fail(f"the embedded sampler failed: {type(error).__name__}: {error}")
                    return
            for row in finished:
                if row in self._done:
                    self._done[row].set()

    def _step(self) -> list[Row]:
        if self._threads is not None:
            torch.set_num_threads(self._threads)
        return self._engine.step()

    def _fail(self, why: str) -> None:
        self._failure = why
        for done in self._done.values():
            done.set()
