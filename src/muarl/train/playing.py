"""Let a stored policy, or a domain's expert, play the tasks of a run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from muarl.data.expert import ExpertPolicy, byte_limits, byte_renderer
from muarl.data.stored import refuse_another_domain
from muarl.data.trivial import trivial_policies
from muarl.domain import Agent
from muarl.errors import SetupError, SpecError
from muarl.evaluate.held_out import HeldOut
from muarl.http.chat_client import ChatClient
from muarl.kernel.device import device_for, moved
from muarl.kernel.model import load_model
from muarl.model_user import UserModel
from muarl.policy.chat import ChatPolicy
from muarl.record import Episode, EpisodeKey, JournalWriter, read_heads
from muarl.render import Renderer, TextTokenizer, in_convention
from muarl.scheduler import Group, Observer
from muarl.scheduler.dialogues import DialogueRunner, PolicyFor, load_of
from muarl.scheduler.rounds import StopSignal, bounds, stream_round
from muarl.scheduler.scheduler import ReadLoad
from muarl.seeds import generator
from muarl.spec import Located, PerturbSpec, RunSpec, TaskSpec
from muarl.spec.chat_agent import LlmAgentSpec
from muarl.spec.run import RolloutSpec
from muarl.spec.user import UserSpec
from muarl.suite import AnyDomain
from muarl.train.engines import open_engine, open_user_engine, shared_prompts
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


@dataclass(frozen=True)
class Player:
    """Who speaks as the policy.

    Attributes:
        policy_for: The policy of each dialogue.
        renderer: Its template and tokenizer.
        limits: The run's; an expert, who has no tokenizer of its own, speaks byte by byte.
        load: Reads how busy the engine is, where there is one.
    """

    policy_for: PolicyFor
    renderer: Renderer
    limits: RolloutSpec
    load: ReadLoad | None = None


def by_agents(
    domain: AnyDomain, run: RunSpec, agent_for: Callable[[TaskSpec, EpisodeKey], Agent]
) -> Player:
    """Rule-based agents, a fresh one for each dialogue."""
    by_bytes = byte_renderer()

    def policy_for(task: TaskSpec, key: EpisodeKey) -> ExpertPolicy:
        renderer = in_convention(by_bytes, domain.of(task.id).convention)
        return ExpertPolicy(agent_for(task, key), renderer)

    return Player(policy_for, by_bytes, byte_limits(run.rollout))


def by_endpoint(domain: AnyDomain, run: RunSpec, agent: LlmAgentSpec, *, judged: bool) -> Player:
    """A model behind a chat endpoint.

    Args:
        domain: Says how calls are written; a suite's members each in their way.
        run: Its limits, but for those in tokens: the endpoint's own cap is what holds.
        agent: Which model, where.
        judged: It is what is evaluated; see `ChatPolicy`.

    Raises:
        SetupError: The variable that holds its key is not set.
    """
    by_bytes, client = byte_renderer(), endpoint_client(agent)
    policies = {
        member.located.path: ChatPolicy(
            client,
            by_bytes,
            temperature=agent.temperature,
            max_tokens=agent.max_tokens,
            convention=member.convention,
            judged=judged,
        )
        for member in domain.members
    }
    roomy = {"max_tokens": 1 << 20, "context_tokens": 1 << 24}  # a token is a byte here
    return Player(
        lambda task, _key: policies[domain.of(task.id).located.path],
        by_bytes,
        run.rollout.model_copy(update=roomy),
    )


def endpoint_client(agent: LlmAgentSpec) -> ChatClient:
    """Who is asked.

    Raises:
        SetupError: The variable that holds the key is not set.
    """
    return ChatClient(
        agent.base_url, agent.model, api_key_env=agent.api_key_env, timeout_s=agent.timeout_s
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
async def player(domain: AnyDomain, run: RunSpec, model: Path | None) -> AsyncIterator[Player]:
    """Who plays, for the length of the block.

    Args:
        domain: The domain.
        run: Its engine, limits and seed.
        model: A run's folder or a model's; None lets the domain's expert play.
    """
    if model is None:
        yield by_agents(
            domain,
            run,
            lambda task, key: domain.of(task.id).expert(
                task, {}, generator(key.run_seed, str(key), "expert")
            ),
        )
        return
    source = model_folder(model)
    weights = moved(load_model(source), device_for(run.model.device))
    renderer = Renderer(TextTokenizer.load(source))
    prompts = await shared_prompts(domain, renderer)
    async with open_engine(run, weights, source, prompts) as engine:
        yield Player(
            lambda _task, _key: engine.policy, renderer, run.rollout, load_of(engine.policy)
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
    """
    progress.phase(f"{phase}, T={temperature:g}", run.eval.dialogues)
    async with player(domain, run, model) as who, open_stored_user(run, user) as user_model:
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
    """
    async with player(domain, run, model) as who:
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
    async with open_stored_user(run, user) as user_model:
        with JournalWriter(folder.journal) as journal:
            stored = read_heads(folder.journal)
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


def counting(progress: Progress, played: int = 0) -> Callable[[Group], None]:
    """Tells `progress` how many episodes there are, after each group."""
    if played:
        progress.advance(played)

    def count(group: Group) -> None:
        nonlocal played
        played += len(group.episodes)
        progress.advance(played)

    return count
