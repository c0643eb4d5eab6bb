"""Evaluate a policy, or a trivial agent, on tasks it was not trained on."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from muarl.data.expert import ExpertPolicy
from muarl.data.trivial import trivial_agent
from muarl.domain import Domain
from muarl.errors import SpecError
from muarl.policy import Policy
from muarl.record import Episode, EpisodeKey
from muarl.render import Renderer
from muarl.scheduler import Group
from muarl.scheduler.dialogues import DialogueRunner, PolicyFor, spread_keys
from muarl.scheduler.rounds import StopSignal, bounds, run_round
from muarl.scheduler.scheduler import Journal
from muarl.seeds import generator
from muarl.spec import RunSpec, TaskSpec


async def evaluate_policy(
    domain: Domain,
    run: RunSpec,
    renderer: Renderer,
    policy: Policy,
    *,
    phase: str,
    temperature: float,
    journal: Journal,
    done: Mapping[EpisodeKey, Episode] | None = None,
    stop: StopSignal | None = None,
    on_group: Callable[[Group], None] = lambda _group: None,
) -> list[Episode]:
    """Play the run's evaluation tasks with one policy at one temperature.

    With more episodes than tasks, each task is tried several times, as evenly as it goes.
    """
    return await play_tasks(
        domain,
        run,
        renderer,
        lambda _task, _key: policy,
        phase=f"eval:{phase}:T{temperature:g}",
        temperature=temperature,
        journal=journal,
        done=done,
        stop=stop,
        on_group=on_group,
    )


async def evaluate_trivial(
    domain: Domain,
    run: RunSpec,
    renderer: Renderer,
    name: str,
    *,
    journal: Journal,
    done: Mapping[EpisodeKey, Episode] | None = None,
    stop: StopSignal | None = None,
) -> list[Episode]:
    """Play the run's evaluation tasks with a trivial agent: the floor under every score."""
    tools = await domain.tools()

    def agent(_task: TaskSpec, key: EpisodeKey) -> Policy:
        rng = generator(key.run_seed, str(key), name)
        return ExpertPolicy(trivial_agent(name, domain, tools, rng), renderer)

    return await play_tasks(
        domain,
        run,
        renderer,
        agent,
        phase=f"floor:{name}",
        temperature=0.0,
        journal=journal,
        done=done,
        stop=stop,
    )


def evaluation_tasks(domain: Domain, run: RunSpec) -> list[TaskSpec]:
    """The tasks an evaluation plays; disjoint from the training tasks, or it refuses (law L10).

    Raises:
        SpecError: A task is in the training split too, by id or by content.
    """
    tasks = domain.tasks(run.eval.split)
    training = {
        s for s in (run.grpo and run.grpo.split, run.cold_start and run.cold_start.split) if s
    }
    seen = {
        identity
        for split in training
        for task in domain.tasks(split)
        for identity in (task.id, _content(task))
    }
    shared = [task.id for task in tasks if {task.id, _content(task)} & seen]
    if shared:
        message = (
            f"split {run.eval.split!r} shares {len(shared)} tasks with what is trained on "
            f"({', '.join(sorted(training))}), such as {shared[0]!r}; evaluate on another split"
        )
        raise SpecError([domain.located.problem(("tasks",), message)])
    return list(tasks[: run.eval.episodes])


def _content(task: TaskSpec) -> str:
    """What a task is made of, whatever it is called and wherever it stands."""
    return task.model_dump_json(exclude={"id", "split"})


async def play_tasks(
    domain: Domain,
    run: RunSpec,
    renderer: Renderer,
    policy_for: PolicyFor,
    *,
    phase: str,
    temperature: float,
    journal: Journal,
    done: Mapping[EpisodeKey, Episode] | None = None,
    stop: StopSignal | None = None,
    on_group: Callable[[Group], None] = lambda _group: None,
) -> list[Episode]:
    """Play the run's evaluation tasks with whoever `policy_for` names."""
    tasks = evaluation_tasks(domain, run)
    keys = spread_keys(tasks, run.eval.episodes, run_seed=run.seed, phase=phase)
    runner = DialogueRunner(
        domain=domain,
        tasks=tasks,
        renderer=renderer,
        limits=run.rollout,
        user=run.user,
        policy_for=policy_for,
        temperature=temperature,
    )
    groups = await run_round(
        keys,
        runner,
        limits=bounds(run.rollout),
        journal=journal,
        done=done,
        stop=stop,
        on_group=on_group,
    )
    return [episode for group in groups for episode in group.episodes]
