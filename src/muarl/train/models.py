"""Models and their tokenizers: made from the domain's own text, or read from a folder."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from muarl.data.role_reversal import role_reversed
from muarl.kernel.lora import has_adapters, save_adapters
from muarl.kernel.model import RESTORE, build_tiny_model, load_model, save_model
from muarl.kernel.ranks import ALONE, Ranks
from muarl.kernel.shards import whole
from muarl.own_loop import AgentLoop
from muarl.record import Episode, Sample
from muarl.record.whole import whole_folder
from muarl.render import Renderer, TextTokenizer, train_tokenizer
from muarl.seeds import derive_seed
from muarl.spec import Located, RunSpec, TaskSpec
from muarl.spec.model import ColdStartSpec, ModelSpec
from muarl.suite import AnyDomain
from muarl.synth.demonstrations import demonstrations

ADAPTERS = "adapters"
"""Part of a model's folder: what was merged into its weights."""
_WORD = re.compile(r"<[^<>\s]+>| ?\w+|[^\w<]+?(?= ?\w|<|$)|<")  # a control token stays whole
_LETTERS = re.compile(r"[A-Za-z]{2,}")
_TOKENIZER_DIALOGUES = 400
_PROMPT_ONE_IN = 4  # the prompt is the same in every dialogue: merge it, but not before all else


async def make_tokenizer(
    domain: AnyDomain, run: RunSpec, home: Path, loop: AgentLoop | None, vocab_size: int
) -> TextTokenizer:
    """Train a tokenizer for the policy on dialogues of the domain's training tasks.

    The dialogues are played by the expert over plain bytes, since there is no vocabulary yet; or they
    are those of the cold start's file, in the folder `home`. An agent's own `loop` leads them, if there is one.
    """
    by_bytes = Renderer(train_tokenizer([], vocab_size=300))
    spec = run.cold_start or ColdStartSpec()
    episodes = await _dialogues(domain, run, home, loop, spec, by_bytes)
    texts = ((episode.opening.text, episode.samples) for episode in episodes)
    return _trained(domain, spec, by_bytes, texts, vocab_size)


async def make_user_tokenizer(
    domain: AnyDomain, run: RunSpec, loop: AgentLoop | None, vocab_size: int
) -> TextTokenizer:
    """Likewise for a user's model, on the other side of such dialogues."""
    by_bytes = Renderer(train_tokenizer([], vocab_size=300))
    hers = run.user_model
    spec = (hers and hers.cold_start) or run.cold_start or ColdStartSpec()
    episodes = await _dialogues(domain, run, Path(), loop, spec, by_bytes)
    tasks = {task.id: task for task in domain.tasks(spec.split)}
    texts = [
        (tasks[e.key.task_id].goal, (await role_reversed(domain, tasks, [e], by_bytes)).samples)
        for e in episodes
    ]
    return _trained(domain, spec, by_bytes, texts, vocab_size)


async def _dialogues(
    domain: AnyDomain,
    run: RunSpec,
    home: Path,
    loop: AgentLoop | None,
    spec: ColdStartSpec,
    by_bytes: Renderer,
) -> list[Episode]:
    # Byte by byte, everything is several times as long as it will be.
    limits = run.rollout.model_copy(update={"max_tokens": 4096, "context_tokens": 65_536})
    count = min(_TOKENIZER_DIALOGUES, spec.episodes)
    return await demonstrations(
        domain, by_bytes, spec, limits, run_seed=run.seed, count=count, home=home, loop=loop
    )


def _trained(
    domain: AnyDomain,
    spec: ColdStartSpec,
    by_bytes: Renderer,
    texts: Iterable[tuple[str, Sequence[Sample]]],
    vocab_size: int,
) -> TextTokenizer:
    values = set(_values(domain.tasks(spec.split)))
    return train_tokenizer(_pieces(by_bytes, texts), vocab_size=vocab_size, values=values)


def _pieces(renderer: Renderer, texts: Iterable[tuple[str, Sequence[Sample]]]) -> Iterator[str]:
    """Text that may become one token: whole messages of the model's, but of all else only words.

    What the model says is stock phrases: as few tokens as possible, since each is a step of the
    sampler. What it reads varies, and held-out users word things differently: their words must look
    as they did in training.

    Args:
        renderer: Of the samples.
        texts: Of each dialogue, what of its first prompt is its own, and its samples.
    """
    decode = renderer.tokenizer.decode
    for number, (own, samples) in enumerate(texts):
        for sample in samples:
            prompt_end = sample.spans[0].start if sample.spans else 0
            if number % _PROMPT_ONE_IN == 0:
                yield decode(sample.token_ids[:prompt_end])
            at = prompt_end
            yield from _WORD.findall(own)
            for span in sample.spans:
                yield from _WORD.findall(decode(sample.token_ids[at : span.start]))
                yield decode(sample.token_ids[span.start : span.end])
                at = span.end


def _values(tasks: Sequence[TaskSpec]) -> Iterator[str]:
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
    domain: AnyDomain, located: Located[RunSpec], folder: Path, loop: AgentLoop | None = None
) -> tuple[PreTrainedModel, Renderer]:
    """The policy's model and the renderer that belongs to it; both saved under `folder`."""
    run, run_file = located.spec, located.path
    make = partial(make_tokenizer, domain, run, run_file.parent, loop)
    room = run.rollout.context_tokens
    return await _open(run.model, run_file, folder, make, derive_seed(run.seed, "weights"), room)


async def open_user_model(
    domain: AnyDomain, located: Located[RunSpec], folder: Path, loop: AgentLoop | None = None
) -> tuple[PreTrainedModel, Renderer]:
    """Likewise the model of users."""
    run, run_file = located.spec, located.path
    spec = run.user_model
    assert spec is not None
    make = partial(make_user_tokenizer, domain, run, loop)
    seed = derive_seed(run.seed, "weights of the user")
    return await _open(spec.model, run_file, folder, make, seed, spec.context_tokens)


async def _open(
    spec: ModelSpec,
    run_file: Path,
    folder: Path,
    make: Callable[[int], Awaitable[TextTokenizer]],
    seed: int,
    context_tokens: int,
) -> tuple[PreTrainedModel, Renderer]:
    if folder.exists():
        return load_model(folder, mend=RESTORE), Renderer(TextTokenizer.load(folder))
    tiny = spec.tiny
    if tiny is None:
        assert spec.path is not None  # ModelSpec holds exactly one source
        source = run_file.parent / spec.path
        tokenizer, model = TextTokenizer.load(source), load_model(source)
    else:
        tokenizer = await make(tiny.vocab_size)
        model = build_tiny_model(
            tiny.model_copy(update={"vocab_size": tokenizer.vocab_size}),
            seed=seed,
            context_tokens=context_tokens,
            eos_token_id=tokenizer.eos_token_id,
        )
    save_with_tokenizer(model, tokenizer, folder)
    return model, Renderer(tokenizer)


def save_with_tokenizer(
    model: PreTrainedModel, tokenizer: TextTokenizer, folder: Path, ranks: Ranks = ALONE
) -> None:
    """Write, as a whole, a folder that anything can sample from.

    Adapters are merged into its weights, and lie by themselves in `adapters/`. Of several ranks all call,
    and the first one writes.
    """
    with whole(model):
        if ranks.is_first:
            _write(model, tokenizer, folder)
    ranks.meet()


def _write(model: PreTrainedModel, tokenizer: TextTokenizer, folder: Path) -> None:
    with whole_folder(folder) as draft:
        save_model(model, draft)
        tokenizer.save(draft)
        if has_adapters(model):
            save_adapters(model, draft / ADAPTERS)
