"""Which way of running a model is right for it: tried on a few tokens, rather than believed.

A model may count places in the row (a window, a slope), keep state that is no cache, or cap its scores.
What its config says of windows narrows the choice; what it computes decides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from muarl.errors import SetupError
from muarl.kernel.attention import (
    candidates,
    kinds_to_try,
    narrowed,
    own_path,
    taken,
    text_config,
)
from muarl.kernel.backbone import Way, predicting_states
from muarl.kernel.logprobs import scored
from muarl.record.sample import Sample, Span
from muarl.spec.kernel import KernelSpec

_MISFIT = (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError)
"""What a model raises that does not take what it is given."""


@dataclass(frozen=True, slots=True)
class Found:
    """What fits a model.

    Attributes:
        way: How to run it.
        why: Why this attention path.
    """

    way: Way
    why: str

    def __str__(self) -> str:
        if self.way.masks:
            sharing = "samples share prefixes and rows"
        elif self.way.alone:
            sharing = "one sample at a time, since how places are rotated depends on the longest"
        else:
            sharing = (
                "a row for each sample and no shared prefix, since it keeps state or counts places "
                "that samples would share"
            )
        again = ", layers computed again in the backward pass" if self.way.checkpointing else ""
        return (
            f"attention: {self.way.attention} ({self.why}); {sharing}; {self.way.precision}{again}"
        )


def way_for(model: PreTrainedModel, spec: KernelSpec | None = None) -> Found:
    """How to run a model: attention path, masks, and what else the spec says. Tried once for each.

    Raises:
        SetupError: No way gives the log-probs of the model's own forward pass.
    """
    spec = spec or KernelSpec()
    known = _known.setdefault(model, {})
    if spec.attention not in known:
        known[spec.attention] = _fitting(model, spec.attention)
    found = known[spec.attention]
    way = replace(found.way, checkpointing=spec.checkpointing, precision=spec.precision)
    return replace(found, way=way)


_known: WeakKeyDictionary[PreTrainedModel, dict[str, Found]] = WeakKeyDictionary()


def _fitting(model: PreTrainedModel, attention: str) -> Found:
    ropes = _ropes(text_config(model).to_dict())
    if any("dynamic" in rope for rope in ropes):
        raise SetupError(
            f"{type(model).__name__} cannot be trained here: its rotary places (rope_type: dynamic) "
            "depend on the longest context it has seen, so one token has many log-probs. Give its "
            "config another rope_type, such as yarn"
        )
    alone = "longrope" in ropes
    kinds: list[str | None] = list(kinds_to_try(model)) if _may_share(model) and not alone else []
    error: Exception | None = None
    for path, why in candidates(model, attention):
        for masks in [*kinds, None]:
            way = Way(path, masks, alone)
            try:
                if _is_right(model, way):
                    return Found(way, why)
            except _MISFIT as caught:
                error = caught
    raise SetupError(
        f"{type(model).__name__} cannot be trained here: "
        + (
            f"scoring a few tokens with it raised {type(error).__name__}: {error}"
            if error is not None
            else "the log-probs of its own forward pass are not those of its output layer on its last "
            "hidden states"
        )
        + ". Use another model"
    ) from error


def _may_share(model: PreTrainedModel) -> bool:
    """Whether nothing that the model says of itself forbids samples to share a prefix and a row.

    Long windows of another make than `sliding_window` do not show on a few tokens.
    """
    layers = DynamicCache(config=model.config).layers
    return all(
        type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) for layer in layers
    ) and not (_has_unknown_window(text_config(model).to_dict()))


def _ropes(config: Mapping[str, Any]) -> set[str]:
    """How places are rotated, by the names that transformers has; layers may differ.

    `longrope` rotates all rows as the longest needs, which does not show on a few tokens.
    """
    given = config.get("rope_parameters") or {}
    return {
        str(found)
        for each in (given, *(value for value in given.values() if isinstance(value, Mapping)))
        if (found := each.get("rope_type"))
    }


def _has_unknown_window(config: Mapping[str, Any]) -> bool:
    """Whether a config speaks of attention that reaches only so far, in words not known here."""
    return any(value and _WINDOW.search(name) for name, value in config.items())


# `max_window_layers` stands in configs of Qwen whether there is a window or not; what has to do with
# a `sliding_window` shows once that is narrowed.
_WINDOW = re.compile(
    r"(?<!max_)(?<!sliding_)window|local_attention|attention_chunk|block_size|blocksparse"
)


def _is_right(model: PreTrainedModel, way: Way) -> bool:
    """Whether it gives the model's own hidden states and log-probs, with a window that shows.

    Hidden states tell more: in a model that has learned little all log-probs are alike.
    """
    samples, rounding = _few_samples(model), _rounding(model)
    with torch.no_grad(), narrowed(model):
        states = predicting_states(model, samples, way, max_tokens=4096)
        scores = scored(model, samples, way)
        for (batch, hidden), (_, found) in zip(states, scores, strict=True):
            counts = list(batch.counts)
            parts = zip(hidden.split(counts), found.logprobs.split(counts), strict=True)
            for index, (state, logprobs) in zip(batch.samples, parts, strict=True):
                own_state, own_logprobs = _by_itself(model, samples[index])
                if (state - own_state).norm() > rounding * own_state.norm():
                    return False
                if not torch.allclose(logprobs, own_logprobs, rtol=rounding, atol=rounding):
                    return False
    return True


def _by_itself(model: PreTrainedModel, sample: Sample) -> tuple[Tensor, Tensor]:
    """Hidden states and log-probs by the model's own forward pass, on the sample alone."""
    ids = torch.tensor(sample.token_ids, device=model.device)
    start, end = sample.spans[0].start, len(ids)
    with taken(model, own_path(model)):
        hidden = model.base_model(ids[None]).last_hidden_state[0, start - 1 : end - 1]
        logits = model(ids[None]).logits[0, start - 1 : end - 1].float()
    return hidden, logits.log_softmax(-1).gather(-1, ids[start:, None])[:, 0]


def _few_samples(model: PreTrainedModel) -> list[Sample]:
    """Three samples with a common prefix, two of which fit into the row of the third."""
    vocab_size: int = text_config(model).vocab_size
    head = [1, 2, 3, 4]
    tails = [
        [seed + 7 * place for place in range(size)] for seed, size in ((5, 12), (6, 6), (8, 5))
    ]
    rows = [[token % vocab_size for token in (*head, *tail)] for tail in tails]
    return [Sample(ids, [Span(2, len(ids), 0)]) for ids in rows]


def _rounding(model: PreTrainedModel) -> float:
    return 1e-4 if model.dtype == torch.float32 else 5e-2
