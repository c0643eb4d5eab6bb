"""Samples: unbroken token sequences, with the mask that says what the policy sampled (law L1)."""

from __future__ import annotations

import msgspec


class Span(msgspec.Struct, frozen=True, gc=False):
    """Half-open range of sampled tokens, `token_ids[start:end]`, and which weights sampled it."""

    start: int
    end: int
    policy_version: int


class Sample(msgspec.Struct, gc=False):
    """One token sequence for training.

    P prompt, A sampled by the policy, E what answered (a tool result or the user):

        token_ids  [P P P A A E E A]
        spans      [3, 5) and [7, 8)
        loss_mask  [0 0 0 1 1 0 0 1]
        logprobs   one per sampled token, in order: 3 numbers

    Attributes:
        token_ids: [T] exactly what was sent to and sampled by the engine.
        spans: Where the policy sampled; disjoint and increasing. Those that touch are one message
            in whose middle new weights arrived.
        logprobs: Log-probabilities the sampler reported, one per sampled token.
    """

    token_ids: list[int]
    spans: list[Span] = []
    logprobs: list[float] = []

    @property
    def num_sampled(self) -> int:
        """Number of tokens the policy sampled."""
        return sum(span.end - span.start for span in self.spans)

    def messages(self) -> list[tuple[int, int]]:
        """Range of each whole message, whatever weights sampled its parts."""
        ranges: list[tuple[int, int]] = []
        for span in self.spans:
            if ranges and ranges[-1][1] == span.start:
                ranges[-1] = (ranges[-1][0], span.end)
            else:
                ranges.append((span.start, span.end))
        return ranges

    def loss_mask(self) -> list[bool]:
        """[T] True exactly on sampled tokens."""
        mask = [False] * len(self.token_ids)
        for span in self.spans:
            mask[span.start : span.end] = [True] * (span.end - span.start)
        return mask
