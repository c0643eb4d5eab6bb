"""A domain at work: its spec, its world, its tool server, its tasks, its users."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from muarl.domain import content
from muarl.domain.base_world import base_world
from muarl.domain.expert import Agent, expert_of
from muarl.domain.servers import agent_server, device_server
from muarl.domain.sync import Sync, synchronisation
from muarl.domain.task_worlds import first_world, make_gold_calls
from muarl.domain.tasks import TaskSource
from muarl.environments import Environments, EnvironmentUser, Sides, environments_of
from muarl.messages import Message, ToolSpec
from muarl.python_folder import PythonFolder
from muarl.record import Turn, UserReply
from muarl.reward import EndpointJudges, Evidence, Judges, Verdict, judge
from muarl.spec import DomainSpec, Located, PredicateSpec, RewardFile, TaskSpec, load_domain_spec
from muarl.spec.calls import Who
from muarl.spec.environment import ENVIRONMENT
from muarl.spec.user import UserKindSpec, UserSpec
from muarl.text_calls import Convention, PythonCalls
from muarl.tools import ToolServer, ToolSession, sharing
from muarl.user import User
from muarl.user.build import UnfitUser, Users
from muarl.user.speaker import Speaker
from muarl.world import World


class Domain:
    """One loaded domain. Python that the spec names is imported on first use."""

    def __init__(self, located: Located[DomainSpec]) -> None:
        self.located = located
        self.spec = located.spec
        self.folder = located.path.parent
        self.python = PythonFolder(located, located.spec.id)
        self.judges: Judges = EndpointJudges()
        self._tasks: dict[str, tuple[TaskSpec, ...]] = {}
        self._gold: dict[str, World] = {}
        self._users = Users(located)
        steps = self.spec.device.sync if self.spec.device is not None else []
        self.sync: Sync | None = synchronisation(located, steps, self.python) if steps else None

    @property
    def name(self) -> str:
        """What reports call it."""
        return self.spec.id

    @property
    def members(self) -> tuple[Domain, ...]:
        """Itself: what is done for each domain of a suite is done for it."""
        return (self,)

    def of(self, task_id: str) -> Domain:
        """The domain that a task is of: itself; see `muarl.suite.Suite.of`."""
        del task_id
        return self

    def own_tasks(self, split: str) -> tuple[TaskSpec, ...]:
        """The tasks of a split; none where there is no such split."""
        return self.tasks(split) if split in self.splits else ()

    def weights(self, tasks: Sequence[TaskSpec]) -> list[float] | None:
        """How often training draws each of these tasks: all alike."""
        del tasks
        return None

    def user_for(self, task_id: str, user: UserSpec) -> UserSpec:
        """Who plays the user in a task, if elsewhere `user` does: she."""
        del task_id
        return user

    def row(self, task_id: str) -> str:
        """Under which name a task's success is summed up; "": under none."""
        del task_id
        return ""

    def origin(self, task_id: str) -> tuple[Path, str]:
        """A task beyond a run: the domain's folder, and what it is called there."""
        return self.folder.resolve(), task_id

    @cached_property
    def convention(self) -> Convention | None:
        """How the agent writes calls into its text; None where its chat template says how.

        Raises:
            SpecError: The code that says how cannot be imported.
        """
        text = self.spec.calls.text
        if text is None or text.convention is None:
            return None if text is None else PythonCalls()
        convention: Convention = self.python.load(text.convention, ("calls", "text", "convention"))
        return convention

    @cached_property
    def base(self) -> World:
        """The domain's world before any task."""
        return base_world(self.located, self.python)

    @cached_property
    def environments(self) -> Environments | None:
        """What answers in the place of user and tools; None where they do."""
        return None if self.spec.environment is None else environments_of(self.located, self.python)

    @cached_property
    def _environment(self) -> Sides | None:
        spec = self.spec.environment
        if self.environments is None or spec is None:
            return None
        return Sides(self.environments, spec.answer_s)

    def is_over(self, world: World) -> bool:
        """Whether an environment has ended the dialogue with this world."""
        return self.spec.environment is not None and world[ENVIRONMENT]["over"] is True

    def cut_short(self, world: World, message: Message) -> None:
        """Let an environment know of a dialogue's last message, which a cap cut and nobody answers."""
        if self._environment is not None:
            self._environment.cut_short(world, message)

    @cached_property
    def server(self) -> ToolServer:
        """The domain's tool server, or what an environment has in its place.

        Another may be put in its place, such as a faulty one in a test.
        """
        if self._environment is not None:
            return self._environment.agent
        return agent_server(self.located, self.python, self.sync)

    @cached_property
    def user_server(self) -> ToolServer | None:
        """The tool server of the user's own device, or of an environment; None where there is neither.

        Another may be put in its place, likewise.
        """
        if self._environment is not None:
            return self._environment.user
        if self.spec.device is None:
            return None
        return device_server(self.located, self.spec.device, self.python, self.sync)

    @asynccontextmanager
    async def sharing(self) -> AsyncIterator[None]:
        """Within the block dialogues share what they may of its servers, such as a pool's processes.

        Without it everything works the same, and each dialogue starts its own.
        """
        async with AsyncExitStack() as held:
            for server in (self.server, self.user_server):
                if server is not None:
                    await held.enter_async_context(sharing(server))
            yield

    async def tools(self) -> tuple[ToolSpec, ...]:
        """The tools its server offers; starts the server once, and ends it.

        Raises:
            ToolServerError: It does not start.
        """
        async with self.server.session(self.base.fork()) as session:
            return session.tools

    async def user_tools(self) -> tuple[ToolSpec, ...]:
        """The tools on the user's device, likewise; none where she has none."""
        if self.user_server is None:
            return ()
        async with self.user_server.session(self.base.fork()) as session:
            return session.tools

    @asynccontextmanager
    async def sides(self, world: World) -> AsyncIterator[dict[Who, ToolSession]]:
        """Sessions over a world for each side that may call: the agent's, and the user's if any.

        Raises:
            ToolServerError: A server does not start.
        """
        async with AsyncExitStack() as held:
            sides: dict[Who, ToolSession] = {}
            sides["agent"] = await held.enter_async_context(self.server.session(world))
            if self.user_server is not None:
                sides["user"] = await held.enter_async_context(self.user_server.session(world))
            yield sides

    @cached_property
    def task_source(self) -> TaskSource:
        """Where its tasks come from."""
        return TaskSource(self)

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits, in the spec's order."""
        return self.task_source.splits

    def tasks(self, split: str) -> tuple[TaskSpec, ...]:
        """The tasks of one split.

        Raises:
            SpecError: There is no such split, or the generator broke its contract.
        """
        if split not in self._tasks:
            self._tasks[split] = self.task_source.tasks(split)
        return self._tasks[split]

    async def content(self, splits: Iterable[str]) -> dict[str, Any]:
        """The table of what it is made of; see `muarl.domain.content.changes`.

        Args:
            splits: Whose tasks are in it.

        Raises:
            SpecError: World or tasks cannot be had, or the folder holds too much.
            ToolServerError: The tool server does not start.
        """
        tasks = {split: self.tasks(split) for split in splits}
        judged = [content.predicates_of(task) for of_split in tasks.values() for task in of_split]
        return {
            **self.shared_content,
            **content.plugins_of(self.spec, judged),
            **content.schemas_of(await self.tools(), await self.user_tools()),
            **content.tasks_of(tasks),
        }

    def content_hash(self, task: TaskSpec) -> str:
        """Hash of all that a dialogue of a task, and its reward, follow from in this domain.

        What lies outside the domain's folder is not in it, such as a package that its Python imports
        or a server at a URL, but the tools' schemas are in every episode. Of packages that provide
        plug-ins the version is in it.

        Raises:
            SpecError: The domain's folder holds too much.
        """
        plugins = content.plugins_of(content.predicates_of(task))
        return content.hashed([self._shared_hash, task.content_hash, *filter(None, [plugins])])

    @cached_property
    def shared_content(self) -> dict[str, Any]:
        """What of it all its dialogues follow from, whatever their task.

        Raises:
            SpecError: The domain's folder holds too much.
        """
        return content.content_of(self.located, self.base)

    @cached_property
    def _shared_hash(self) -> str:
        return content.hashed(self.shared_content)

    def world_for(self, task: TaskSpec) -> World:
        """A fresh world for one dialogue of a task, with both sides in step.

        Raises:
            SpecError: The task's rows are none of the domain's tables, or `sync` failed.
        """
        return first_world(self.located, self.base, self.sync, task)

    async def gold_world(self, task: TaskSpec) -> World:
        """The world after the task's gold calls; computed once per task.

        Raises:
            ToolServerError: A gold call was answered with an error.
        """
        known = self._gold.get(task.content_hash)
        if known is not None:
            return known
        world = self.world_for(task)
        if task.gold or self.spec.keeps_state:
            async with self.sides(world) as sides:
                await make_gold_calls(task, sides)
        self._gold[task.content_hash] = world
        return world

    async def judge(
        self,
        task: TaskSpec,
        world: World,
        turns: Sequence[Turn],
        opening: UserReply,
        *,
        initial: World,
        training: bool = False,
        predicates: RewardFile | None = None,
    ) -> Verdict:
        """What a dialogue earned that ended with `world`.

        Args:
            task: Of the dialogue.
            world: Its final world.
            turns: What happened, in order.
            opening: The user's first message.
            initial: The world it began with: the task's own, and what a server with state had.
            training: The training reward counts, where one is declared.
            predicates: Count instead of the task's own and the domain's.

        Raises:
            RewardError: A predicate could not be evaluated.
            EpisodeError: A `judge` predicate's endpoint does not answer.
            ToolServerError: A gold call was answered with an error.
        """
        gold = await self.gold_world(task)
        evidence = self.evidence(world, gold, turns, opening, initial)
        reward = self.reward_for(task, training=training)
        metrics = task.metrics if task.metrics is not None else self.spec.metrics
        if predicates is not None:
            reward = predicates.reward
            metrics = metrics if predicates.metrics is None else predicates.metrics
        return await judge(evidence, reward, metrics)

    def evidence(
        self,
        world: World,
        gold_world: World,
        turns: Sequence[Turn],
        opening: UserReply,
        initial: World,
    ) -> Evidence:
        """What predicates may look at; arguments as of `judge`."""
        return Evidence(
            world=world,
            gold_world=gold_world,
            turns=turns,
            opening=opening,
            writes=self.spec.writes,
            judges=self.judges,
            begin=initial.fork,
            load=lambda ref: self.python.load(ref, ("reward",)),
        )

    def reward_for(self, task: TaskSpec, *, training: bool) -> Sequence[PredicateSpec]:
        """The predicates that count. A training reward counts before any other, while training."""
        choices = [task.reward, self.spec.reward]
        if training:
            choices = [task.training_reward, self.spec.training_reward, *choices]
        return next(choice for choice in choices if choice is not None)

    def draw_persona(self, task: TaskSpec, rng: random.Random) -> str:
        """One of the task's personas, by weight."""
        weights = [self.spec.personas[name].weight for name in task.personas]
        return rng.choices(task.personas, weights if any(weights) else None)[0]

    def user(
        self,
        who: UserKindSpec,
        task: TaskSpec,
        persona: str,
        seed: int,
        speaker: Speaker | None = None,
    ) -> User:
        """A user for one dialogue; `speaker` samples the messages of one who is a model.

        Raises:
            SpecError: Domain or task lack what this kind of user needs, such as a script.
            SetupError: The key of her endpoint is not set.
        """
        if self.spec.environment is not None:
            if who.scripted is None:
                message = "an environment answers in this domain; leave the run's `user` out"
                raise UnfitUser([self.located.problem(("environment",), message)])
            return EnvironmentUser()
        return self._users.user(who, task, persona, seed, speaker)

    def expert(
        self, task: TaskSpec, imperfections: Mapping[str, float], rng: random.Random
    ) -> Agent:
        """The domain's expert for one dialogue, with bad habits at the given rates.

        Raises:
            SpecError: The domain has none, or it does not know a habit.
        """
        return expert_of(self.located, self.python, task, imperfections, rng)

    def anew(self) -> Domain:
        """The same domain, loaded once more: what servers share is bound to the event loop they are used in."""
        return Domain(self.located)


def load_domain(path: str | Path) -> Domain:
    """Load a domain from its file, or from the folder that holds `domain.yaml`.

    Raises:
        SpecError: Everything wrong with it, each with file, line and column.
    """
    return Domain(load_domain_spec(path))
