"""From tasks to dialogues: which persona speaks, which seeds are drawn, who plays the policy."""

from __future__ import annotations

import math
import random
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from muarl.dialogue import Dialogue, episode_seed
from muarl.errors import EpisodeError
from muarl.gate import Gate
from muarl.model_user import ModelSpeaker, ModelUser, UserModel
from muarl.own_dialogue import LedDialogue
from muarl.own_loop import AgentLoop
from muarl.perturb import Perturbations
from muarl.policy import Loaded, Policy
from muarl.record import Episode, EpisodeKey
from muarl.render import Renderer
from muarl.scheduler.admission import EpisodePlan
from muarl.scheduler.observer import Observer
from muarl.scheduler.window import ReadLoad
from muarl.seeds import generator
from muarl.spec import PerturbSpec, TaskSpec
from muarl.spec.run import RolloutSpec
from muarl.spec.tools import CommandToolsSpec
from muarl.spec.user import UserKindSpec, UserSpec
from muarl.suite import AnyDomain
from muarl.user import User
from muarl.waits import Gates

if TYPE_CHECKING:
    from muarl.gateway.server import Gateway

_MAX_PROCESSES = 32
"""A tool server of tens of megabytes for each live dialogue: a gigabyte or two."""

PolicyFor = Callable[[TaskSpec, EpisodeKey], Policy]
"""Who speaks as the policy in one dialogue."""


def load_of(policy: Policy) -> ReadLoad | None:
    """How to read the load of a policy's engine; None where the policy cannot say."""
    return policy.load if isinstance(policy, Loaded) else None


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


def _new_gateway() -> Gateway:
    from muarl.gateway.server import (
        Gateway,  # what it is made of is loaded only where it may be needed
    )

    return Gateway()


