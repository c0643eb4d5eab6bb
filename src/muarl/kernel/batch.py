"""Samples -> micro-batches: one shared prefix, padded suffixes, and which tokens count.

P prefix tokens, B samples, S suffix tokens, N sampled tokens of the micro-batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from muarl.errors import TrainError
from muarl.record.sample import Sample


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """A few samples, ready for one forward and backward.

        sample 0   s s s u A A e        s, u, e: system, user, environment; A: sampled
        sample 1   s s s u u A

        prefix_ids   [s s s u]          longest common prefix, computed once
        suffix_ids   [A]                what follows, up to the last token that predicts one
                     [u]                (A A e: the second A and e predict nothing sampled)
        predictors   [3, 4, 5]          rows of cat([prefix, suffix 0, suffix 1])
        targets      [A, A, A]          the tokens they predict

    Attributes:
        prefix_ids: [P] tokens all samples begin with; may be empty.
        suffix_ids: [B, S] the rest of each sample, padded on the right with 0. Attention is
            causal, so padding needs no mask: no real token sees it.
        predictors: [N] row of the flattened hidden states that predicts each sampled token.
        targets: [N] sampled tokens, sample after sample.
        samples: [B] index of each row in the sequence the micro-batches were made from.
        counts: [B] sampled tokens of each row; sums to N.
    """

    prefix_ids: Tensor
    suffix_ids: Tensor
    predictors: Tensor
    targets: Tensor
    samples: tuple[int, ...]
    counts: tuple[int, ...]

    def gather(self, values: Sequence[Sequence[float]]) -> Tensor:
        """[N] per-token values, given for all samples in their original order."""
        return self._tensor([value for index in self.samples for value in values[index]])

    def spread(self, values: Sequence[float]) -> Tensor:
        """[N] each sample's value, repeated for each of its sampled tokens."""
        rows = zip(self.samples, self.counts, strict=True)
        return self._tensor([values[index] for index, count in rows for _ in range(count)])

    def _tensor(self, values: list[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float32, device=self.targets.device)


def make_micro_batches(
    samples: Sequence[Sample],
    *,
    max_tokens: int = 4096,
    share_prefix: bool = True,
    device: torch.device | str = "cpu",
) -> list[MicroBatch]:
    """Split samples into micro-batches of at most `max_tokens` padded suffix tokens each.

    Samples of similar beginning and length are put together, which keeps prefixes long and
    padding short. A sample longer than the budget gets a micro-batch of its own. Samples without
    sampled tokens have nothing to train and are left out.

    Args:
        samples: In any order.
        max_tokens: Budget of B·S; bounds memory, and decides nothing else.
        share_prefix: Whether the model can go on from keys and values of a common prefix.
        device: Where the model is.

    Raises:
        TrainError: A span lies outside its sample, or starts at 0 where nothing predicts it.
    """
    for index, sample in enumerate(samples):
        _check_spans(index, sample)
    trained = [index for index, sample in enumerate(samples) if sample.spans]
    return [
        _micro_batch(rows, samples, share_prefix, device)
        for family in _families(trained, samples)
        for rows in _fill(family, samples, max_tokens, share_prefix)
    ]


def _check_spans(index: int, sample: Sample) -> None:
    previous = 1
    for span in sample.spans:
        if not previous <= span.start < span.end <= len(sample.token_ids):
            raise TrainError(
                f"sample {index}: span [{span.start}, {span.end}) is empty, out of order, starts "
                f"at the first token or leaves the {len(sample.token_ids)} tokens; spans are "
                "disjoint, increasing ranges of sampled tokens after a prompt"
            )
        previous = span.end


def _families(indices: Sequence[int], samples: Sequence[Sample]) -> Iterator[list[int]]:
    """Group samples whose common prefix is worth sharing (one system prompt, one family).

    In lexicographic order the longest prefixes are shared between neighbours. A family ends where
    the prefix shared with the next sample falls below half of what the family shares.
    """
    family: list[int] = []
    shared = 0
    for index in sorted(indices, key=lambda index: samples[index].token_ids):
        if family:
            common = _common_prefix(samples[family[-1]].token_ids, samples[index].token_ids)
            shared = common if len(family) == 1 else shared
            if 2 * common < shared:
                yield family
                family = []
            shared = min(shared, common)
        family.append(index)
    if family:
        yield family


def _fill(
    family: Sequence[int], samples: Sequence[Sample], max_tokens: int, share_prefix: bool
) -> Iterator[list[int]]:
    """Sort a family by length and cut it into runs that fit the token budget."""
    family = sorted(family, key=lambda index: samples[index].spans[-1].end)
    ids = [samples[index].token_ids for index in family]
    prefix = _common_prefix(min(ids), max(ids)) if share_prefix else 0
    rows: list[int] = []
    for index in family:
        width = max(1, samples[index].spans[-1].end - 1 - prefix)
        if rows and width * (len(rows) + 1) > max_tokens:
            yield rows
            rows = []
        rows.append(index)
    yield rows


def _micro_batch(
    rows: Sequence[int],
    samples: Sequence[Sample],
    share_prefix: bool,
    device: torch.device | str,
) -> MicroBatch:
    # The last sampled token and whatever follows it predict nothing that counts.
    ids = [samples[index].token_ids[: samples[index].spans[-1].end - 1] for index in rows]
    prefix = 0
    if share_prefix and len(rows) > 1:
        # Every row keeps one token of its own, so that no suffix is empty.
        prefix = min(_common_prefix(min(ids), max(ids)), min(map(len, ids)) - 1)
    width = max(map(len, ids)) - prefix
    predictors: list[int] = []
    targets: list[int] = []
    for row, index in enumerate(rows):
        for span in samples[index].spans:
            targets += samples[index].token_ids[span.start : span.end]
            predictors += (
                place if place < prefix else place + row * width
                for place in range(span.start - 1, span.end - 1)
            )
    suffixes = [tokens[prefix:] + [0] * (prefix + width - len(tokens)) for tokens in ids]
    return MicroBatch(
        prefix_ids=torch.tensor(ids[0][:prefix], dtype=torch.long, device=device),
        suffix_ids=torch.tensor(suffixes, device=device),
        predictors=torch.tensor(predictors, device=device),
        targets=torch.tensor(targets, device=device),
        samples=tuple(rows),
        counts=tuple(samples[index].num_sampled for index in rows),
    )


def _common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """Length of the common prefix of two token sequences."""
    for place, (left, right) in enumerate(zip(first, second, strict=False)):
        if left != right:
            return place
    return min(len(first), len(second))
