from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from kernel_kit import random_samples, sample_lists

from muarl.errors import TrainError
from muarl.kernel.batch import MicroBatch, make_micro_batches
from muarl.record import Sample, Span


def predicted(batch: MicroBatch) -> list[tuple[int, tuple[int, ...], int]]:
    """(sample, all tokens up to the predicting one, predicted token), read off the tensors."""
    prefix = batch.prefix_ids.tolist()
    ids, owners, positions = (
        tensor.flatten().tolist() for tensor in (batch.suffix_ids, batch.owners, batch.positions)
    )
    found = []
    numbers = [number for number, count in enumerate(batch.counts) for _ in range(count)]
    pairs = zip(numbers, batch.predictors.tolist(), batch.targets.tolist(), strict=True)
    for number, place, target in pairs:
        if place < len(prefix):
            context = prefix[: place + 1]
        else:
            end = place - len(prefix) + 1
            start = owners.index(number)
            assert owners[start:end] == [number] * (end - start)
            assert positions[start:end] == list(range(len(prefix), len(prefix) + end - start))
            context = prefix + ids[start:end]
        found.append((batch.samples[number], tuple(context), target))
    return found


@given(sample_lists(), st.integers(1, 40), st.booleans())
def test_every_sampled_token_is_predicted_once_from_exactly_its_past(
    samples: list[Sample], max_tokens: int, share_prefix: bool
) -> None:
    batches = make_micro_batches(samples, max_tokens=max_tokens, share_prefix=share_prefix)
    expected = [
        (index, tuple(sample.token_ids[:place]), sample.token_ids[place])
        for index, sample in enumerate(samples)
        for place, sampled in enumerate(sample.loss_mask())
        if sampled
    ]
    assert sorted(p for batch in batches for p in predicted(batch)) == sorted(expected)
    for batch in batches:
        assert batch.suffix_ids.numel() <= max_tokens or len(batch.samples) == 1


def test_the_docstring_s_example() -> None:
    s, u, e, sampled = 1, 4, 3, 2
    first = Sample([s, s, s, u, sampled, sampled, e], [Span(4, 6, 0)])
    second = Sample([s, s, s, u, u, sampled], [Span(5, 6, 0)])
    third = Sample([s, s, s, u, e, sampled, u, sampled], [Span(5, 6, 0), Span(7, 8, 0)])
    (batch,) = make_micro_batches([first, second, third])
    assert batch.prefix_ids.tolist() == [s, s, s, u]
    assert batch.suffix_ids.tolist() == [[e, sampled, u], [sampled, u, 0]]
    assert batch.owners.tolist() == [[0, 0, 0], [1, 2, -1]]
    assert batch.positions.tolist() == [[4, 5, 6], [4, 4, 0]]
    assert batch.predictors.tolist() == [4, 6, 3, 7, 8]
    assert batch.targets.tolist() == [sampled] * 5
    assert batch.samples == (2, 0, 1)
    assert batch.counts == (2, 2, 1)
    assert batch.is_packed


def test_a_model_that_cannot_share_gets_a_row_for_each_sample() -> None:
    samples = [Sample([1, 2, *[3] * n], [Span(2, 2 + n, 0)]) for n in (9, 1, 2, 3)]
    (batch,) = make_micro_batches(samples, share_prefix=False)
    assert len(batch.suffix_ids) == 4
    assert not batch.is_packed


def test_the_budget_holds_when_a_short_sample_shortens_the_shared_prefix() -> None:
    long = [1] * 50
    samples = [Sample(long, [Span(3, 4, 0)])]
    samples += [Sample([*long, *[n] * 20], [Span(60, 70, 0)]) for n in (2, 3, 4, 5)]
    for batch in make_micro_batches(samples, max_tokens=140):
        assert batch.suffix_ids.numel() <= 140


def test_the_common_prefix_is_held_once_and_twins_keep_one_token() -> None:
    sample = Sample([5, 6, 7, 8, 9], [Span(3, 5, 0)])
    (batch,) = make_micro_batches([sample, sample])
    assert batch.prefix_ids.tolist() == [5, 6, 7]
    assert batch.suffix_ids.tolist() == [[8], [8]]


def test_a_sample_alone_has_no_prefix() -> None:
    (batch,) = make_micro_batches([Sample([5, 6, 7], [Span(2, 3, 0)])])
    assert len(batch.prefix_ids) == 0
    assert batch.suffix_ids.tolist() == [[5, 6]]
    assert not batch.is_packed


def test_samples_of_different_prompts_are_not_mixed() -> None:
    one = random_samples(6, seed=1, prefix=40)
    other = random_samples(6, seed=2, prefix=40)
    mixed = [sample for pair in zip(one, other, strict=True) for sample in pair]
    batches = make_micro_batches(mixed, max_tokens=10_000)
    assert [len(batch.prefix_ids) >= 40 for batch in batches] == [True, True]


def test_padding_stays_small_when_lengths_differ() -> None:
    samples = [Sample([1] * 5 + [7] * n, [Span(5, 5 + n, 0)]) for n in (2, 60, 3, 61, 2, 59)]
    batches = make_micro_batches(samples, max_tokens=190)
    cells = sum(batch.suffix_ids.numel() for batch in batches)
    assert cells < 1.1 * sum(len(s.token_ids) for s in samples)


def test_gather_and_owners_follow_the_tokens() -> None:
    samples = random_samples(5)
    values = [
        [index + place / 100 for place in range(s.num_sampled)] for index, s in enumerate(samples)
    ]
    for batch in make_micro_batches(samples, max_tokens=40):
        owners = [
            i for i, count in zip(batch.samples, batch.counts, strict=True) for _ in range(count)
        ]
        assert [batch.samples[place] for place in batch.token_owners()] == owners
        expected = [v for index in batch.samples for v in values[index]]
        assert torch.equal(batch.gather(values), torch.tensor(expected))


def test_samples_without_sampled_tokens_are_left_out() -> None:
    assert make_micro_batches([Sample([1, 2, 3])]) == []
    assert make_micro_batches([]) == []


@pytest.mark.parametrize(
    "spans", [[(0, 2)], [(2, 2)], [(2, 9)], [(3, 4), (2, 3)], [(1, 3), (2, 4)]]
)
def test_impossible_spans_are_refused_with_the_sample_s_number(
    spans: list[tuple[int, int]],
) -> None:
    good = Sample([1, 2], [Span(1, 2, 0)])
    bad = Sample([1, 2, 3, 4, 5], [Span(start, end, 0) for start, end in spans])
    with pytest.raises(TrainError, match="sample 1: span"):
        make_micro_batches([good, bad])
