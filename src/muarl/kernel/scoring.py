"""Samples as a model scores them, without learning: what a reference or a sampler is compared by."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import torch
from transformers import PreTrainedModel

from muarl.kernel.logprobs import scored
from muarl.kernel.ranks import ALONE, Ranks
from muarl.kernel.shards import whole
from muarl.kernel.ways import way_for
from muarl.record.sample import Sample
from muarl.spec.kernel import KernelSpec


def sample_logprobs(
    model: PreTrainedModel,
    samples: Sequence[Sample],
    *,
    temperature: float = 1.0,
    kernel: KernelSpec | None = None,
    ranks: Ranks = ALONE,
) -> list[list[float]]:
    """Log-probs of every sample's sampled tokens under a model, laid out like `Sample.logprobs`.

    Args:
        model: Which.
        samples: Of which.
        temperature: Of the sampler.
        kernel: What it may take.
        ranks: Who share out the samples; all of them call, and all get every row.
    """
    kernel = kernel or KernelSpec()
    mine = ranks.share(samples)
    rows: list[list[float]] = [[] for _ in mine]
    with torch.no_grad(), whole(model):
        way = way_for(model, kernel).way
        chosen = [samples[index] for index in mine]
        for batch, scores in scored(
            model, chosen, way, max_tokens=2 * kernel.max_tokens, temperature=temperature
        ):
            parts = scores.logprobs.split(list(batch.counts))
            for index, part in zip(batch.samples, parts, strict=True):
                rows[index] = part.tolist()
    if ranks.alone:
        return rows
    return _rows_of_all(samples, rows, ranks)


def _rows_of_all(
    samples: Sequence[Sample], rows: Sequence[Sequence[float]], ranks: Ranks
) -> list[list[float]]:
    """Every rank's rows, each where its sample is."""
    found: list[list[float]] = [[] for _ in samples]
    said = ranks.gather(array("d", [value for row in rows for value in row]).tobytes())
    for rank, data in enumerate(said):
        values = iter(array("d", data))
        for index in Ranks(rank, ranks.size).share(samples):
            found[index] = [next(values) for _ in range(samples[index].num_sampled)]
    return found