class DialogueRunner:
    """Runs planned dialogues: what the scheduler calls.

    Within a group the policy's draws differ, and of the users what `limits.vary` says: who they are,
    what they draw, or nothing. Draws differ between attempts too. What they talk with goes through
    `observer`, which may watch it at work.
    """

    def __init__(
        self,
        *,
        domain: AnyDomain,
        tasks: Sequence[TaskSpec],
        renderer: Renderer,
        limits: RolloutSpec,
        user: UserSpec,
        policy_for: PolicyFor,
        temperature: float | None = None,
        observer: Observer | None = None,
        load: ReadLoad | None = None,
        users_drawn_in: str | None = None,
        perturb: PerturbSpec | None = None,
        user_model: UserModel | None = None,
        loop: AgentLoop | None = None,
    ) -> None:
        """Prepare.

        Args:
            domain: The domain, or several.
            tasks: Those whose dialogues may be planned.
            renderer: Of the policies' model.
            limits: Caps, deadlines, and how much goes on at once.
            user: Who plays the user.
            policy_for: Who speaks as the policy.
            temperature: None takes that of `limits`.
            observer: Told what happens.
            load: Reads how busy the policies' engine is; see `load_of`.
            users_drawn_in: Phase by whose keys users are drawn, so that in several phases the same
                ones are met; None: each episode's own.
            perturb: How often users and tools are perturbed.
            user_model: Plays those users who are a `model`.
            loop: An agent's own loop, which leads every dialogue; None: muarl's.
        """
        self._domain = domain
        self._tasks = {task.id: task for task in tasks}
        self._renderer = renderer
        self._limits = limits
        self._user = user
        self._policy_for = policy_for
        self._temperature = temperature
        self._observer = observer or Observer()
        self.load = load
        self._users_drawn_in = users_drawn_in
        self._user_model = user_model
        self._gateway = None if loop is None else _new_gateway()
        self._dialogue = Dialogue if loop is None else partial(LedDialogue, loop, self._gateway)
        self._perturb = perturb if perturb is not None and perturb.rates else None
        at_once = limits.at_once
        self._gates = Gates(Gate(at_once.messages), Gate(at_once.replies), Gate(at_once.calls))
        self._live: dict[EpisodeKey, Dialogue] = {}

    @property
    def max_live(self) -> int | None:
        """Dialogues that may be live at once for their sessions' sake; None for any number."""
        given = self._limits.at_once.sessions
        if given is None and any(
            isinstance(server, CommandToolsSpec) and not server.stateless
            for domain in self._domain.members
            for server in domain.spec.all_servers
        ):
            return _MAX_PROCESSES
        return given

    @asynccontextmanager
    async def sharing(self) -> AsyncIterator[None]:
        """As `Domain.sharing`; agents with loops of their own share a gateway likewise."""
        async with AsyncExitStack() as held:
            await held.enter_async_context(self._domain.sharing())
            if self._gateway is not None:
                await held.enter_async_context(self._gateway)
            yield

    async def __call__(self, plan: EpisodePlan) -> Episode:
        key, observer = plan.key, self._observer
        task, domain = self._tasks[key.task_id], self._domain.of(key.task_id)
        persona = domain.draw_persona(task, self._who_is_she(key, "persona"))
        who = self._domain.user_for(task.id, self._user)
        user_name, kind = who.draw(self._who_is_she(key, "user of the pool"))
        user_seed = episode_seed(self._whose_draws(key), "user", plan.attempt)
        speaker = self._speaker(kind, key)
        user: User = domain.user(kind, task, persona, user_seed, speaker)
        if speaker is not None:
            user = ModelUser(user, speaker)
        server = domain.server
        perturbations = self._perturbations(plan, task)
        if perturbations is not None:
            user, server = perturbations.user(user), perturbations.server(server)
        device = domain.user_server
        dialogue = self._live[key] = self._dialogue(
            key=key,
            domain=domain,
            task=task,
            persona=persona,
            policy=observer.policy(plan, self._policy_for(task, key)),
            user=observer.user(plan, user),
            user_name=user_name,
            speaker=speaker,
            renderer=self._renderer,
            limits=self._limits,
            temperature=self._temperature,
            attempt=plan.attempt,
            server=observer.server(plan, server),
            user_server=None if device is None else observer.server(plan, device),
            gates=self._gates,
            perturbations=perturbations,
        )
        episode = await dialogue.run()
        # Not when it is cut off from outside: then `fault_episode` asks it how far it came.
        del self._live[key]
        return episode

    def fault_episode(self, plan: EpisodePlan, error: EpisodeError) -> Episode:
        """The episode of a dialogue that was cut off from outside."""
        return self._live.pop(plan.key).broken_off(error)

    def _speaker(self, kind: UserKindSpec, key: EpisodeKey) -> ModelSpeaker | None:
        """Samples the user's messages, if she is a model."""
        if kind.model is None:
            return None
        model = self._user_model
        assert model is not None  # refused before the run: `muarl.spec.run_references`
        return ModelSpeaker(
            self._who_is_she(key, "user model").choice(model.policies),
            model.renderer,
            dialogue=str(key),
            context_tokens=model.context_tokens,
        )

    def _perturbations(self, plan: EpisodePlan, task: TaskSpec) -> Perturbations | None:
        """What disturbs a dialogue.

        The tools it is offered are the same in the whole group; what happens differs between its
        dialogues, if the users' draws do.
        """
        if self._perturb is None:
            return None
        return Perturbations(
            self._perturb,
            task,
            offer_seed=episode_seed(msgspec.structs.replace(plan.key, sample=0), "offered tools"),
            seed=episode_seed(self._whose_draws(plan.key), "perturbations", plan.attempt),
        )

    def _who_is_she(self, key: EpisodeKey, what: str) -> random.Random:
        """Draws who the user is: for each group, or for each of its episodes."""
        phase = self._users_drawn_in or key.phase
        parts = (key.run_seed, phase, key.iteration, key.task_id, what)
        return (
            generator(*parts, key.sample) if self._limits.vary == "persona" else generator(*parts)
        )

    def _whose_draws(self, key: EpisodeKey) -> EpisodeKey:
        """The episode whose user's draws these are: its own, or those of the first of the group."""
        sample = 0 if self._limits.vary == "nothing" else key.sample
        phase = self._users_drawn_in or key.phase
        return msgspec.structs.replace(key, phase=phase, sample=sample)
