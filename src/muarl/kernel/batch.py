"""Samples -> micro-batches: one shared prefix, suffixes packed into rows, and which tokens count.

P prefix tokens, K samples in B rows of S suffix tokens, N sampled tokens of the micro-batch.

Samples of a similar beginning are a family. The micro-batches of a family stand together and hold the
very same `prefix_ids`, which are computed once for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

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
        prefix_ids: [P] tokens that all samples of the family begin with; may be empty. The same tensor
            in all micro-batches of the family.
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

    Samples of similar beginning are a family, which keeps prefixes long, and short ones fill up the
    rows of long ones, which keeps padding short. A sample longer than the budget gets a
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
    predicting = {i: _predicting(sample) for i, sample in enumerate(samples) if sample.spans}
    batches = []
    for family in _families(predicting):
        ids = {index: predicting[index] for index in family}
        prefix = _worth_sharing(list(ids.values())) if share_prefix else 0
        prefix_ids = torch.tensor(ids[family[0]][:prefix], dtype=torch.long, device=device)
        batches += [
            _micro_batch(rows, ids, samples, prefix_ids)
            for rows in _fill(ids, prefix, max_tokens, share_prefix)
        ]
    return batches


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


_FAMILY_COST = 64
"""Tokens that a further forward and backward pass costs beside its own: it may be short of rows."""


def _families(samples: Mapping[int, list[int]]) -> Iterator[list[int]]:
    """Group samples by what they begin with, where that saves computation.

    In lexicographic order the longest prefixes are shared between neighbours. All share a common
    prefix, and parts of them more. A part of n samples that shares d tokens more becomes a family if
    that saves more, d·(n - 1), than computing the common prefix once more; the rest stay together.
    """
    order = sorted(samples, key=samples.__getitem__)
    common = [_common_prefix(samples[left], samples[right]) for left, right in pairwise(order)]

    def split(begin: int, end: int) -> Iterator[list[int]]:
        shared = min(common[begin : end - 1], default=0)
        cuts = [place + 1 for place in range(begin, end - 1) if common[place] == shared]
        rest: list[int] = []
        for low, high in pairwise([begin, *cuts, end]):
            more = min(common[low : high - 1], default=shared) - shared
            if more * (high - low - 1) > shared + _FAMILY_COST:
                yield from split(low, high)
            else:
                rest += order[low:high]
        if rest:
            yield rest

    if order:
        yield from split(0, len(order))


def _fill(
    ids: Mapping[int, list[int]], prefix: int, max_tokens: int, may_pack: bool
) -> Iterator[list[list[int]]]:
    """Pack a family into rows, longest first, each where it first fits; cut at the budget.

    Packing first-fit decreasing needs at most 11/9 of the rows that are needed (Johnson, 1973).
    """
    rows: list[list[int]] = []
    room: list[int] = []
    width = 0
    for index in sorted(ids, key=lambda index: -len(ids[index])):
        size = len(ids[index]) - prefix
        row = next((row for row, left in enumerate(room) if may_pack and size <= left), None)
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
    ids: Mapping[int, list[int]],
    samples: Sequence[Sample],
    prefix_ids: Tensor,
) -> MicroBatch:
    order = [index for row in rows for index in row]
    prefix = len(prefix_ids)
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
        return torch.tensor(values, dtype=torch.long, device=prefix_ids.device)

    return MicroBatch(
        prefix_ids=prefix_ids,
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


def _worth_sharing(ids: Sequence[list[int]]) -> int:
    """Length of the prefix to compute once: common to all, and each keeps a token of its own.

    Nothing below a sixteenth of the longest: a first token in common is not worth the masks.
    """
    if len(ids) == 1:
        return 0
    common = min(_common_prefix(min(ids), max(ids)), min(map(len, ids)) - 1)
    return common if 16 * common >= max(map(len, ids)) else 0


def _common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """Length of the common prefix of two token sequences."""
    for place, (left, right) in enumerate(zip(first, second, strict=False)):
        if left != right:
            return place
    return min(len(first), len(second))
