"""Let a stored policy, or a domain's expert, play the evaluation tasks of a run."""

from __future__ import annotations

from pathlib import Path

from muarl.data.expert import ExpertPolicy
from muarl.domain import Domain
from muarl.errors import SetupError
from muarl.evaluate.held_out import HeldOut
from muarl.kernel.model import load_model
from muarl.record import Episode, JournalWriter
from muarl.render import Renderer, TextTokenizer, train_tokenizer
from muarl.scheduler import Group, Observer
from muarl.scheduler.rounds import StopSignal
from muarl.seeds import generator
from muarl.spec import RunSpec
from muarl.train.engines import open_engine, shared_prompt
from muarl.train.progress import Progress
from muarl.train.run_folder import RunFolder


def model_folder(path: Path) -> Path:
    """The model in a run's folder, or the folder itself if it is a model.

    Raises:
        SetupError: It is neither.
    """
    for folder in (path / "model", path):
        if (folder / "config.json").is_file() and (folder / "tokenizer.json").is_file():
            return folder
    raise SetupError(
        f"no model in {path}: expected a run's folder, or one with config.json, tokenizer.json "
        "and model.safetensors. Make one with: muarl train RUN.yaml"
    )


async def play(
    domain: Domain,
    run: RunSpec,
    model: Path | None,
    *,
    phase: str,
    temperature: float,
    folder: RunFolder,
    progress: Progress,
    stop: StopSignal,
    observer: Observer | None = None,
) -> list[Episode]:
    """Play the run's evaluation tasks; episodes go to the folder's journal.

    Args:
        domain: The domain.
        run: Engine, limits, users and which tasks.
        model: A run's folder or a model's; None lets the domain's expert play.
        phase: Name of this use of the tasks.
        temperature: Of the policy.
        folder: Where the journal goes.
        progress: Told after each task.
        stop: Drains on request.
        observer: Told what happens to dialogues.
    """
    played = 0

    def count(group: Group) -> None:
        nonlocal played
        played += len(group.episodes)
        progress.advance(played)

    progress.phase(f"{phase}, T={temperature:g}", run.eval.episodes)
    with JournalWriter(folder.journal) as journal:

        def held_out(renderer: Renderer, run: RunSpec = run) -> HeldOut:
            return HeldOut(
                domain=domain,
                run=run,
                renderer=renderer,
                journal=journal,
                stop=stop,
                on_group=count,
                observer=observer,
            )

        if model is None:
            renderer = Renderer(train_tokenizer([], vocab_size=300))
            by_bytes = run.rollout.model_copy(update={"max_tokens": 4096, "context_tokens": 65_536})
            return await held_out(renderer, run.model_copy(update={"rollout": by_bytes})).by(
                lambda task, key: ExpertPolicy(
                    domain.expert(task, {}, generator(key.run_seed, str(key), "expert")), renderer
                ),
                phase=phase,
                temperature=temperature,
            )
        source = model_folder(model)
        weights, renderer = load_model(source), Renderer(TextTokenizer.load(source))
        prompt = await shared_prompt(domain, renderer)
        async with open_engine(run, weights, source, prompt) as engine:
            return await held_out(renderer).by_policy(
                engine.policy, phase=phase, temperature=temperature
            )
