"""The embedded engine: one step prefills what arrived and samples one token for every row.

Plain and synchronous; `torch_sampler` runs its steps in a worker thread. A row is a message being
sampled. Rows join at any step and leave when they are done (continuous batching).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import torch
from transformers import PreTrainedModel

from muarl.errors import SetupError
from muarl.policy.draw import draw, uniforms
from muarl.policy.protocol import EngineLoad, GenerateRequest, Generation
from muarl.policy.slot_attention import twin_of, view_of
from muarl.policy.slot_cache import Slot, SlotCache
from muarl.policy.slot_plan import block_order, plan

# New tokens computed in one step: bounds the memory of activations, and how long running rows wait.
_MAX_STEP_TOKENS = 8192


@dataclass(eq=False, slots=True)
class Row:
    """A message being sampled.

    Attributes:
        request: What was asked.
        numbers: [max_tokens] the uniform numbers its tokens are drawn with.
        cancelled: Nobody waits any more; the row leaves at the next step.
        slot: Where its keys and values are; None while it waits.
        pending: Tokens to run through the model next.
        token_ids: Sampled so far.
        logprobs: Of those.
        result: Set when done.
    """

    request: GenerateRequest
    numbers: np.ndarray = field(init=False)
    cancelled: bool = False
    slot: Slot | None = None
    pending: list[int] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    result: Generation | None = None

    def __post_init__(self) -> None:
        self.numbers = uniforms(self.request.seed, self.request.max_tokens)


class Engine:
    """Rows in, finished rows out. Not thread-safe: one step at a time, `add` between steps."""

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        max_len: int,
        slots: int,
        prefixes: Sequence[list[int]] | None = None,
    ) -> None:
        self._model = view_of(model)
        config = model.config.get_text_config(decoder=True)
        heads = config.num_attention_heads
        kv_heads = getattr(config, "num_key_value_heads", None) or heads
        self._groups = heads // kv_heads
        self._cache = SlotCache(
            layers=config.num_hidden_layers,
            slots=slots,
            kv_heads=kv_heads,
            max_len=max_len,
            head_dim=getattr(config, "head_dim", None) or config.hidden_size // heads,
            dtype=model.dtype,
            device=model.device,
            learn_prefixes=prefixes is None,
        )
        self._prefixes = [ids for ids in prefixes or () if ids]
        self._unformed = self._prefixes
        self._prove(model)
        self._waiting: deque[Row] = deque()
        self._running: list[Row] = []
        self.policy_version = 0

    def _prove(self, model: PreTrainedModel) -> None:
        """Compare a few tokens, run in portions, with the model's own forward pass.

        Raises:
            SetupError: They differ: the model does something with its context that slots do not.
        """
        name = type(model).__name__
        advice = f"the embedded sampler cannot run {name}; sample this model with the vLLM policy"
        vocab_size: int = model.config.get_text_config(decoder=True).vocab_size
        ids = [(7 + 13 * i) % vocab_size for i in range(24)]
        slot = self._cache.lend()
        try:
            with torch.no_grad():
                plain = twin_of(model)(input_ids=torch.tensor([ids], device=model.device))
                expected = plain.logits[0].float()
                for start, end in pairwise((0, 16, 22, 23, 24)):
                    got = self._forward([(slot, ids[start:end])])[0].float()
                    gap = float((got - expected[end - 1]).abs().max() / expected.abs().max())
                    if not gap < torch.finfo(model.dtype).eps ** 0.5:
                        raise SetupError(f"{advice} (logits differ from {name}'s by {gap:.2g})")
        except (RuntimeError, TypeError) as error:
            raise SetupError(f"{advice} ({type(error).__name__}: {error})") from error
        self._cache.take_back(slot)

    @property
    def busy(self) -> bool:
        """Whether a step would do anything."""
        return bool(self._waiting or self._running)

    def load(self) -> EngineLoad:
        """How busy it is; may be asked while a step runs. It never throws a message out."""
        return EngineLoad(len(self._running), len(self._waiting), self._cache.busy_share)

    def add(self, row: Row) -> None:
        """Queue a message."""
        self._waiting.append(row)

    def restart(self, policy_version: int) -> None:
        """Go on with new weights: drop all keys and values; rows under way begin again.

        So every message is sampled by one version, and with the same seed.
        """
        self.policy_version = policy_version
        self._cache.clear()
        self._unformed = self._prefixes
        for row in reversed(self._running):
            row.slot = None
            row.token_ids, row.logprobs = [], []
            self._waiting.appendleft(row)
        self._running.clear()

    def step(self) -> list[Row]:
        """Admit what waits, run the model once, sample one token a row; return finished rows."""
        for row in self._running:
            if row.cancelled:
                self._leave(row)
        self._running = [row for row in self._running if not row.cancelled]
        with torch.no_grad():
            self._form_prefixes()
            self._admit()
            if not self._running:
                return []
            self._running.sort(key=lambda row: block_order(_slot(row), len(row.pending)))
            logits = self._forward([(_slot(row), row.pending) for row in self._running])
            tokens, logprobs = self._draw(logits, self._running)
        finished = [
            row
            for row, token, logprob in zip(self._running, tokens, logprobs, strict=True)
            if self._append(row, token, logprob)
        ]
        self._running = [row for row in self._running if row.result is None]
        return finished

    def _admit(self) -> None:
        """Give waiting rows their slots, in order, while there are slots and the step has room."""
        waiting = [row for row in self._waiting if not row.cancelled]
        self._waiting.clear()
        self._cache.learn_prefixes(
            row.request.prompt_ids for row in waiting if row.request.dialogue not in self._cache
        )
        room = _MAX_STEP_TOKENS - len(self._running)
        for row in waiting:
            slot = None
            if room > 0:
                slot = self._cache.claim(row.request.dialogue, row.request.prompt_ids)
            if slot is None:
                self._waiting.append(row)
                continue
            row.slot, row.pending = slot, row.request.prompt_ids[len(slot.ids) :]
            self._running.append(row)
            room -= len(row.pending)

    def _form_prefixes(self) -> None:
        """Compute the prefixes given at construction, each in a slot lent for it."""
        for ids in self._unformed:
            slot = self._cache.lend()
            self._forward([(slot, ids)])
            self._cache.make_prefix(slot)
        self._unformed = []

    def _forward(self, feeds: list[tuple[Slot, list[int]]]) -> torch.Tensor:
        """Run new tokens of each slot through the model: logits [R, V] after its last one."""
        device = self._model.device
        slot_pass = plan(
            self._cache,
            [(slot, len(new)) for slot, new in feeds],
            groups=self._groups,
            dtype=self._model.dtype,
            device=device,
        )
        ids = [token for _, new in feeds for token in new]
        ids += [0] * (len(slot_pass.positions) - len(ids))
        logits: torch.Tensor = self._model(
            input_ids=torch.tensor([ids], device=device),
            position_ids=slot_pass.positions[None],
            use_cache=False,
            logits_to_keep=slot_pass.last,
            slot_pass=slot_pass,
        ).logits[0, : len(feeds)]
        for slot, new in feeds:
            slot.ids += new
        return logits

    def _draw(self, logits: torch.Tensor, rows: list[Row]) -> tuple[list[int], list[float]]:
        temperatures = torch.tensor([row.request.temperature for row in rows])
        numbers = torch.tensor(
            [row.numbers[len(row.token_ids)] for row in rows], dtype=torch.float64
        )
        tokens, logprobs = draw(logits, temperatures.to(logits.device), numbers.to(logits.device))
        return tokens.tolist(), logprobs.tolist()

    def _append(self, row: Row, token: int, logprob: float) -> bool:
        """Add a sampled token; whether the message is done, and then give its slot free."""
        row.token_ids.append(token)
        row.logprobs.append(logprob)
        row.pending = [token]
        stopped = token in row.request.stop_token_ids
        if not stopped and len(row.token_ids) < row.request.max_tokens:
            return False
        row.result = Generation(
            row.token_ids, row.logprobs, "stop" if stopped else "length", self.policy_version
        )
        self._leave(row)
        return True

    def _leave(self, row: Row) -> None:
        """The slot keeps what it holds, for the dialogue's next message, but may be evicted."""
        self._cache.release(_slot(row))
        row.slot = None


def _slot(row: Row) -> Slot:
    assert row.slot is not None
    return row.slot
