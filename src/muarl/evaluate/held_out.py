"""Evaluate a policy, or a trivial agent, on tasks it was not trained on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from muarl.data.expert import ExpertPolicy
from muarl.data.trivial import trivial_agent
from muarl.errors import Problem, SpecError
from muarl.evaluate.seen import Seen, Tasks, named, same_tasks, seen_tasks
from muarl.model_user import UserModel
from muarl.own_loop import AgentLoop
from muarl.policy import Policy
from muarl.record import Episode, EpisodeKey
from muarl.render import Renderer, in_convention
from muarl.scheduler import Group, Observer
from muarl.scheduler.crew import Crew
from muarl.scheduler.dialogues import DialogueRunner, PolicyFor, load_of, spread_keys
from muarl.scheduler.journal import Journal
from muarl.scheduler.rounds import StopSignal, bounds, run_round
from muarl.scheduler.window import ReadLoad
from muarl.seeds import generator
from muarl.spec import PerturbSpec, RunSpec, TaskSpec
from muarl.spec.run import EvalSpec
from muarl.suite import AnyDomain


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldOut:
    """A run's evaluation tasks, to be played by one policy or another.

    With more dialogues than tasks, each task is tried several times, as evenly as it goes.

    Attributes:
        domain: The domain.
        run: Which tasks, how many episodes, users and limits.
        renderer: Of the policies.
        journal: Takes every episode.
        done: Episodes that need not be played again.
        stop: Drains on request.
        on_group: Told each task's episodes.
        observer: Told what happens to dialogues.
        user_model: Plays those users who are a `model`.
        crew: Processes that share out the dialogues; see `run_round`.
        loop: An agent's own loop, which leads the policy's dialogues; None: muarl's.
    """

    domain: AnyDomain
    run: RunSpec
    renderer: Renderer
    journal: Journal
    done: Mapping[EpisodeKey, Episode] | None = None
    stop: StopSignal | None = None
    on_group: Callable[[Group], None] = lambda _group: None
    observer: Observer | None = None
    user_model: UserModel | None = None
    crew: Crew | None = None
    loop: AgentLoop | None = None

    async def by_policy(self, policy: Policy, *, phase: str, temperature: float) -> list[Episode]:
        """One policy at one temperature."""
        return await self.by(
            lambda _task, _key: policy,
            phase=f"eval:{phase}:T{temperature:g}",
            temperature=temperature,
            load=load_of(policy),
        )

    async def by_trivial(self, name: str) -> list[Episode]:
        """A trivial agent, in muarl's loop: the floor under every score."""
        tools = {one.located.path: await one.tools() for one in self.domain.members}

        def agent(task: TaskSpec, key: EpisodeKey) -> Policy:
            rng, own = generator(key.run_seed, str(key), name), self.domain.of(task.id)
            agent = trivial_agent(name, own, tools[own.located.path], rng)
            return ExpertPolicy(agent, in_convention(self.renderer, own.convention))

        return await replace(self, loop=None).by(agent, phase=f"floor:{name}")

    async def by(
        self,
        policy_for: PolicyFor,
        *,
        phase: str,
        temperature: float = 0.0,
        load: ReadLoad | None = None,
        perturb: PerturbSpec | None = None,
    ) -> list[Episode]:
        """Whoever `policy_for` names for a task and an episode.

        Args:
            policy_for: Who plays.
            phase: Name of this use of the tasks.
            temperature: Of the policy.
            load: Reads the load of its engine.
            perturb: How often users and tools are perturbed.
        """
        tasks = evaluation_tasks(self.domain, self.run)
        runner = DialogueRunner(
            domain=self.domain,
            tasks=tasks,
            renderer=self.renderer,
            limits=self.run.rollout,
            user=self.run.eval_user,
            user_model=self.user_model,
            policy_for=policy_for,
            temperature=temperature,
            observer=self.observer,
            load=load,
            perturb=perturb,
            loop=self.loop,
        )
        groups = await run_round(
            spread_keys(tasks, self.run.eval.dialogues, run_seed=self.run.seed, phase=phase),
            runner,
            limits=bounds(self.run.rollout),
            journal=self.journal,
            done=self.done,
            stop=self.stop,
            on_group=self.on_group,
            observer=self.observer,
            crew=self.crew,
        )
        return [episode for group in groups for episode in group.episodes]


def training_splits(run: RunSpec) -> set[str]:
    """Names of the splits that a run trains on, or chooses weights on."""
    chosen = None if run.grpo is None else run.grpo.validation
    parts = [part for _, part in run.trained_on()]
    return {part.split for part in (*parts, chosen) if part is not None}


