"""Environments in Gymnasium's form whose observations are text.

Nothing of Gymnasium is imported but where an environment is named by its registered id: what counts is
`reset(seed=...) -> (observation, info)` and `step(action) -> (observation, reward, terminated, truncated,
info)`, as https://gymnasium.farama.org/api/env/ has them. What a dialogue earns is the sum of rewards.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio

from muarl.environments.actions import NoAction, action_of, refuse_unsayable
from muarl.environments.beside import beside
from muarl.environments.protocol import Answer, Environment, Score, Step
from muarl.errors import SetupError, SpecError, ToolServerError
from muarl.messages import Message, ToolCall, ToolSpec
from muarl.seeds import derive_seed
from muarl.spec import DomainSpec, Located, TaskSpec
from muarl.spec.environment import ENVIRONMENT, GymnasiumSpec

ACT = "act"
"""The tool that takes an action, where actions are calls."""

_SEEDS = 2**31
"""Seeds are below: more than that some generators do not take."""


_CLOSE_S = 10.0
"""Seconds that it may take to close."""


class GymnasiumEnvironments:
    """A domain's environments in Gymnasium's form; a task is a seed.

    Args:
        located: The domain's file.
        spec: Its `environment.gymnasium`.
        load: Finds what `make` names.
    """

    def __init__(
        self, located: Located[DomainSpec], spec: GymnasiumSpec, load: Callable[[], Any]
    ) -> None:
        self._located = located
        self._spec = spec
        self._load = load

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        if self._spec.action == "message":
            return ()
        action: dict[str, Any] = {"type": "string"}
        if self._spec.choices:
            action["enum"] = list(self._spec.choices)
        parameters = {"type": "object", "properties": {"action": action}, "required": ["action"]}
        return (ToolSpec(ACT, "Take an action; gives what is observed then.", parameters),)

    @property
    def actions(self) -> Sequence[Message]:
        if self._spec.action == "message":
            return [Message("assistant", choice) for choice in self._spec.choices]
        return [
            Message("assistant", "", (ToolCall("", ACT, {"action": choice}),))
            for choice in self._spec.choices or ("0", "1", "2")
        ]

    def tasks(self, split: str) -> Sequence[TaskSpec]:
        domain = self._located.spec
        seeds = {
            (name, number): derive_seed(domain.tasks.seed, domain.id, name, number) % _SEEDS
            for name, count in domain.tasks.splits.items()
            for number in range(count)
        }
        if len(set(seeds.values())) < len(seeds):
            message = "two tasks would begin from the same seed; set tasks.seed to another number"
            raise SpecError([self._located.problem(("tasks",), message)])
        return [
            TaskSpec(
                id=f"{split}-{number}",
                split=split,
                goal=f"Play from seed {seeds[split, number]}.",
                personas=list(domain.personas),
                world={ENVIRONMENT: {"task": {"seed": seeds[split, number]}}},
                gold=[],
            )
            for number in range(domain.tasks.splits[split])
        ]

    @asynccontextmanager
    async def environment(self, task: Mapping[str, Any]) -> AsyncIterator[Environment]:
        env = await beside(self._made)
        try:
            yield GymnasiumEnvironment(env, self._spec, task["seed"])
        finally:
            if callable(close := getattr(env, "close", None)):
                with anyio.move_on_after(_CLOSE_S, shield=True) as closing:  # a cut-off one as well
                    await beside(close)
                if closing.cancelled_caught:
                    raise ToolServerError(f"the environment was not closed within {_CLOSE_S:g} s")

    def _made(self) -> Any:
        arguments = self._spec.arguments
        if self._spec.id is None:
            return self._load()(**arguments)
        try:
            import gymnasium
        except ModuleNotFoundError as error:
            raise SetupError(
                "environment.gymnasium.id names what Gymnasium has registered, and it is not "
                "installed: pip install 'muarl[gymnasium]'"
            ) from error
        return gymnasium.make(self._spec.id, disable_env_checker=True, **arguments)


class GymnasiumEnvironment:
    """One dialogue's.

    Args:
        env: What `make` gave.
        spec: How its actions are said.
        seed: It begins from.
    """

    def __init__(self, env: Any, spec: GymnasiumSpec, seed: int) -> None:
        self._env = env
        self._spec = spec
        self._seed = seed
        self._earned = 0.0

    async def open(self) -> Step:
        given = await beside(lambda: self._env.reset(seed=self._seed))
        if not isinstance(given, tuple) or len(given) != 2:
            raise ToolServerError(
                f"the environment's reset returned {_shape(given)}; expected (observation, info)"
            )
        refuse_unsayable(getattr(self._env, "action_space", None), self._spec.choices)
        return Step(_text(given[0], "reset"), earned=0.0)

    async def answer(self, message: Message) -> Step:
        if self._spec.action == "call":
            if not message.tool_calls:
                return Step(f"To act, call {ACT}(action=...).", earned=self._earned)
            return await self._all(message.tool_calls)
        if message.tool_calls:
            refused = Answer("there are no tools here; say your action", is_error=True)
            return Step(answers=[refused] * len(message.tool_calls), earned=self._earned)
        action = self._action(message.content)
        if isinstance(action, NoAction):
            return Step(action.why, earned=self._earned)
        return await self._step(action)

    async def score(self, cut: Message | None) -> Score:
        del cut
        return Score(self._earned)

    async def _all(self, calls: Sequence[ToolCall]) -> Step:
        """One action after another, until it is over."""
        answers: list[Answer] = []
        over = False
        for call in calls:
            said = call.arguments.get("action")
            if over:
                answers.append(Answer("not done: this is over", is_error=True))
            elif call.error is not None:
                answers.append(Answer(call.error, is_error=True))
            elif call.name != ACT or not isinstance(said, str) or len(call.arguments) > 1:
                answers.append(Answer(f"there is {ACT}(action), a text", is_error=True))
            elif isinstance(action := self._action(said), NoAction):
                answers.append(Answer(action.why, is_error=True))
            else:
                step = await self._step(action)
                answers.append(Answer(step.text))
                over = step.over
        return Step(answers=answers, over=over, earned=self._earned)

    def _action(self, said: str) -> Any:
        """The action that a text is, or why it is none."""
        return action_of(said, getattr(self._env, "action_space", None), self._spec.choices)

    async def _step(self, action: Any) -> Step:
        given = await beside(lambda: self._env.step(action))
        if not isinstance(given, tuple) or len(given) != 5:
            raise ToolServerError(
                f"the environment's step returned {_shape(given)}; expected (observation, reward, "
                "terminated, truncated, info)"
            )
        observation, reward, terminated, truncated, _ = given
        self._earned += float(reward)
        text = _text(observation, "step")
        return Step(text, over=bool(terminated or truncated), earned=self._earned)


def _text(observation: Any, of: str) -> str:
    if isinstance(observation, str):
        return str(observation)
    raise ToolServerError(
        f"the environment's {of} gave an observation of type {type(observation).__name__}; expected "
        "text: wrap it so that it says what is observed (gymnasium.ObservationWrapper)"
    )


def _shape(given: Any) -> str:
    return f"{len(given)} values" if isinstance(given, tuple) else type(given).__name__
