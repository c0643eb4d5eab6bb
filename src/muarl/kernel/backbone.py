"""Final hidden states of a family's micro-batches, with the prefix computed once.

P prefix tokens, B rows of S suffix tokens, H hidden width.

The prefix's keys, values and hidden states are leaves for the micro-batches: each backward pass stops
there and adds its gradient, and one last backward pass takes the sums through the prefix. So a group may
be cut at any budget, and its prefix is computed once all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel
from transformers.cache_utils import Cache, DynamicLayer
from transformers.modeling_layers import GradientCheckpointingLayer

from muarl.kernel.attention import masks_for, taken
from muarl.kernel.batch import MicroBatch, make_micro_batches
from muarl.record.sample import Sample


@dataclass(frozen=True, slots=True)
class Way:
    """How a model is run.

    Attributes:
        attention: Its path: `eager`, `sdpa` or `flex`.
        masks: Which it takes of samples that share a prefix or a row (`full`, `window`, `by_layer`);
            None: each sample needs a row of its own, and no prefix is shared.
        alone: Whether each sample is run by itself, since the longest row turns the places of all.
        checkpointing: Whether layers are computed again in the backward pass.
        precision: Of matrix products, `fp32` or `bf16`.
    """

    attention: str
    masks: str | None
    alone: bool = False
    checkpointing: bool = False
    precision: str = "fp32"

    def autocast(self, device: torch.device) -> torch.autocast:
        """Computes matrix products in this precision; weights stay as they are."""
        return torch.autocast(device.type, torch.bfloat16, enabled=self.precision == "bf16")


class Prefix:
    """What the micro-batches of a family begin with.

    Attributes:
        hidden: [P, H] its final hidden states.
        keys: Of each layer, [1, heads, P, width].
        values: Likewise.
    """

    def __init__(self, model: PreTrainedModel, family: Sequence[MicroBatch], way: Way) -> None:
        """Run it once, for all that is sampled at its tokens in any micro-batch."""
        ids = family[0].prefix_ids
        rows = torch.cat([batch.predictors[batch.predictors < len(ids)] for batch in family])
        cache = Cache(layer_class_to_replicate=_FirstStates)
        with _running(model, way), _last_feed_forward_on(model.base_model, rows):
            output = model.base_model(ids[None], past_key_values=cache, use_cache=True)
        kept: list[Any] = cache.layers
        states = [state for layer in kept for state in (layer.keys, layer.values)]
        self._computed: list[Tensor] = [output.last_hidden_state[0], *states]
        self._leaves = [t.detach().requires_grad_(t.requires_grad) for t in self._computed]
        self.hidden = self._leaves[0]
        self.keys, self.values = self._leaves[1::2], self._leaves[2::2]

    def backward(self) -> None:
        """Take the gradients that the micro-batches left through the prefix."""
        both = list(zip(self._computed, self._leaves, strict=True))
        reached = [(computed, leaf.grad) for computed, leaf in both if leaf.grad is not None]
        if reached:
            torch.autograd.backward([c for c, _ in reached], [grad for _, grad in reached])


def predicting_states(
    model: PreTrainedModel, samples: Sequence[Sample], way: Way, *, max_tokens: int
) -> Iterator[tuple[MicroBatch, Tensor]]:
    """[N, H] final hidden states that predict the sampled tokens, a micro-batch at a time.

    Where gradients are wanted, a micro-batch's backward pass must be taken before the next is asked
    for; the prefix's follows the last of its family.
    """
    batches = make_micro_batches(
        samples,
        max_tokens=1 if way.alone else max_tokens,
        share_prefix=way.masks is not None,
        device=model.device,
    )
    for _, group in groupby(batches, key=lambda batch: id(batch.prefix_ids)):
        family = list(group)
        prefix = Prefix(model, family, way) if len(family[0].prefix_ids) else None
        for batch in family:
            yield batch, _hidden_states(model, batch, prefix, way)[batch.predictors]
        if prefix is not None:
            prefix.backward()


def _hidden_states(
    model: PreTrainedModel, batch: MicroBatch, prefix: Prefix | None, way: Way
) -> Tensor:
    """[P + B·S, H] final hidden states, prefix first; meaningful in the predicting rows only."""
    shared = len(batch.prefix_ids)
    rows = batch.predictors[batch.predictors >= shared] - shared
    asked: dict[str, Any] = {"use_cache": False}
    if prefix is not None or batch.is_packed:
        assert way.masks is not None
        masks = masks_for(model, batch, way.attention, way.masks)
        asked |= {"attention_mask": masks, "position_ids": batch.positions}
    # Else causal attention hides the padding, which stands on the right.
    if prefix is not None:
        states = zip(prefix.keys, prefix.values, strict=True)
        layers: list[Any] = [_Continued(keys, values) for keys, values in states]
        asked |= {"past_key_values": Cache(layers=layers), "use_cache": True}
    with _running(model, way), _last_feed_forward_on(model.base_model, rows):
        output = model.base_model(batch.suffix_ids, **asked)
    own: Tensor = output.last_hidden_state.flatten(0, 1)
    return own if prefix is None else torch.cat([prefix.hidden, own])


class _FirstStates(DynamicLayer):
    """Keeps the keys and values it is first given; a recomputation gives them again."""

    def update(
        self, key_states: Tensor, value_states: Tensor, *_args: Any, **_kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        if not self.is_initialized:
            self.keys, self.values, self.is_initialized = key_states, value_states, True
        return key_states, value_states


class _Continued(DynamicLayer):
    """Puts the prefix before each row's keys and values, and keeps nothing."""

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._first = keys, values
        self.keys, self.values, self.is_initialized = keys, values, True

    def update(
        self, key_states: Tensor, value_states: Tensor, *_args: Any, **_kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        keys, values = (first.expand(len(key_states), -1, -1, -1) for first in self._first)
        return torch.cat([keys, key_states], dim=-2), torch.cat([values, value_states], dim=-2)


@contextmanager
def _running(model: PreTrainedModel, way: Way) -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(taken(model, way.attention))
        stack.enter_context(way.autocast(model.device))
        if way.checkpointing and torch.is_grad_enabled():
            again = partial(taken, model, way.attention)
            stack.enter_context(_recomputed(model.base_model, again))
        yield


@contextmanager
def _recomputed(
    backbone: nn.Module, again: Callable[[], AbstractContextManager[None]]
) -> Iterator[None]:
    """Keep of each layer but the last only what goes in, and compute it again in the backward pass.

    The last one's backward pass comes first: to compute it again would save nothing. (transformers'
    own switch drops caches, and with them shared prefixes.)

    Args:
        backbone: Has the layers.
        again: What has to hold while they are computed again.
    """
    layers = [m for m in backbone.modules() if isinstance(m, GradientCheckpointingLayer)][:-1]
    for layer in layers:
        layer.forward = partial(
            checkpoint,
            layer.forward,
            use_reentrant=False,
            preserve_rng_state=False,
            context_fn=lambda: (nullcontext(), again()),
        )
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


@contextmanager
def _last_feed_forward_on(backbone: nn.Module, rows: Tensor) -> Iterator[None]:
    """Run the last layer's feed-forward for some rows of its flattened input; others get zeros.

    No other row's final state is read, and none reads another's after this. With 3 layers and a
    third of the tokens sampled this saves a sixth of the matrix products. A model whose last layer
    has no `mlp` runs in full.
    """
    mlp = getattr(getattr(backbone, "layers", [None])[-1], "mlp", None)
    if mlp is None:
        yield
        return
    full: Callable[..., Any] = mlp.forward
    # A row of the prefix may predict a token of several samples; it must be written once. Where no
    # row is read, one is run all the same: what a mixture of experts does with none is its secret.
    rows = rows.unique() if len(rows) else rows.new_zeros(1)

    def some_rows(hidden: Tensor) -> Any:
        flat = hidden.flatten(0, 1)
        output = full(flat[rows][None])
        # Some mixtures of experts return their router's scores beside the result.
        some, *rest = output if isinstance(output, tuple) else (output,)
        result = some.new_zeros(flat.shape).index_copy(0, rows, some[0]).view_as(hidden)
        return (result, *rest) if rest else result

    mlp.forward = some_rows
    try:
        yield
    finally:
        del mlp.forward
