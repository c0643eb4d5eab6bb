"""Log-probs of sampled tokens, and of no other.

P prefix tokens, B rows of S suffix tokens, N sampled tokens, H hidden width, V vocabulary.

Four things make this cheap, and none changes a result beyond rounding (law L6):

1. The prefix that all samples share runs once; its keys and values, with their gradient, serve
   as the cache of every suffix.
2. The last feed-forward layer and the output layer see only the N hidden states that predict a
   sampled token, not all P + B·S.
3. The output layer sees them in chunks and forgets their logits: no [N, V] tensor ever exists. The
   backward pass computes a chunk's logits again.
4. Short samples fill up the rows of long ones, and see only their own tokens and the prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.autograd import Function
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer

from muarl.errors import SetupError
from muarl.kernel.batch import MicroBatch, make_micro_batches
from muarl.record.sample import Sample, Span

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


def score_tokens(
    model: PreTrainedModel, batch: MicroBatch, *, temperature: float = 1.0
) -> TokenScores:
    """Score every sampled token of a micro-batch under the model's weights.

    Nothing else may run the model meanwhile (one forward method is replaced for the time).

    Args:
        model: Any causal language model of transformers.
        batch: The tokens.
        temperature: Logits are divided by it, as the sampler did; 0 (greedy) reads as 1.
    """
    hidden = _hidden_states(model.base_model, batch)[batch.predictors]
    head: nn.Module = model.get_output_embeddings()
    scale = 1.0 / (temperature or 1.0)
    scored = _Score.apply(head, scale, batch.targets, hidden, *head.parameters())  # type: ignore[no-untyped-call]
    return TokenScores(*scored)


def can_share_prefix(model: PreTrainedModel) -> bool:
    """Whether samples may share a prefix and a row: what a token sees is then ours to say.

    That takes layers that attend to all that came before, told by position and mask alone. A model
    may count places in the row instead (a window, a slope), or keep state that is no cache. Long
    windows do not show on a few tokens, so the config is asked for them; all else is tried, once
    for each model.
    """
    if model not in _can_share:
        layers = DynamicCache(config=model.config).layers
        _can_share[model] = (
            all(type(layer) is DynamicLayer for layer in layers)
            and not _has_window(model.config.get_text_config(decoder=True).to_dict())
            and _shares_rightly(model)
        )
    return _can_share[model]


_can_share: WeakKeyDictionary[PreTrainedModel, bool] = WeakKeyDictionary()


def _has_window(config: Mapping[str, Any]) -> bool:
    """Whether a config speaks of attention that reaches only so far."""
    return any(value and _WINDOW.search(name) for name, value in config.items())


# `max_window_layers` stands in configs of Qwen whether there is a window or not.
_WINDOW = re.compile(r"(?<!max_)window|local_attention|attention_chunk|block_size|blocksparse")


def _shares_rightly(model: PreTrainedModel) -> bool:
    """Whether samples that share a prefix and a row get the hidden states they get alone."""
    samples = _few_samples(model)
    (together,) = make_micro_batches(samples, device=model.device)
    assert together.is_packed
    with torch.no_grad():
        try:
            ours = _hidden_states(model.base_model, together)[together.predictors]
        except (IndexError, RuntimeError, TypeError, ValueError):
            return False  # it does not take a mask of ours, or positions
        for index, found in zip(together.samples, ours.split(list(together.counts)), strict=True):
            (alone,) = make_micro_batches([samples[index]], device=model.device)
            expected = _hidden_states(model.base_model, alone)[alone.predictors]
            if (found - expected).norm() > _rounding(model) * expected.norm():
                return False
    return True


def _few_samples(model: PreTrainedModel) -> list[Sample]:
    """Three samples with a common prefix, two of which fit into the row of the third."""
    vocab_size: int = model.config.get_text_config(decoder=True).vocab_size
    head = [1, 2, 3, 4]
    tails = [
        [seed + 7 * place for place in range(size)] for seed, size in ((5, 12), (6, 6), (8, 5))
    ]
    rows = [[token % vocab_size for token in (*head, *tail)] for tail in tails]
    return [Sample(ids, [Span(2, len(ids), 0)]) for ids in rows]


def _rounding(model: PreTrainedModel) -> float:
    return 1e-4 if model.dtype == torch.float32 else 5e-2


def check_scores(model: PreTrainedModel) -> None:
    """Compare `score_tokens` with the model's own logits on a few tokens.

    Raises:
        SetupError: They differ: the model does something after its output layer (soft-capping,
            scaling) or around its backbone that is not done here. Or they cannot be had.
    """
    try:
        same = _scores_are_its_own(model)
    except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
        raise SetupError(
            f"{type(model).__name__} cannot be trained here: scoring a few tokens with it raised "
            f"{type(error).__name__}: {error}. Use another model"
        ) from error
    if not same:
        raise SetupError(
            f"{type(model).__name__} cannot be trained here: the log-probs of its own forward pass "
            "are not those of its output layer on its last hidden states (soft-capped or scaled "
            "logits). Use a model without them"
        )


def _scores_are_its_own(model: PreTrainedModel) -> bool:
    samples, rounding = _few_samples(model), _rounding(model)
    share = can_share_prefix(model)
    # Soft-capping hardly shows in a model whose logits are still small.
    same = not getattr(model.config, "final_logit_softcapping", None)
    with torch.no_grad():
        (batch,) = make_micro_batches(samples, share_prefix=share, device=model.device)
        ours = score_tokens(model, batch).logprobs.split(list(batch.counts))
        for index, found in zip(batch.samples, ours, strict=True):
            ids = torch.tensor(samples[index].token_ids, device=model.device)
            logits = model(ids[None]).logits[0, 1:-1].float()
            expected = logits.log_softmax(-1).gather(-1, ids[2:, None])[:, 0]
            same = same and torch.allclose(found, expected, rtol=rounding, atol=rounding)
    return same


def _hidden_states(backbone: nn.Module, batch: MicroBatch) -> Tensor:
    """[P + B·S, H] final hidden states, prefix first; meaningful in the predicting rows only."""
    prefix = len(batch.prefix_ids)
    in_suffix = batch.predictors >= prefix
    suffix_rows = batch.predictors[in_suffix] - prefix
    if not prefix and not batch.is_packed:
        # Causal attention hides the padding, which stands on the right.
        with _last_feed_forward_on(backbone, suffix_rows):
            output = backbone(batch.suffix_ids, use_cache=False)
        own: Tensor = output.last_hidden_state.flatten(0, 1)
        return own
    cache, before = DynamicCache(), []
    if prefix:
        with _last_feed_forward_on(backbone, batch.predictors[~in_suffix]):
            shared = backbone(batch.prefix_ids[None], past_key_values=cache, use_cache=True)
        rows = len(batch.suffix_ids)
        cache = DynamicCache(
            (keys.expand(rows, -1, -1, -1), values.expand(rows, -1, -1, -1))
            for keys, values, *_ in shared.past_key_values
        )
        before = [shared.last_hidden_state[0]]
    with _last_feed_forward_on(backbone, suffix_rows):
        output = backbone(
            batch.suffix_ids,
            attention_mask=_sees(batch.owners, prefix)[:, None],
            position_ids=batch.positions,
            past_key_values=cache,
            use_cache=True,
        )
    return torch.cat([*before, output.last_hidden_state.flatten(0, 1)])


def _sees(owners: Tensor, prefix: int) -> Tensor:
    """[B, S, P + S] whether a suffix token sees a token: all of the prefix, and its own past."""
    own_past = (owners[:, :, None] == owners[:, None, :]).tril()
    return torch.cat([own_past.new_ones(*owners.shape, prefix), own_past], dim=-1)


@contextmanager
def _last_feed_forward_on(backbone: nn.Module, rows: Tensor) -> Iterator[None]:
    """Run the last layer's feed-forward for some rows of its flattened input; others get zeros.

    No other row's final state is read, and none reads another's after this. With 3 layers and a
    third of the tokens sampled this saves a sixth of the matrix products. A model whose last layer
    has no `mlp` runs in full.
    """
    mlp = getattr(getattr(backbone, "layers", [None])[-1], "mlp", None)
    if mlp is None:
        yield
        return
    full = mlp.forward
    # A row of the prefix may predict a token of several samples; it must be written once. Where no
    # row is read, one is run all the same: what a mixture of experts does with none is its secret.
    rows = rows.unique() if len(rows) else rows.new_zeros(1)

    def partial(hidden: Tensor) -> Any:
        flat = hidden.flatten(0, 1)
        output = full(flat[rows][None])
        # Some mixtures of experts return their router's scores beside the result.
        some, *rest = output if isinstance(output, tuple) else (output,)
        result = torch.zeros_like(flat).index_copy(0, rows, some[0]).view_as(hidden)
        return (result, *rest) if rest else result

    mlp.forward = partial
    try:
        yield
    finally:
        del mlp.forward


class _Score(Function):
    """Log-probs and entropies of targets from hidden states, with a chunk of logits at a time.

    The slope of log softmax is known, `onehot - softmax`, and that of the entropy, too. The backward
    pass therefore needs only a chunk's logits again, and their normalizers, [N], which the forward
    pass keeps.
    """

    @staticmethod
    def forward(
        ctx: Any, head: nn.Module, scale: float, targets: Tensor, hidden: Tensor, *weights: Tensor
    ) -> tuple[Tensor, Tensor]:
        logprobs, entropy, normalizer = hidden.new_empty(
            (3, len(targets)), dtype=torch.float32
        ).unbind()
        for rows in _chunks(len(targets)):
            logits = head(hidden[rows]).float() * scale
            normalizer[rows] = logits.logsumexp(-1)
            chosen = logits.gather(-1, targets[rows, None])[:, 0]
            logprobs[rows] = chosen - normalizer[rows]
            # H = -sum(p log p) = log Z - sum(p · logit)
            softmax = (logits - normalizer[rows, None]).exp_()
            entropy[rows] = normalizer[rows] - torch.linalg.vecdot(softmax, logits)
        ctx.head, ctx.scale = head, scale
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
            with torch.enable_grad():
                part = hidden[rows].detach().requires_grad_()
                logits = ctx.head(part)
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
                logits, [part, *trained], slope.to(logits.dtype)
            )
            for weight, weight_grad in zip(trained, parts, strict=True):
                grads[weight] += weight_grad
        return None, None, None, hidden_grad, *(grads.get(weight) for weight in weights)


def _chunks(num_rows: int) -> Iterator[slice]:
    """Slices of rows whose logits are computed together."""
    starts = range(0, num_rows, ROWS_PER_CHUNK)
    return (slice(start, start + ROWS_PER_CHUNK) for start in starts)
