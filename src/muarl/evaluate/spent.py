"""What the agent's messages took of an endpoint: tokens as it counts them, and what they cost."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

import msgspec

from muarl.record import Episode
from muarl.spec.chat_agent import PriceSpec


class Spent(msgspec.Struct, frozen=True):
    """Per dialogue, faults included: they were paid for as well.

    Attributes:
        prompt_tokens: Mean of tokens that were sent.
        completion_tokens: Mean of tokens that were written.
        cost: Mean cost, in the currency of the prices; None without prices, or where some message's
            tokens are unknown.
        unknown: Messages whose tokens the endpoint did not tell; they count as none above.
    """

    prompt_tokens: float
    completion_tokens: float
    cost: float | None
    unknown: int


def spent(episodes: Iterable[Episode], price: PriceSpec | None) -> Spent | None:
    """Add up what episodes took; None where none was played by a model behind an endpoint."""
    prompts, completions, unknown = [], [], 0
    for episode in episodes:
        usages = [turn.usage for turn in episode.turns if turn.usage is not None]
        if not usages:
            continue
        unknown += sum(None in (usage.prompt_tokens, usage.completion_tokens) for usage in usages)
        prompts.append(sum(usage.prompt_tokens or 0 for usage in usages))
        completions.append(sum(usage.completion_tokens or 0 for usage in usages))
    if not prompts:
        return None
    sent, written = fmean(prompts), fmean(completions)
    cost = None
    if price is not None and not unknown:
        cost = (sent * price.prompt + written * price.completion) / 1e6
    return Spent(sent, written, cost, unknown)
