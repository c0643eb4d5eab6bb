"""From tasks to dialogues: which persona speaks, which seeds are drawn, who plays the policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from muarl.dialogue import Dialogue
from muarl.domain import Domain
from muarl.policy import Policy
from muarl.record import Episode, EpisodeKey
from muarl.render import Renderer
from muarl.scheduler.admission import EpisodePlan
from muarl.seeds import derive_seed, generator
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


class DialogueRunner:
    """Runs planned dialogues of one domain: what the scheduler calls.

    Within a group the persona is the same; the user's and the policy's draws differ.
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
    ) -> None:
        self._domain = domain
        self._tasks = {task.id: task for task in tasks}
        self._renderer = renderer
        self._limits = limits
        self._user = user
        self._policy_for = policy_for
        self._temperature = temperature

    async def __call__(self, plan: EpisodePlan) -> Episode:
        key = plan.key
        task = self._tasks[key.task_id]
        persona = self._domain.draw_persona(
            task, generator(key.run_seed, key.phase, key.iteration, key.task_id, "persona")
        )
        user_seed = derive_seed(
            key.run_seed, key.phase, key.iteration, key.task_id, key.sample, "user"
        )
        dialogue = Dialogue(
            key=key,
            domain=self._domain,
            task=task,
            persona=persona,
            policy=self._policy_for(task, key),
            user=self._domain.user(self._user, task, persona, user_seed),
            renderer=self._renderer,
            limits=self._limits,
            temperature=self._temperature,
        )
        return await dialogue.run()
