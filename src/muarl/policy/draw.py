"""Drawing tokens: seeded, and the same whatever else is in the batch."""

from __future__ import annotations

import numpy as np
import torch


def uniforms(seed: int, count: int) -> np.ndarray:
    """[count] float64 numbers in [0, 1) that depend on nothing but the seed (law L5)."""
    return np.random.Generator(np.random.Philox(key=seed % 2**128)).random(count)


def draw(
    logits: torch.Tensor, temperatures: torch.Tensor, numbers: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw one token a row by inverting the cumulative distribution.

    Args:
        logits: [R, V].
        temperatures: [R] 0 takes the most probable token.
        numbers: [R] uniform in [0, 1).

    Returns:
        Tokens [R], and their log-probabilities [R] under softmax(logits / temperature); for
        temperature 0, under softmax(logits).

    Example:
        With probabilities .2 .5 .3 the numbers 0 to .2 give token 0, .2 to .7 token 1, others 2.
    """
    greedy = temperatures == 0
    logits = logits.float() / temperatures.where(~greedy, 1.0)[:, None]
    logprobs = logits.log_softmax(-1)
    cumulative = logprobs.exp().cumsum(-1, dtype=torch.float64)
    # The first token whose cumulative probability exceeds the number: never one of probability 0.
    target = (numbers * cumulative[:, -1])[:, None]
    tokens = torch.searchsorted(cumulative, target, right=True)[:, 0]
    tokens.clamp_(max=logits.shape[-1] - 1)
    if greedy.any():
        tokens = torch.where(greedy, logits.argmax(-1), tokens)
    return tokens, logprobs.gather(-1, tokens[:, None])[:, 0]
