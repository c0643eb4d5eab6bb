"""The policy's model and tokenizer: made from the domain's own text, or read from a folder."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from muarl.data.demonstrations import demonstrations
from muarl.domain import Domain
from muarl.kernel.model import build_tiny_model, load_model, save_model
from muarl.record import Episode
from muarl.record.whole import whole_folder
from muarl.render import Renderer, TextTokenizer, train_tokenizer
from muarl.seeds import derive_seed
from muarl.spec import RunSpec, TaskSpec
from muarl.spec.run import ColdStartSpec

_WORD = re.compile(r"<[^<>\s]+>| ?\w+|[^\w<]+?(?= ?\w|<|$)|<")  # a control token stays whole
_LETTERS = re.compile(r"[A-Za-z]{2,}")
_TOKENIZER_DIALOGUES = 400
_PROMPT_ONE_IN = 4  # the prompt is the same in every dialogue: merge it, but not before all else


async def make_tokenizer(domain: Domain, run: RunSpec, vocab_size: int) -> TextTokenizer:
    """Train a tokenizer on dialogues of the domain's training tasks.

    The dialogues are played by the expert over plain bytes, since there is no vocabulary yet.
    """
    by_bytes = Renderer(train_tokenizer([], vocab_size=300))
    cold_start = run.cold_start or ColdStartSpec()
    # Byte by byte, everything is several times as long as it will be.
    limits = run.rollout.model_copy(update={"max_tokens": 4096, "context_tokens": 65_536})
    episodes = await demonstrations(
        domain,
        by_bytes,
        cold_start,
        limits,
        run_seed=run.seed,
        count=min(_TOKENIZER_DIALOGUES, cold_start.episodes),
    )
    values = set(_values(domain, domain.tasks(cold_start.split)))
    return train_tokenizer(_pieces(by_bytes, episodes), vocab_size=vocab_size, values=values)


def _pieces(renderer: Renderer, episodes: Sequence[Episode]) -> Iterator[str]:
    """Text that may become one token: whole policy messages, but of all else only single words.

    What the policy says is stock phrases: as few tokens as possible, since each is a step of the
    sampler. What it reads varies, and held-out users word things differently: their words must look
    as they did in training.
    """
    decode = renderer.tokenizer.decode
    for number, episode in enumerate(episodes):
        for sample in episode.samples:
            prompt_end = sample.spans[0].start if sample.spans else 0
            if number % _PROMPT_ONE_IN == 0:
                yield decode(sample.token_ids[:prompt_end])
            at = prompt_end
            yield from _WORD.findall(episode.opening.text)
            for span in sample.spans:
                yield from _WORD.findall(decode(sample.token_ids[at : span.start]))
                yield decode(sample.token_ids[span.start : span.end])
                at = span.end


def _values(domain: Domain, tasks: Sequence[TaskSpec]) -> Iterator[str]:
    """Words that stand for data: leaves of the world and of the tasks' own worlds, and facts."""

    def leaves(value: Any) -> Iterator[str]:
        if isinstance(value, str):
            yield from _LETTERS.findall(value)
        elif isinstance(value, dict):
            for child in value.values():
                yield from leaves(child)
        elif isinstance(value, list):
            for child in value:
                yield from leaves(child)

    for task in tasks[:500]:
        yield from leaves(task.world)


async def open_model(
    domain: Domain, run: RunSpec, run_file: Path, folder: Path
) -> tuple[PreTrainedModel, Renderer]:
    """The model to train and the renderer that belongs to it; both saved under `folder`."""
    if folder.exists():
        return load_model(folder), Renderer(TextTokenizer.load(folder))
    tiny = run.model.tiny
    if tiny is None:
        assert run.model.path is not None  # ModelSpec holds exactly one source
        source = run_file.parent / run.model.path
        tokenizer, model = TextTokenizer.load(source), load_model(source)
    else:
        tokenizer = await make_tokenizer(domain, run, tiny.vocab_size)
        model = build_tiny_model(
            tiny.model_copy(update={"vocab_size": tokenizer.vocab_size}),
            seed=derive_seed(run.seed, "weights"),
            context_tokens=run.rollout.context_tokens,
            eos_token_id=tokenizer.eos_token_id,
        )
    save_with_tokenizer(model, tokenizer, folder)
    return model, Renderer(tokenizer)


def save_with_tokenizer(model: PreTrainedModel, tokenizer: TextTokenizer, folder: Path) -> None:
    """Write, as a whole, a folder that anything can sample from."""
    with whole_folder(folder) as draft:
        save_model(model, draft)
        tokenizer.save(draft)
