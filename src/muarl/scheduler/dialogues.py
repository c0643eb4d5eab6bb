"""From tasks to dialogues: which persona speaks, which seeds are drawn, who plays the policy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from muarl.dialogue import Dialogue, episode_seed
from muarl.domain import Domain
from muarl.errors import EpisodeError
from muarl.policy import Policy
from muarl.record import Episode, EpisodeKey, Outcome, UserReply
from muarl.render import Renderer
from muarl.scheduler.admission import EpisodePlan
from muarl.scheduler.observer import Observer
from muarl.seeds import generator
from muarl.spec import TaskSpec
from muarl.spec.run import RolloutSpec, UserSpec

PolicyFor = Callable[[TaskSpec, EpisodeKey], Policy]
"""Who speaks as the policy in one dialogue."""


def episode_keys(
    tasks: Iterable[TaskSpec], *, run_seed: int, phase: str, iteration: int = 0, group_size: int = 1
) -> list[EpisodeKey]:
    """Keys of a round of dialogues, group by group."""
    return [
        EpisodeKey(run_seed, phase, iteration, task.id, sample)
        for task in tasks
        for sample in range(group_size)
    ]


def spread_keys(
    tasks: Sequence[TaskSpec], count: int, *, run_seed: int, phase: str
) -> list[EpisodeKey]:
    """Keys of exactly `count` dialogues: each task in turn, as often as it takes.

    Example:
        Two tasks and three dialogues give the keys of a/0, a/1 and b/0.
    """
    rounds = math.ceil(count / len(tasks))
    place = {task.id: number for number, task in enumerate(tasks)}
    keys = episode_keys(tasks, run_seed=run_seed, phase=phase, group_size=rounds)
    chosen = sorted(keys, key=lambda key: key.sample)[:count]
    return sorted(chosen, key=lambda key: place[key.task_id])


class DialogueRunner:
    """Runs planned dialogues of one domain: what the scheduler calls.

    Within a group the persona is the same; the user's and the policy's draws differ. They differ
    between attempts too. What they talk with goes through `observer`, which may watch it at work.
    """

    def __init__(
        self,
        *,
        domain: Domain,
        tasks: Sequence[TaskSpec],
        renderer: Renderer,
        limits: RolloutSpec,
        user: UserSpec,
        policy_for: PolicyFor,
        temperature: float | None = None,
        observer: Observer | None = None,
    ) -> None:
        self._domain = domain
        self._tasks = {task.id: task for task in tasks}
        self._renderer = renderer
        self._limits = limits
        self._user = user
        self._policy_for = policy_for
        self._temperature = temperature
        self._observer = observer or Observer()

    async def __call__(self, plan: EpisodePlan) -> Episode:
        key, observer = plan.key, self._observer
        task = self._tasks[key.task_id]
        persona = self._persona(key)
        user_seed = episode_seed(key, "user", plan.attempt)
        dialogue = Dialogue(
            key=key,
            domain=self._domain,
            task=task,
            persona=persona,
            policy=observer.policy(plan, self._policy_for(task, key)),
            user=observer.user(plan, self._domain.user(self._user, task, persona, user_seed)),
            renderer=self._renderer,
            limits=self._limits,
            temperature=self._temperature,
            attempt=plan.attempt,
            server=observer.server(plan, self._domain.server),
        )
        return await dialogue.run()

    def fault_episode(self, plan: EpisodePlan, error: EpisodeError) -> Episode:
        """The episode of a dialogue that was cut off from outside: all that is known without it."""
        task = self._tasks[plan.key.task_id]
        return Episode(
            key=plan.key,
            domain=self._domain.spec.id,
            persona=self._persona(plan.key),
            split=task.split,
            task_hash=task.situation_hash,
            system=self._domain.spec.rules,
            opening=UserReply(""),
            outcome=Outcome.INFRA_FAULT,
            fault=type(error).__name__,
            error=str(error),
        )

    def _persona(self, key: EpisodeKey) -> str:
        rng = generator(key.run_seed, key.phase, key.iteration, key.task_id, "persona")
        return self._domain.draw_persona(self._tasks[key.task_id], rng)
