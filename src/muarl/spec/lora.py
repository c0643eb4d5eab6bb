"""Training small factors beside a model's weights, and not the weights."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from muarl.spec.base import Spec


class LoraSpec(Spec):
    """Low-rank adapters: small factors beside linear layers are trained, in both stages."""

    rank: Annotated[int, Field(gt=0, le=512)] = 16
    """Rank of the factors A `[rank, in]` and B `[out, rank]`; vLLM takes up to 512."""
    alpha: Annotated[float, Field(gt=0)] = 32.0
    """The factors' product is scaled by `alpha / rank`."""
    targets: (
        Literal["all-linear"]
        | Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]
    ) = "all-linear"
    """Which linear layers have adapters: `all-linear`, or a list of their last names, `[q_proj,
    v_proj]`. Embeddings and output layer never have any."""
    dropout: float = 0.0
    """Always 0: the sampler has none, so with dropout the trainer's probabilities would not be those
    that were sampled from."""

    @field_validator("dropout")
    @classmethod
    def _none(cls, dropout: float) -> float:
        if dropout:
            raise ValueError(
                "must be 0: the sampler has no dropout, so with it the trainer's probabilities would "
                "not be those that the tokens were sampled from"
            )
        return dropout
