"""Who sees whom when samples share a prefix and rows, in the form that an attention path takes.

P prefix tokens, B rows of S suffix tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from muarl.errors import SetupError
from muarl.kernel.batch import MicroBatch

PATHS = {"eager": "eager", "sdpa": "sdpa", "flex": "flex_attention"}
"""Our names of attention paths, and those of transformers."""


def caps_scores(model: PreTrainedModel) -> bool:
    """Whether attention scores are capped, which `sdpa` leaves out without a word."""
    return getattr(text_config(model), "attn_logit_softcapping", None) is not None


def own_path(model: PreTrainedModel) -> str:
    """The path on which the model's own forward pass is right."""
    if caps_scores(model):
        return "eager"
    used = text_config(model)._attn_implementation
    return next((name for name, theirs in PATHS.items() if theirs == used), "eager")


def candidates(model: PreTrainedModel, wanted: str) -> list[tuple[str, str]]:
    """Paths to try in order, each with why; the last is the model's own.

    Raises:
        SetupError: What is wanted cannot be right for this model.
    """
    own, capped = own_path(model), caps_scores(model)
    if wanted == "sdpa" and capped:
        raise SetupError(
            f"kernel.attention: sdpa cannot cap attention scores, which {type(model).__name__} "
            "does; use eager or auto, or flex on a GPU"
        )
    if wanted != "auto":
        return [(wanted, "asked for")]
    why = "caps its attention scores" if capped else "the model's own"
    rest = [(own, why)]
    if model.device.type == "cuda" and getattr(model, "_supports_flex_attn", False):
        return [("flex", "on a GPU, agrees with the model's own"), *rest]
    return rest


@contextmanager
def taken(model: PreTrainedModel, path: str) -> Iterator[None]:
    """Let the model attend by a path; afterwards by its own again."""
    config = text_config(model)
    before, config._attn_implementation = config._attn_implementation, PATHS[path]
    try:
        yield
    finally:
        config._attn_implementation = before


def text_config(model: PreTrainedModel) -> Any:
    """The config of the language model, where a config holds several."""
    return model.config.get_text_config(decoder=True)


def masks_for(model: PreTrainedModel, batch: MicroBatch, path: str, kinds: str) -> Any:
    """The mask of a micro-batch's suffixes over prefix and suffixes, as the model takes it.

    A token sees what came before it in its own sample, as far as the layer's window reaches:

        prefix [s s]   row [a b | c d]      sees   a  [1 1 | 1 . . .]
                                                   b  [1 1 | 1 1 . .]
                                                   c  [1 1 | . . 1 .]
                                                   d  [1 1 | . . 1 1]

    Args:
        model: Its config names the layers' windows.
        batch: The suffixes.
        path: Of attention.
        kinds: `full` or `window`: one mask for all layers. `by_layer`: one for each kind of layer in
            the config's `layer_types`.
    """
    config = text_config(model)
    window = getattr(config, "sliding_window", None)
    if kinds == "full":
        return _mask(model, batch, path, None)
    if kinds == "window":
        return _mask(model, batch, path, window)
    windows = {"full_attention": None, "sliding_attention": window}
    return {kind: _mask(model, batch, path, windows[kind]) for kind in set(config.layer_types)}


def kinds_to_try(model: PreTrainedModel) -> list[str]:
    """Which `kinds` of `masks_for` may be right for a model, most telling first; see there."""
    config = text_config(model)
    types = set(getattr(config, "layer_types", None) or ())
    kinds = []
    if types and types <= {"full_attention", "sliding_attention"}:
        kinds.append("by_layer")
    if getattr(config, "sliding_window", None) is not None:
        kinds.append("window")
    return [*kinds, "full"]


@contextmanager
def narrowed(model: PreTrainedModel) -> Iterator[None]:
    """Give a model that has a window one of three tokens, so that it shows on a few."""
    config = text_config(model)
    before = getattr(config, "sliding_window", None)
    if before is None:
        yield
        return
    config.sliding_window = 3
    try:
        yield
    finally:
        config.sliding_window = before


def sees(batch: MicroBatch, window: int | None) -> Tensor:
    """[B, S, P + S] whether a suffix token sees a token of the prefix or of its row."""
    prefix = len(batch.prefix_ids)
    places = batch.positions[:, :, None]
    own_past = (batch.owners[:, :, None] == batch.owners[:, None, :]).tril()
    before = own_past.new_ones(*batch.owners.shape, prefix)
    if window is not None:
        own_past &= places - batch.positions[:, None, :] < window
        before &= places - torch.arange(prefix, device=places.device) < window
    return torch.cat([before, own_past], dim=-1)


def _mask(model: PreTrainedModel, batch: MicroBatch, path: str, window: int | None) -> Any:
    if path == "flex":
        return block_mask(batch, window)
    seen = sees(batch, window)[:, None]
    if path == "sdpa":
        return seen
    # The textbook's attention adds its mask to the scores.
    least = torch.finfo(model.dtype).min
    return torch.zeros(seen.shape, dtype=model.dtype, device=seen.device).masked_fill(~seen, least)


def block_mask(batch: MicroBatch, window: int | None) -> Any:
    """The same for flex attention, which skips blocks that see nothing."""
    from torch.nn.attention.flex_attention import create_block_mask

    prefix = len(batch.prefix_ids)
    rows, width = batch.owners.shape
    owners, positions = batch.owners, batch.positions

    def seen(row: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        place = (key - prefix).clamp(min=0)
        in_prefix = key < prefix
        of_own = (owners[row, query] == owners[row, place]) & (query >= place)
        found = in_prefix | of_own
        if window is None:
            return found
        position = torch.where(in_prefix, key, positions[row, place])
        return found & (positions[row, query] - position < window)

    device = str(owners.device)
    return create_block_mask(seen, rows, None, width, prefix + width, device=device)
