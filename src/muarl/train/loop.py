"""A run from first to last: floor, cold starts, GRPO, evaluation before and after.

Every stage ends with something on disk that a resumed run takes up:

    cold start   a checkpoint every 100 steps and where it ends; the cold model under cold_start/
    evaluation   its episodes; those in the journal are not played again
    GRPO         a checkpoint after each iteration, or after several; episodes since are used again,
                 and learned from in the same batches (see `muarl.train.batch_log`)

A user who is a model has stages and files of her own beside the policy's.

Of several ranks each goes through all of it, in step with the others; see `docs/many-devices.md`.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

from transformers import PreTrainedModel

from muarl.data.stored import refuse_another_domain
from muarl.errors import RecordError
from muarl.kernel.device import device_for, moved
from muarl.kernel.lora import add_adapters, has_adapters, merge_adapters
from muarl.kernel.model import RESTORE
from muarl.kernel.ranks import ALONE, Ranks
from muarl.kernel.shards import shard
from muarl.model_user import UserModel
from muarl.observe import Observation
from muarl.own_loop import AgentLoop
from muarl.record import Episode, EpisodeKey, JournalWriter, read_journal
from muarl.render import Renderer
from muarl.scheduler import Fuse
from muarl.scheduler.rounds import StopSignal
from muarl.seeds import derive_seed
from muarl.spec import Located, RunSpec
from muarl.spec.model import TrainedModelSpec
from muarl.suite import AnyDomain
from muarl.synth.demonstrations import PHASE as COLD_START
from muarl.train.at_work import RunAtWork, UserAtWork
from muarl.train.began_with import of_own_seed
from muarl.train.crew import RankCrew, in_thread
from muarl.train.engines import (
    open_engine,
    open_user_engine,
    require_sampler,
    shared_prompts,
)
from muarl.train.evaluation import evaluate, find_floor
from muarl.train.iterations import iterate
from muarl.train.models import open_model, open_user_model, save_with_tokenizer
from muarl.train.overlapping import own_up
from muarl.train.progress import Progress
from muarl.train.rank_folder import collect, remove_own
from muarl.train.ready import refuse_no_room
from muarl.train.run_domain import ready_domain
from muarl.train.run_folder import RunFolder
from muarl.train.run_loop import loop_of
from muarl.train.stage import refuse_lost_checkpoint, stage_of
from muarl.train.supervision import supervise, supervise_user
from muarl.train.user_learning import open_user_learning

_ADAPTERS, _HER_ADAPTERS = "adapters", "adapters of the user"
"""What the adapters of policy and user are drawn for."""


async def train(
    located: Located[RunSpec],
    folder: RunFolder,
    progress: Progress,
    stop: StopSignal,
    domain: AnyDomain | None = None,
    observation: Observation | None = None,
    ranks: Ranks = ALONE,
) -> None:
    """Carry a run to its end, from wherever its folder says it is.

    Args:
        located: The run file.
        folder: Where everything goes.
        progress: Told how far it is.
        stop: Drains on request.
        domain: The run's, where it was loaded already.
        observation: Told what happens to dialogues; its figures go into the metrics. The caller
            opens `observation.running()`.
        ranks: Who carry the run out together; each calls, with the folder as it has it.

    Raises:
        Interrupted: `stop` was requested; the run can be resumed.
        SetupError: The run was begun with another domain, or the machine cannot sample it.
    """
    run = located.spec
    domain, loop = domain or await ready_domain(located), loop_of(located)
    with ExitStack() as stack:
        if ranks.is_first:
            collect(folder)
            journal = stack.enter_context(JournalWriter(folder.journal))
        await in_thread(ranks.meet)  # the run's journal is there now, with all that was played
        if not ranks.is_first:
            journal = stack.enter_context(JournalWriter(folder.own_journal))
        refuse_lost_checkpoint(folder.checkpoint, run.checkpoint.every, folder.lines())
        done = _done(folder, run.seed)
        refuse_another_domain(domain, done.values())
        progress.phase("model", 1)
        model, renderer = await _ready_model(located, domain, loop, folder, ranks)
        prompts = await shared_prompts(domain, renderer)
        refuse_no_room(located, prompts)
        require_sampler(run.engine, run, run.rollout.context_tokens, model, ranks)
        user = await _user_at_work(domain, located, loop, folder)
        if user is not None:
            require_sampler(user.spec.engine, run, user.spec.context_tokens, user.model)
        own_up(located, domain, folder, progress)
        for kind in renderer.forks():
            progress.note(f"the chat template rewrites history after a {kind} turn: samples fork")
        await _go(
            RunAtWork(
                run=run,
                domain=domain,
                folder=folder,
                journal=journal,
                done=done,
                model=model,
                renderer=renderer,
                prompts=prompts,
                progress=progress,
                stop=stop,
                observation=observation or Observation(),
                fuse=Fuse(run.rollout.max_fault_rate, run.rollout.concurrency),
                user=user,
                ranks=ranks,
                crew=None if ranks.alone else RankCrew(ranks, journal, done),
                home=located.path.parent,
                loop=loop,
            )
        )
    if not ranks.is_first:
        remove_own([folder.own_journal])


async def _ready_model(
    located: Located[RunSpec],
    domain: AnyDomain,
    loop: AgentLoop | None,
    folder: RunFolder,
    ranks: Ranks,
) -> tuple[PreTrainedModel, Renderer]:
    """The policy's model, where it is trained and each rank with its share, and its renderer."""
    run = located.spec

    async def opened() -> tuple[PreTrainedModel, Renderer]:
        beginning = _beginning(
            run.model, folder.checkpoint, folder.model, folder.base, folder.cold_model
        )
        return await open_model(domain, located, beginning, loop)

    if ranks.is_first:  # makes what is not there yet
        model, renderer = await opened()
    await in_thread(ranks.meet)
    if not ranks.is_first:
        model, renderer = await opened()
    await in_thread(ranks.meet)
    moved(model, device_for(run.model.device))
    if run.model.lora is not None:
        add_adapters(model, run.model.lora, seed=derive_seed(run.seed, _ADAPTERS))
    shard(model, ranks)
    return model, renderer


