"""Let a stored policy, or a domain's expert, play the tasks of a run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from muarl.data.stored import refuse_another_domain
from muarl.data.trivial import trivial_policies
from muarl.errors import NoModelError, SpecError
from muarl.evaluate.held_out import HeldOut
from muarl.kernel.device import device_for, moved
from muarl.kernel.model import load_model
from muarl.model_user import UserModel
from muarl.own_loop import AgentLoop
from muarl.record import Episode, EpisodeKey, JournalWriter, read_heads
from muarl.record.saving import saving
from muarl.render import Renderer, TextTokenizer
from muarl.scheduler import Group, Observer
from muarl.scheduler.dialogues import DialogueRunner, load_of
from muarl.scheduler.rounds import StopSignal, bounds, stream_round
from muarl.seeds import generator
from muarl.spec import Located, PerturbSpec, RunSpec
from muarl.spec.user import UserSpec
from muarl.suite import AnyDomain
from muarl.train.began_with import of_own_seed
from muarl.train.engines import open_engine, open_user_engine, shared_prompts
from muarl.train.player import Player, by_agents
from muarl.train.progress import Progress
from muarl.train.run_folder import RunFolder


def model_folder(path: Path) -> Path:
    """The model in a run's folder, or the folder itself if it is a model.

    Raises:
        NoModelError: It is neither.
    """
    for folder in (path / "model", path):
        if (folder / "config.json").is_file() and (folder / "tokenizer.json").is_file():
            return folder
    raise NoModelError(
        f"no model in {path}: expected a run's folder, or one with config.json, tokenizer.json "
        "and model.safetensors. Make one with: muarl train RUN.yaml"
    )


def stored_user(run: Located[RunSpec], users: Iterable[UserSpec]) -> Path | None:
    """The folder of the model that plays users; None if none of them is a model.

    Raises:
        SpecError: The run has it made by training, or there is no model in the folder.
    """
    if not any(user.models() for user in users):
        return None
    assert run.spec.user_model is not None  # refused as the run was read
    path = run.spec.user_model.model.path
    if path is not None:
        return model_folder(run.resolve(path))
    message = (
        "a user is played by a model that training makes; name one that was made, with --set "
        "user_model.model.path=<run folder>/user_model"
    )
    raise SpecError([run.problem(("user_model", "model"), message)])


@asynccontextmanager
async def open_stored_user(run: RunSpec, folder: Path | None) -> AsyncIterator[UserModel | None]:
    """What plays users who are a model, for the length of the block.

    Args:
        run: Its engine and limits.
        folder: By `stored_user`.
    """
    if folder is None:
        yield None
        return
    assert run.user_model is not None
    renderer = Renderer(TextTokenizer.load(folder))
    model = moved(load_model(folder), device_for(run.model.device))
    async with open_user_engine(run, model, folder) as engine:
        yield UserModel(renderer, run.user_model.context_tokens, [engine.policy])


@asynccontextmanager
async def player(
    domain: AnyDomain, run: RunSpec, model: Path | None, loop: AgentLoop | None = None
) -> AsyncIterator[Player]:
    """Who plays, for the length of the block.

    Args:
        domain: The domain.
        run: Its engine, limits and seed.
        model: A run's folder or a model's; None lets the domain's expert play.
        loop: An agent's own loop, which leads the dialogues; None: muarl's.
    """
    if model is None:
        yield by_agents(
            domain,
            run,
            lambda task, key: domain.of(task.id).expert(
                task, {}, generator(key.run_seed, str(key), "expert")
            ),
            loop,
        )
        return
    source = model_folder(model)
    weights = moved(load_model(source), device_for(run.model.device))
    renderer = Renderer(TextTokenizer.load(source))
    prompts = await shared_prompts(domain, renderer)
    async with open_engine(run, weights, source, prompts) as engine:
        yield Player(
            lambda _task, _key: engine.policy, renderer, run.rollout, load_of(engine.policy), loop
        )


async def play(
    domain: AnyDomain,
    run: RunSpec,
    model: Path,
    *,
    phase: str,
    temperature: float,
    folder: RunFolder,
    progress: Progress,
    stop: StopSignal,
    observer: Observer | None = None,
    perturb: PerturbSpec | None = None,
    user: Path | None = None,
    loop: AgentLoop | None = None,
) -> list[Episode]:
    """Play the run's evaluation tasks; episodes go to the folder's journal.

    Args:
        domain: The domain.
        run: Engine, limits, users and which tasks.
        model: A run's folder or a model's.
        phase: Name of this use of the tasks.
        temperature: Of the policy.
        folder: Where the journal goes.
        progress: Told after each task.
        stop: Drains on request.
        observer: Told what happens to dialogues.
        perturb: How often users and tools are perturbed.
        user: Model of users, by `stored_user`.
        loop: An agent's own loop, which leads the dialogues.
    """
    progress.phase(f"{phase}, T={temperature:g}", run.eval.dialogues)
    async with player(domain, run, model, loop) as who, open_stored_user(run, user) as user_model:
        keep_tokenizer(folder, who.renderer)
        with JournalWriter(folder.journal) as journal:
            held_out = HeldOut(
                domain=domain,
                run=run,
                renderer=who.renderer,
                journal=journal,
                stop=stop,
                on_group=counting(progress),
                observer=observer,
                user_model=user_model,
                loop=who.loop,
            )
            return await held_out.by(
                who.policy_for,
                phase=f"eval:{phase}:T{temperature:g}",
                temperature=temperature,
                load=who.load,
                perturb=perturb,
            )


async def play_floor(
    domain: AnyDomain,
    run: RunSpec,
    model: Path,
    *,
    folder: RunFolder,
    progress: Progress,
    stop: StopSignal,
    observer: Observer | None = None,
    user: Path | None = None,
) -> dict[str, list[Episode]]:
    """Let the policies without skill play the run's evaluation tasks.

    Args:
        domain: The domain.
        run: As of `play`.
        model: Whose template and tokenizer count: a run's folder or a model's.
        folder: As of `play`.
        progress: Told after each policy.
        stop: As of `play`.
        observer: Likewise.
        user: Likewise.

    Returns:
        Name of each policy to what it played.
    """
    names = every_trivial(domain)
    progress.phase("floor", len(names))
    found: dict[str, list[Episode]] = {}
    async with open_stored_user(run, user) as user_model:
        with JournalWriter(folder.journal) as journal:
            held_out = HeldOut(
                domain=domain,
                run=run,
                renderer=Renderer(TextTokenizer.load(model_folder(model))),
                journal=journal,
                stop=stop,
                observer=observer,
                user_model=user_model,
            )
            for name in names:
                found[name] = await held_out.by_trivial(name)
                progress.advance(len(found))
    return found


def every_trivial(domain: AnyDomain) -> list[str]:
    """Names of the policies without skill, of all members of a suite."""
    each = (name for member in domain.members for name in trivial_policies(member.spec))
    return list(dict.fromkeys(each))


async def roll_out(
    domain: AnyDomain,
    run: RunSpec,
    model: Path | None,
    keys: Sequence[EpisodeKey],
    *,
    folder: RunFolder,
    progress: Progress,
    stop: StopSignal,
    observer: Observer | None = None,
    user: Path | None = None,
    loop: AgentLoop | None = None,
) -> None:
    """Play planned dialogues of a stored policy, or of the domain's expert.

    Args:
        domain: The domain.
        run: As of `play_planned`.
        model: A run's folder or a model's; None lets the domain's expert play.
        keys: As of `play_planned`.
        folder: Likewise.
        progress: Likewise.
        stop: Likewise.
        observer: Likewise.
        user: Likewise.
        loop: An agent's own loop, which leads the dialogues.
    """
    async with player(domain, run, model, loop) as who:
        await play_planned(
            domain,
            run,
            who,
            keys,
            folder=folder,
            progress=progress,
            stop=stop,
            observer=observer,
            user=user,
        )


async def play_planned(
    domain: AnyDomain,
    run: RunSpec,
    who: Player,
    keys: Sequence[EpisodeKey],
    *,
    folder: RunFolder,
    progress: Progress,
    stop: StopSignal,
    observer: Observer | None = None,
    user: Path | None = None,
) -> None:
    """Play planned dialogues; their episodes are in the folder's journal, and only there.

    What the journal holds already is not played again, faults excepted: what caused them may have
    been mended. But never after an effect, which would be had twice.

    Args:
        domain: The domain.
        run: Limits, users and the split of the tasks.
        who: Plays the agent.
        keys: The plan.
        folder: Where the journal is.
        progress: Told after each group.
        stop: Drains on request.
        observer: Told what happens to dialogues.
        user: Model of users, by `stored_user`.
    """
    keep_tokenizer(folder, who.renderer)
    async with open_stored_user(run, user) as user_model:
        with JournalWriter(folder.journal) as journal:
            stored = of_own_seed(folder.journal, read_heads(folder.journal), {run.seed})
            kept = [head for head in stored if not head.outcome.is_fault or head.effect]
            refuse_another_domain(domain, kept)
            done = {head.key for head in kept}
            todo = [key for key in keys if key not in done]
            progress.phase("rollout", len(keys))
            runner = DialogueRunner(
                domain=domain,
                tasks=domain.tasks(run.eval.split),
                renderer=who.renderer,
                limits=who.limits,
                user=run.user,
                policy_for=who.policy_for,
                observer=observer,
                load=who.load,
                perturb=run.rollout.perturb,
                user_model=user_model,
                loop=who.loop,
            )
            await stream_round(
                todo,
                runner,
                limits=bounds(run.rollout),
                journal=journal,
                stop=stop,
                on_group=counting(progress, len(keys) - len(todo)),
                observer=observer,
            )


def keep_tokenizer(folder: RunFolder, renderer: Renderer) -> None:
    """Keep the tokenizer with the episodes, so that whoever reads them can read their tokens."""
    place = folder.path / "tokenizer"
    with saving(place):
        place.mkdir(exist_ok=True)
    renderer.tokenizer.save(place)


def counting(progress: Progress, played: int = 0) -> Callable[[Group], None]:
    """Tells `progress` how many episodes there are, after each group."""
    if played:
        progress.advance(played)

    def count(group: Group) -> None:
        nonlocal played
        played += len(group.episodes)
        progress.advance(played)

    return count
