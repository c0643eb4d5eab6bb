"""The policy's model: a transformers causal language model, built here or read from a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor
from transformers import AutoModelForCausalLM, PreTrainedModel, Qwen3Config, Qwen3ForCausalLM
from transformers.utils.logging import (
    disable_progress_bar,
    enable_progress_bar,
    is_progress_bar_enabled,
)

from muarl.errors import SetupError
from muarl.kernel.attention import caps_scores
from muarl.kernel.lora import has_adapters, merged_weights
from muarl.kernel.shards import rewritten, state_of
from muarl.record.saving import saving
from muarl.spec.model import TinyModelSpec


def build_tiny_model(
    spec: TinyModelSpec,
    *,
    seed: int,
    context_tokens: int = 4096,
    pad_token_id: int | None = None,
    eos_token_id: int | None = None,
) -> PreTrainedModel:
    """Build a Qwen3 model from nothing; equal arguments give equal weights.

    Args:
        spec: Its size.
        seed: Seeds the initial weights; the global generator is left as it was.
        context_tokens: Longest context an engine may be asked for.
        pad_token_id: Written into the config for engines that want it.
        eos_token_id: Likewise.
    """
    config = Qwen3Config(
        vocab_size=spec.vocab_size,
        hidden_size=spec.hidden_size,
        num_hidden_layers=spec.num_layers,
        num_attention_heads=spec.num_heads,
        num_key_value_heads=spec.num_kv_heads,
        head_dim=spec.head_dim,
        intermediate_size=spec.ffn_size,
        max_position_embeddings=context_tokens,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
        tie_word_embeddings=True,
        bos_token_id=None,
        pad_token_id=pad_token_id,
        eos_token_id=eos_token_id,
        dtype="float32",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: PreTrainedModel = Qwen3ForCausalLM(config).eval()
    return model


_MEND = (
    "Its files are damaged or incomplete, or of a model that this transformers does not know: copy the folder "
    "anew from where it came (of a Git repository, with `git lfs pull`), or name another one"
)


RESTORE = "Restore the folder from a copy, or use --overwrite to start anew"
"""What to do about a damaged folder of a run's own."""


def load_model(
    path: Path, *, dtype: torch.dtype = torch.float32, mend: str = ""
) -> PreTrainedModel:
    """Load a causal language model from a folder in Hugging Face form (safetensors only).

    Args:
        path: The folder.
        dtype: Of the weights.
        mend: What to do if the folder is damaged; left out: what to do about one that somebody else made.

    Raises:
        SetupError: The folder lacks a config or weights, or they do not fit one another.
    """
    if not (path / "config.json").is_file():
        raise SetupError(
            f"no model at `{path}`: expected a folder with config.json and model.safetensors, "
            "as `save_pretrained` of transformers writes it" + (mend and f". {mend}")
        )
    mend = mend or _MEND
    try:
        with _no_progress_bars():
            result: Any = AutoModelForCausalLM.from_pretrained(
                path,
                dtype=dtype,
                local_files_only=True,
                use_safetensors=True,
                ignore_mismatched_sizes=True,  # reported below, with the missing ones
                output_loading_info=True,
            )
    except Exception as error:  # whatever transformers makes of a damaged file
        why = str(error).partition("\n")[0].rstrip(". ")
        raise SetupError(f"cannot load the model at `{path}`: {why}. {mend}") from error
    model, found = result
    # transformers only warns, and would go on with random numbers.
    lacking = sorted([*found["missing_keys"], *(name for name, *_ in found["mismatched_keys"])])
    if lacking:
        raise SetupError(
            f"cannot load the model at `{path}`: {len(lacking)} weights are missing or of another "
            f"shape than config.json says, {lacking[0]} first. {mend}"
        )
    loaded: PreTrainedModel = model.eval()
    if caps_scores(loaded):  # which transformers' default leaves out without a word
        loaded.set_attn_implementation("eager")
    return loaded


@torch.no_grad()
def copy_weights(source: PreTrainedModel, target: PreTrainedModel) -> None:
    """Give a model the weights of another one of the same shape, in place."""
    theirs = dict(source.named_parameters())
    with rewritten(target):
        for name, parameter in target.named_parameters():
            parameter.copy_(theirs[name])


def save_model(model: PreTrainedModel, path: Path) -> None:
    """Write config.json and model.safetensors; transformers and vLLM load the folder.

    Adapters are merged into what is written; the model keeps them. One in pieces must be whole.

    Raises:
        RecordError: The disk refused.
    """
    with saving(path, SafetensorError), _no_progress_bars():
        path.mkdir(parents=True, exist_ok=True)
        weights = merged_weights(model) if has_adapters(model) else state_of(model)
        model.save_pretrained(path, state_dict=dict(weights))


@contextmanager
def _no_progress_bars() -> Iterator[None]:
    """Keep transformers' bars for a single file out of the run's own display."""
    shown = is_progress_bar_enabled()
    disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            enable_progress_bar()


def weights_checksum(model: PreTrainedModel) -> str:
    """Sixteen hex digits that change when any weight, name, shape or type changes."""
    return tensors_checksum(dict(model.named_parameters()))


def tensors_checksum(tensors: Mapping[str, Tensor]) -> str:
    """Sixteen hex digits that change when any value, name, shape or type changes."""
    digest = hashlib.blake2b(digest_size=8)
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        # A copy: memory that numpy has seen cannot be freed by `shards`.
        raw = tensor.detach().cpu().flatten().view(torch.uint8).clone()
        digest.update(raw.numpy().tobytes())
    return digest.hexdigest()