async def _user_at_work(
    domain: AnyDomain, located: Located[RunSpec], loop: AgentLoop | None, folder: RunFolder
) -> UserAtWork | None:
    run = located.spec
    spec = run.user_model
    if spec is None:
        return None
    beginning = _beginning(
        spec.model, folder.user_checkpoint, folder.user_model, folder.user_base, folder.cold_user
    )
    model, renderer = await open_user_model(domain, located, beginning, loop)
    moved(model, device_for(run.model.device))
    if spec.model.lora is not None:
        add_adapters(model, spec.model.lora, seed=derive_seed(run.seed, _HER_ADAPTERS))
    return UserAtWork(spec, model, renderer, UserModel(renderer, spec.context_tokens))


def _done(folder: RunFolder, seed: int) -> dict[EpisodeKey, Episode]:
    """What need not be played again.

    A fault of last time is: what caused it may have been mended. But not one of an iteration that was
    learned from, which has to be learned from again as it was.
    """
    learned_from = {cohort for record in folder.batches.read() for cohort, *_ in record.groups}
    return {
        episode.key: episode
        for episode in of_own_seed(folder.journal, read_journal(folder.journal), {seed})
        if not episode.outcome.is_fault
        or (episode.key.trains and episode.key.iteration in learned_from)
    }


async def _go(at: RunAtWork) -> None:
    """Every stage; each begins where the folder says."""
    await supervise_user(at)
    async with AsyncExitStack() as held:
        users = None
        cold_user = at.folder.cold_user
        if at.user is not None:
            _keep_cold(at.user.model, at.user.renderer, at.folder.user_checkpoint, cold_user)
            _begin_adapters(at.user.model, at.folder.user_checkpoint, at.run.seed, _HER_ADAPTERS)
            opened = open_user_engine(at.run, at.user.model, cold_user)
            users = await held.enter_async_context(opened)
            at.user.plays.policies[:] = [users.policy]
        await find_floor(at)
        await supervise(at)
        cold_model = at.folder.cold_model
        _keep_cold(at.model, at.renderer, at.folder.checkpoint, cold_model, at.ranks)
        _begin_adapters(at.model, at.folder.checkpoint, at.run.seed, _ADAPTERS)
        engine = await held.enter_async_context(
            open_engine(at.run, at.model, cold_model, at.prompts, at.ranks)
        )
        await evaluate(at, engine, "cold")
        if at.run.grpo is not None:
            async with open_user_learning(at, users, cold_user) as user:
                await iterate(at, engine, cold_model, user)
            await evaluate(at, engine, "final")
    save_with_tokenizer(at.model, at.renderer.tokenizer, at.folder.model, at.ranks)
    if at.user is not None:
        save_with_tokenizer(at.user.model, at.user.renderer.tokenizer, at.folder.user_model)


def _beginning(
    spec: TrainedModelSpec, checkpoint: Path, newest: Path, base: Path, cold: Path
) -> Path:
    """The folder of the weights that the newest checkpoint goes on from; made if it is missing.

    A checkpoint holds all weights, or, with adapters, only those: which stand on the weights that
    their stage began with.

    Args:
        spec: Whether it has adapters.
        checkpoint: Its checkpoints.
        newest: Holds the newest weights.
        base: With adapters, those that the run began with.
        cold: Those that GRPO began with.

    Raises:
        RecordError: GRPO has begun, and what it began with is gone.
    """
    if spec.lora is None:
        return newest
    if stage_of(checkpoint)[0] == COLD_START:
        return base
    _require_cold(cold)
    return cold


def _begin_adapters(model: PreTrainedModel, checkpoint: Path, run_seed: int, name: str) -> None:
    """Before GRPO, put what the cold start learned into the weights: it has adapters of its own."""
    if has_adapters(model) and stage_of(checkpoint)[0] == COLD_START:
        merge_adapters(model, seed=derive_seed(run_seed, name))


def _keep_cold(
    model: PreTrainedModel,
    renderer: Renderer,
    checkpoint: Path,
    path: Path,
    ranks: Ranks = ALONE,
) -> None:
    """Write the folder of the weights that GRPO begins with, and is measured against.

    Until GRPO has a checkpoint they are the present ones, and the folder is written again.

    Raises:
        RecordError: It is gone, and the present weights are others already.
    """
    stage, _ = stage_of(checkpoint)
    if stage == COLD_START:
        save_with_tokenizer(model, renderer.tokenizer, path, ranks)
    else:
        _require_cold(path)


def _require_cold(path: Path) -> None:
    if not path.exists():
        raise RecordError(
            f"{path} is gone: GRPO has begun and needs the weights it began with. {RESTORE}"
        )