ProblemAt = Callable[[str], Problem]
"""Makes a problem of what is wrong with the tasks of an evaluation, where they were chosen."""


def evaluation_tasks(
    domain: AnyDomain, run: RunSpec, trained: Collection[str] = (), *, at: ProblemAt | None = None
) -> list[TaskSpec]:
    """The tasks an evaluation plays; disjoint from the training tasks, or it refuses (law L10).

    Args:
        domain: The domain.
        run: Says which tasks, which are trained on, and whether an overlap is accepted.
        trained: Further splits that the policy was trained on, in an earlier run.
        at: Where the tasks were chosen; None: it is not known, and the domain is named.

    Raises:
        SpecError: A task is in the training split too, by id or by what is to be done, and the run
            accepts no overlap.
    """
    training = sorted(training_splits(run) | set(trained))
    practised = [task for split in training for task in domain.tasks(split)]
    refuse_same(domain, run, Tasks(domain, practised), training, at=at)
    return list(domain.tasks(run.eval.split)[: run.eval.episodes])


def refuse_same(
    domain: AnyDomain,
    run: RunSpec,
    practised: Tasks,
    training: list[str],
    *,
    at: ProblemAt | None = None,
) -> None:
    """Refuse an evaluation on tasks that are trained on, unless the run accepts it.

    Args:
        domain: That is evaluated.
        run: Says which of its tasks.
        practised: What is trained on.
        training: Names of its splits.
        at: As of `evaluation_tasks`.

    Raises:
        SpecError: Names one of the tasks.
    """
    if run.overlap.accepted is not None:
        return
    evaluated = Tasks(domain, domain.tasks(run.eval.split))
    if shared := same_tasks(evaluated, practised):
        message = (
            f"split {run.eval.split!r} shares {len(shared)} tasks with what is trained on "
            f"({', '.join(training)}), such as {shared[0]!r}; evaluate on another split"
        )
        raise SpecError([_problem(domain, message, at)])


def _problem(domain: AnyDomain, message: str, at: ProblemAt | None) -> Problem:
    return domain.located.problem(("tasks",), message) if at is None else at(message)


def seen_in_run(domain: AnyDomain, run: RunSpec, trained: Collection[str] = ()) -> Seen:
    """What of a run's evaluation is trained on; see `evaluation_tasks` for the arguments."""
    splits = sorted(training_splits(run) | set(trained))
    practised = [task for split in splits for task in domain.tasks(split)]
    evaluated = domain.tasks(run.eval.split)[: run.eval.episodes]
    return seen_tasks(Tasks(domain, evaluated), Tasks(domain, practised))


def refuse_near_duplicates(
    domain: AnyDomain, run: RunSpec, trained: Collection[str] = (), *, at: ProblemAt | None = None
) -> None:
    """Refuse an evaluation on tasks that are nearly the same as some that are trained on (law L10).

    Slower than `evaluation_tasks`, which finds what is exactly the same: asked once, before a run.

    Args:
        domain: The domain.
        run: Says which tasks are evaluated, and which are trained on.
        trained: Further splits that the policy was trained on, in an earlier run.
        at: As of `evaluation_tasks`.

    Raises:
        SpecError: Names the first pairs.
    """
    if run.overlap.accepted is None:
        refuse_near(domain, run, seen_in_run(domain, run, trained), at=at)


def refuse_near(
    domain: AnyDomain, run: RunSpec, seen: Seen, *, at: ProblemAt | None = None
) -> None:
    """Refuse an evaluation some of whose tasks are nearly the same as ones that are trained on.

    Raises:
        SpecError: Names the first pairs.
    """
    if seen:
        message = (
            f"split {run.eval.split!r} has {len(seen.pairs)} tasks nearly the same as some that are "
            f"trained on ({named(seen.pairs)}); evaluate on other tasks"
        )
        raise SpecError([_problem(domain, message, at)])


def validated(run: RunSpec) -> RunSpec | None:
    """The run as it evaluates the tasks of its validation; None if it has none."""
    chosen = None if run.grpo is None else run.grpo.validation
    if run.grpo is None or chosen is None:
        return None
    plays = EvalSpec(
        split=chosen.split,
        episodes=chosen.episodes,
        temperatures=[chosen.temperature],
        user=run.eval.user,
    )
    grpo = run.grpo.model_copy(update={"validation": None})
    return run.model_copy(update={"eval": plays, "grpo": grpo})
