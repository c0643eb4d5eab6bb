"""Expert dialogues for a cold start: played on the real tools and users, and verified."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import structs

from muarl.data.expert import ExpertPolicy
from muarl.errors import TrainError
from muarl.own_loop import AgentLoop
from muarl.record import Episode, EpisodeKey
from muarl.render import Renderer, in_convention
from muarl.scheduler import Group, Observer
from muarl.scheduler.crew import Crew
from muarl.scheduler.dialogues import DialogueRunner, spread_keys
from muarl.scheduler.journal import Journal, Unjournaled
from muarl.scheduler.rounds import StopSignal, bounds, run_round
from muarl.seeds import generator
from muarl.spec import TaskSpec
from muarl.spec.model import ColdStartSpec
from muarl.spec.run import RolloutSpec
from muarl.suite import AnyDomain, one_of_each
from muarl.synth.imported import imported
from muarl.synth.stages import Replays
from muarl.synth.verify import Verdict, Verifier

PHASE = "cold_start"
USER_PHASE = "user_cold_start"
"""Of dialogues whose user is learned from."""


async def demonstrations(
    domain: AnyDomain,
    renderer: Renderer,
    spec: ColdStartSpec,
    limits: RolloutSpec,
    *,
    run_seed: int,
    home: Path = Path(),
    count: int | None = None,
    phase: str = PHASE,
    journal: Journal | None = None,
    done: Mapping[EpisodeKey, Episode] | None = None,
    stop: StopSignal | None = None,
    on_episode: Callable[[int], None] = lambda _done: None,
    observer: Observer | None = None,
    crew: Crew | None = None,
    loop: AgentLoop | None = None,
) -> list[Episode]:
    """Play expert dialogues with the spec's imperfections and keep those that stand `spec.verify`.

    Tasks are gone through in turn, as often as it takes. Dialogues that ended in a fault or do not
    replay are left out; more than one in a hundred of those is an error. What else is asked of them
    may leave out any number, but not all.

    Where the spec names a file, its dialogues are taken instead; `home` is the folder of the run's file.
    Where an agent's own `loop` leads a run's dialogues, it leads these too, with the expert as its model.

    Raises:
        SpecError: The domain has no expert, or the expert does not know an imperfection.
        TrainError: Too many had to be left out; says why the first was.
    """
    count = spec.episodes if count is None else count
    if spec.file is not None:
        return imported(
            home / spec.file,
            renderer,
            run_seed=run_seed,
            phase=phase,
            count=count,
            context_tokens=limits.context_tokens,
        )
    tasks = domain.tasks(spec.split)
    keys = spread_keys(tasks, count, run_seed=run_seed, phase=phase)
    verifier = Verifier(domain, spec.verify)

    def expert(task: TaskSpec, key: EpisodeKey) -> ExpertPolicy:
        rng, own = generator(str(key), run_seed, "expert"), domain.of(task.id)
        agent = own.expert(task, spec.imperfections, rng)
        return ExpertPolicy(agent, in_convention(renderer, own.convention))

    # What is wrong with the expert or its imperfections is said once, not by each dialogue.
    for task in one_of_each(domain, tasks):
        domain.of(task.id).expert(task, spec.imperfections, generator("probe"))

    runner = DialogueRunner(
        domain=domain,
        tasks=tasks,
        renderer=renderer,
        limits=limits,
        user=spec.user,
        policy_for=expert,
        observer=observer,
        loop=loop,
    )
    played = 0

    def tell(group: Group) -> None:
        nonlocal played
        played += len(group.episodes)
        on_episode(played)

    groups = await run_round(
        keys,
        runner,
        limits=structs.replace(bounds(limits), attempts=1, concurrency=min(limits.concurrency, 32)),
        journal=journal or Unjournaled(),
        done=done,
        stop=stop,
        on_group=tell,
        observer=observer,
        crew=crew,
    )
    kept: list[Episode] = []
    lost: list[Verdict] = []
    untrue: list[Verdict] = []
    async for episode, verdict in verifier.verdicts(e for group in groups for e in group.episodes):
        if verdict.kept:
            kept.append(episode)
        elif episode.outcome.is_fault or verdict.stage == Replays.name:
            untrue.append(verdict)
        else:
            lost.append(verdict)
    if len(untrue) * 100 > count:
        first = f"{untrue[0].key}: {untrue[0].reason}"
        raise TrainError(
            f"{len(untrue)} of {count} expert dialogues could not be verified; the first: {first}"
        )
    if not kept:
        first = f"{lost[0].key}, {lost[0].stage}: {lost[0].reason}"
        raise TrainError(
            f"none of {count} expert dialogues stands what `verify` asks for; the first: {first}"
        )
    return kept
