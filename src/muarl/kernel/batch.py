"""Samples -> micro-batches: one shared prefix, suffixes packed into rows, and which tokens count.

P prefix tokens, K samples in B rows of S suffix tokens, N sampled tokens of the micro-batch.
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
        sample 2   s s s u e A u A

        prefix_ids   [s s s u]          longest common prefix, computed once
        suffix_ids   [e A u]            what follows, up to the last token that predicts one; rows
                     [A u -]            are as long as the longest and hold as many as fit
        owners       [0 0 0]            which sample a token is of; tokens of one see no other's
                     [1 2 -1]
        positions    [4 5 6]            place in its sample
                     [4 4 0]
        predictors   [4 6, 3 7, 8]      rows of cat([prefix, suffix 0, suffix 1])
        targets      [A A, A A, A]      the tokens they predict
        samples      (2, 0, 1)

    Attributes:
        prefix_ids: [P] tokens all samples begin with; may be empty.
        suffix_ids: [B, S] the rest of each sample, one or several a row, padded with 0.
        owners: [B, S] place in `samples` of the sample each token is of; -1 for padding.
        positions: [B, S] each token's place in its sample; 0 for padding.
        predictors: [N] row of the flattened hidden states that predicts each sampled token.
        targets: [N] sampled tokens, sample after sample.
        samples: [K] index of each sample in the sequence the micro-batches were made from.
        counts: [K] sampled tokens of each sample; sums to N.
    """

    prefix_ids: Tensor
    suffix_ids: Tensor
    owners: Tensor
    positions: Tensor
    predictors: Tensor
    targets: Tensor
    samples: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def is_packed(self) -> bool:
        """Whether some row holds more than one sample."""
        return len(self.samples) > len(self.suffix_ids)

    def gather(self, values: Sequence[Sequence[float]]) -> Tensor:
        """[N] per-token values, given for all samples in their original order."""
        return self._tensor([value for index in self.samples for value in values[index]])

    def token_owners(self) -> Tensor:
        """[N] place in `samples` of the sample of each sampled token."""
        counts = torch.tensor(self.counts, device=self.targets.device)
        return torch.arange(len(counts), device=counts.device).repeat_interleave(counts)

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

    Samples of similar beginning are put together, which keeps prefixes long, and short ones fill up
    the rows of long ones, which keeps padding short. A sample longer than the budget gets a
    micro-batch of its own. Samples without sampled tokens have nothing to train and are left out.

    Args:
        samples: In any order.
        max_tokens: Budget of B·S; bounds memory, and decides nothing else.
        share_prefix: Whether the model can go on from keys and values of a common prefix. One that
            cannot keeps state that samples in one row would share, so it gets a row for each.
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
) -> Iterator[list[list[int]]]:
    """Pack a family into rows, longest first, each where it first fits; cut at the budget.

    Packing first-fit decreasing needs at most 11/9 of the rows that are needed (Johnson, 1973).
    """
    ids = {index: _predicting(samples[index]) for index in family}
    prefix = _shared(list(ids.values())) if share_prefix else 0
    rows: list[list[int]] = []
    room: list[int] = []
    width = 0
    for index in sorted(family, key=lambda index: -len(ids[index])):
        size = len(ids[index]) - prefix
        row = next((row for row, left in enumerate(room) if share_prefix and size <= left), None)
        if row is None:
            if width * (len(rows) + 1) > max_tokens and rows:
                yield rows
                rows, room = [], []
            width = width if rows else size
            row = len(rows)
            rows.append([])
            room.append(width)
        rows[row].append(index)
        room[row] -= size
    yield rows


def _micro_batch(
    rows: Sequence[Sequence[int]],
    samples: Sequence[Sample],
    share_prefix: bool,
    device: torch.device | str,
) -> MicroBatch:
    order = [index for row in rows for index in row]
    ids = {index: _predicting(samples[index]) for index in order}
    prefix = _shared(list(ids.values())) if share_prefix and len(order) > 1 else 0
    width = max(sum(len(ids[index]) - prefix for index in row) for row in rows)
    suffixes, owners, positions = ([[fill] * width for _ in rows] for fill in (0, -1, 0))
    predictors: list[int] = []
    targets: list[int] = []
    owner = 0
    for number, row in enumerate(rows):
        start = 0
        for index in row:
            end = start + len(ids[index]) - prefix
            suffixes[number][start:end] = ids[index][prefix:]
            owners[number][start:end] = [owner] * (end - start)
            positions[number][start:end] = range(prefix, len(ids[index]))
            shift = number * width + start  # of a place in the sample to its hidden state's row
            for span in samples[index].spans:
                targets += samples[index].token_ids[span.start : span.end]
                predictors += (
                    place if place < prefix else place + shift
                    for place in range(span.start - 1, span.end - 1)
                )
            start, owner = end, owner + 1

    def tensor(values: Sequence[int] | Sequence[Sequence[int]]) -> Tensor:
        return torch.tensor(values, dtype=torch.long, device=device)

    return MicroBatch(
        prefix_ids=tensor(ids[order[0]][:prefix]),
        suffix_ids=tensor(suffixes),
        owners=tensor(owners),
        positions=tensor(positions),
        predictors=tensor(predictors),
        targets=tensor(targets),
        samples=tuple(order),
        counts=tuple(samples[index].num_sampled for index in order),
    )


def _predicting(sample: Sample) -> list[int]:
    """A sample's tokens but the last sampled one and what follows: those predict nothing."""
    return sample.token_ids[: sample.spans[-1].end - 1]


def _shared(ids: Sequence[list[int]]) -> int:
    """Length of the prefix to compute once: common to all, and each keeps a token of its own."""
    return min(_common_prefix(min(ids), max(ids)), min(map(len, ids)) - 1)


def _common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """Length of the common prefix of two token sequences."""
    for place, (left, right) in enumerate(zip(first, second, strict=False)):
        if left != right:
            return place
    return min(len(first), len(second))
