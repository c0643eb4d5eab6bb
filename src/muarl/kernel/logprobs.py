"""Log-probs of sampled tokens, and of no other.

P prefix tokens, B rows of S suffix tokens, N sampled tokens, H hidden width, V vocabulary.

Four things make this cheap, and none changes a result beyond rounding (law L6):

1. The prefix that the samples of a family share runs once; its keys and values, with their gradient,
   serve as the cache of every suffix (`muarl.kernel.backbone`).
2. The last feed-forward layer and the output layer see only the N hidden states that predict a
   sampled token, not all P + B·S.
3. The output layer sees them in chunks and forgets their logits: no [N, V] tensor ever exists. The
   backward pass computes a chunk's logits again.
4. Short samples fill up the rows of long ones, and see only their own tokens and the prefix.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd import Function
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPast

from muarl.kernel.backbone import Way, predicting_states
from muarl.kernel.batch import MicroBatch
from muarl.record.sample import Sample

ROWS_PER_CHUNK = 256
"""Tokens whose logits are alive at once: 1 MiB for 1,000 tokens of vocabulary, 150 MiB for 150,000.
Fewer would add up the output layer's gradient more often than its products are worth."""


class TokenScores(NamedTuple):
    """What the model thinks of the sampled tokens of a micro-batch.

    Attributes:
        logprobs: [N] log-probabilities, with gradient.
        entropy: [N] entropy in nats of the distribution each was drawn from, with gradient.
    """

    logprobs: Tensor
    entropy: Tensor


def scored(
    model: PreTrainedModel,
    samples: Sequence[Sample],
    way: Way,
    *,
    max_tokens: int = 4096,
    temperature: float = 1.0,
) -> Iterator[tuple[MicroBatch, TokenScores]]:
    """Score every sampled token of samples under the model's weights, a micro-batch at a time.

    Where gradients are wanted, take each micro-batch's backward pass before asking for the next; the
    shared prefix's own follows the last of its family:

        for batch, scores in scored(model, samples, way):
            loss(batch, scores).backward()

    Nothing else may run the model meanwhile (forward methods are replaced for the time).

    Args:
        model: Any causal language model of transformers.
        samples: In any order; the micro-batches say which they hold.
        way: How to run the model; see `muarl.kernel.ways.way_for`.
        max_tokens: Budget of a micro-batch.
        temperature: Logits are divided by it, as the sampler did; 0 (greedy) reads as 1.
    """
    scale = 1.0 / (temperature or 1.0)
    for batch, hidden in predicting_states(model, samples, way, max_tokens=max_tokens):
        yield batch, _scores(model, hidden, batch.targets, way, scale)


def _scores(
    model: PreTrainedModel, hidden: Tensor, targets: Tensor, way: Way, scale: float
) -> TokenScores:
    body = set(model.base_model.parameters())
    head: list[Tensor] = [p for p in model.parameters() if p not in body]
    head += [p for p in model.get_output_embeddings().parameters() if p in body]  # tied
    found = _Score.apply(model, way, scale, targets, hidden, *head)  # type: ignore[no-untyped-call]
    return TokenScores(*found)


class _Hidden(BaseModelOutputWithPast):
    """What stands for the body's output; whatever else is asked of it is None."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("_"):
            raise AttributeError(name)


@contextmanager
def _body_gives(body: nn.Module, hidden: Tensor) -> Iterator[None]:
    """Let a model's own forward pass go on from given hidden states.

    What it does to its logits, soft caps and scales included, is then done here, too.
    """
    body.forward = lambda *_args, **_kwargs: _Hidden(last_hidden_state=hidden[None])  # type: ignore[arg-type]
    try:
        yield
    finally:
        del body.forward


def _logits(model: PreTrainedModel, hidden: Tensor) -> Tensor:
    """[n, V] from [n, H]."""
    anything = torch.zeros(1, len(hidden), dtype=torch.long, device=hidden.device)
    with _body_gives(model.base_model, hidden):
        logits: Tensor = model(anything, use_cache=False).logits[0]
    return logits


class _Score(Function):
    """Log-probs and entropies of targets from hidden states, with a chunk of logits at a time.

    The slope of log softmax is known, `onehot - softmax`, and that of the entropy, too. The backward
    pass therefore needs only a chunk's logits again, and their normalizers, [N], which the forward
    pass keeps.
    """

    @staticmethod
    def forward(
        ctx: Any,
        model: PreTrainedModel,
        way: Way,
        scale: float,
        targets: Tensor,
        hidden: Tensor,
        *weights: Tensor,
    ) -> tuple[Tensor, Tensor]:
        logprobs, entropy, normalizer = hidden.new_empty(
            (3, len(targets)), dtype=torch.float32
        ).unbind()
        for rows in _chunks(len(targets)):
            with way.autocast(hidden.device):
                logits = _logits(model, hidden[rows])
            logits = logits.float() * scale
            normalizer[rows] = logits.logsumexp(-1)
            chosen = logits.gather(-1, targets[rows, None])[:, 0]
            logprobs[rows] = chosen - normalizer[rows]
            # H = -sum(p log p) = log Z - sum(p · logit)
            softmax = (logits - normalizer[rows, None]).exp_()
            entropy[rows] = normalizer[rows] - torch.linalg.vecdot(softmax, logits)
        ctx.model, ctx.way, ctx.scale = model, way, scale
        ctx.save_for_backward(targets, hidden, normalizer, entropy, *weights)
        ctx.set_materialize_grads(False)
        return logprobs, entropy

    @staticmethod
    def backward(
        ctx: Any, grad: Tensor | None, entropy_grad: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        targets, hidden, normalizer, entropy, *weights = ctx.saved_tensors
        if grad is None:
            grad = torch.zeros_like(normalizer)
        trained = [weight for weight in weights if weight.requires_grad]
        hidden_grad = torch.empty_like(hidden)
        grads = {weight: torch.zeros_like(weight) for weight in trained}
        for rows in _chunks(len(targets)):
            with torch.enable_grad(), ctx.way.autocast(hidden.device):
                part = hidden[rows].detach().requires_grad_()
                logits = _logits(ctx.model, part)
            log_softmax = (logits.detach().float() * ctx.scale).sub_(normalizer[rows, None])
            if entropy_grad is None:
                slope = log_softmax.exp_().mul_(-grad[rows, None])
            else:
                # dH / d logit = -p · (log p + H)
                slope = log_softmax.exp()
                log_softmax.add_(entropy[rows, None]).mul_(entropy_grad[rows, None])
                slope.mul_(log_softmax.add_(grad[rows, None]).neg_())
            slope.scatter_add_(1, targets[rows, None], grad[rows, None]).mul_(ctx.scale)
            hidden_grad[rows], *parts = torch.autograd.grad(
                logits, [part, *trained], slope.to(logits.dtype), allow_unused=True
            )
            for weight, weight_grad in zip(trained, parts, strict=True):
                if weight_grad is not None:
                    grads[weight] += weight_grad
        return None, None, None, None, hidden_grad, *(grads.get(weight) for weight in weights)


def _chunks(num_rows: int) -> Iterator[slice]:
    """Slices of rows whose logits are computed together."""
    starts = range(0, num_rows, ROWS_PER_CHUNK)
    return (slice(start, start + ROWS_PER_CHUNK) for start in starts)
