"""How updates are computed: what they take of memory, time and precision."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from muarl.spec.base import Spec


class KernelSpec(Spec):
    """How the updates of a cold start and of GRPO are computed.

    Only `precision` and `optimizer_bits` change a result by more than rounding.
    """

    max_tokens: Annotated[int, Field(gt=0)] = 4096
    """Tokens computed at once, shared beginnings not counted; bounds memory. A longer dialogue is
    computed alone."""
    checkpointing: bool = False
    """Compute each layer again in the backward pass instead of keeping what it holds: a fraction of
    the memory, a third more time."""
    attention: Literal["auto", "eager", "sdpa", "flex"] = "auto"
    """Implementation of attention. `auto` takes `flex` on a GPU where it agrees with the model's own,
    else `sdpa`; `eager` where the model caps its attention scores, which `sdpa` cannot."""
    precision: Literal["fp32", "bf16"] = "fp32"
    """Of matrix products and what is kept of them. Weights, gradients and the optimizer's state stay
    in float32 (the master weights)."""
    optimizer_bits: Literal[8, 32] = 32
    """Bits of each number of AdamW's state; 8 needs `pip install 'muarl[bits8]'`."""
