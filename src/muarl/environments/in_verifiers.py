"""Environments of verifiers (https://github.com/PrimeIntellect-ai/verifiers), with the rollout and rubric of theirs.

Their `rollout` is run as it is, one for each dialogue, with a client of ours for its model: what it asks the
model is the next thing that the dialogue's policy reads, and what the policy says is what its model answers.
So the policy is sampled token by token by muarl (law L1), and everything else of an environment is its own:
`setup_state`, `env_response`, stop conditions, limits, `rubric`. What a rollout asks must go on from what was
said before, by tool answers or one user message; what does not is refused by name.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import deepcopy
from typing import Any

import anyio
import msgspec

from muarl.authors import RAISED, blame, let_others_pass
from muarl.environments.carried import (
    Uncarried,
    last_messages,
    new_messages,
    opening_of,
    step_of,
)
from muarl.environments.protocol import Environment, Score, Step
from muarl.environments.their_verifiers import (
    client_of,
    raised_by_rewards,
    response_of,
    rubrics_of,
    signals_kept,
    their_library,
    watched,
    without_progress_bars,
)
from muarl.errors import SpecError, ToolServerError
from muarl.messages import Message, ToolSpec
from muarl.spec import DomainSpec, Located, TaskSpec
from muarl.spec.environment import ENVIRONMENT, VerifiersSpec

_HERE = ("environment", "verifiers")
"""Where a domain's file names one."""


class VerifiersEnvironments:
    """The environments of a domain: one of verifiers, whose rows are its tasks.

    Args:
        located: The domain's file.
        spec: Its `environment.verifiers`.
        load: Gives what `load` names, called with the arguments.
    """

    def __init__(
        self, located: Located[DomainSpec], spec: VerifiersSpec, load: Callable[[], Any]
    ) -> None:
        self._located = located
        self._spec = spec
        self._load = load

    @functools.cached_property
    def _theirs(self) -> Any:
        """Their environment, made once: each rollout keeps what is its own in a state of its own."""
        vf = their_library()
        with signals_kept(), without_progress_bars():
            if self._spec.id is None:
                made = self._load()
            else:
                try:
                    made = vf.load_environment(self._spec.id, **self._spec.arguments)
                except (ValueError, RuntimeError) as error:
                    raise self._problem(f"verifiers cannot load it: {blame(error)}") from error
        if not isinstance(made, vf.MultiTurnEnv):
            kind = type(made).__name__
            several = isinstance(made, vf.EnvGroup)
            mend = (
                "make a domain of each of its environments, and a suite of them"
                if several
                else "a SingleTurnEnv, MultiTurnEnv or ToolEnv can be carried, or a class of yours over them"
            )
            raise self._problem(f"it is a {kind}: {mend}")
        if made.requires_group_rollouts or made.provides_advantages:
            raise self._problem(
                "its rubric scores rollouts of a group together, and muarl scores each dialogue by "
                "itself; take reward functions of one rollout"
            )
        for rubric in rubrics_of(made.rubric):
            rubric.funcs = [watched(func) for func in rubric.funcs]
        return made

    @functools.cached_property
    def tools(self) -> tuple[ToolSpec, ...]:
        return tuple(_tool(tool) for tool in self._theirs.tool_defs or ())

    @property
    def actions(self) -> Sequence[Message]:
        return ()

    def tasks(self, split: str) -> Sequence[TaskSpec]:
        domain = self._located.spec
        first = 0
        for name, count in domain.tasks.splits.items():
            if name == split:
                break
            if (name in self._spec.evaluation) == (split in self._spec.evaluation):
                first += count
        count = domain.tasks.splits[split]
        rows, which = self._rows(split)
        if len(rows) < first + count:
            raise self._problem(
                f"split {split!r} would be rows {first} to {first + count - 1} of its {which}, which has "
                f"{len(rows)}; name smaller numbers under tasks.splits",
                ("tasks", "splits"),
            )
        return [self._task(split, number, rows[first + number]) for number in range(count)]

    def _rows(self, split: str) -> tuple[Any, str]:
        theirs = self._theirs
        with without_progress_bars():
            if split not in self._spec.evaluation:
                if theirs.build_dataset() is None:
                    raise self._problem(
                        "it has no training data set; name all splits under `evaluation`"
                    )
                return theirs.get_dataset(), "training data set"
            if theirs.build_eval_dataset() is None:
                raise self._problem(
                    "it has no evaluation data set, and gives its training data set in its place; leave "
                    "`evaluation` out, and the splits are cut out of the one that there is",
                    ("environment", "verifiers", "evaluation"),
                )
            return theirs.get_eval_dataset(), "evaluation data set"

    def _task(self, split: str, number: int, row: Any) -> TaskSpec:
        row = {key: value for key, value in dict(row).items() if value is not None}
        info = row.get("info")
        if isinstance(info, Mapping) and "tool_defs" in info:
            raise self._problem(
                f"row {number} has tools of its own (info.tool_defs); a domain has one list"
            )
        try:
            asked = opening_of(row.get("prompt"), self._located.spec.rules)
        except Uncarried as why:
            raise self._problem(f"row {number} of split {split!r}: {why}") from None
        return TaskSpec(
            id=f"{split}-{number}",
            split=split,
            goal=asked,
            personas=list(self._located.spec.personas),
            world={ENVIRONMENT: {"task": row}},
            gold=[],
        )

    @asynccontextmanager
    async def environment(self, task: Mapping[str, Any]) -> AsyncIterator[Environment]:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            raise ToolServerError(
                "verifiers runs on asyncio only; run this domain on asyncio"
            ) from None
        theirs, rules = self._theirs, self._located.spec.rules
        names = {tool.name for tool in self.tools}
        async with anyio.create_task_group() as tasks:
            rollout = _Rollout(theirs, task, rules, names)
            tasks.start_soon(rollout.run)
            try:
                yield rollout
            finally:
                tasks.cancel_scope.cancel()
                rollout.close()

    def _problem(self, message: str, loc: tuple[str, ...] = _HERE) -> SpecError:
        return SpecError([self._located.problem(loc, message)])


class _Cut(msgspec.Struct):
    """Stands for an answer of the model's: it says no more; its last message, if that was cut."""

    message: Message | None


class _Asked(msgspec.Struct):
    """What a rollout asks its model."""

    prompt: Any
    tools: Any


class _Ended(msgspec.Struct):
    """A rollout is over: with a state, or by an error."""

    state: Any = None
    error: BaseException | None = None


class _Rollout:
    """One dialogue's: their rollout in a task of its own, which waits where it asks its model."""

    def __init__(self, theirs: Any, row: Mapping[str, Any], rules: str, tools: set[str]) -> None:
        self._theirs = theirs
        self._row = row
        self._rules = rules
        self._tools = tools
        self._to_us, self._heard = anyio.create_memory_object_stream[Any](1)
        self._from_us, self._answers = anyio.create_memory_object_stream[Any](1)
        self._known: list[Any] = []  # the conversation up to the policy's next message
        self._ended: _Ended | None = None

    async def run(self) -> None:
        """Carry their rollout out; how it ended is told like what it asks."""
        try:
            state = await self._theirs.rollout(
                deepcopy(dict(self._row)), client_of(self._ask), "muarl", {}
            )
            await self._to_us.send(_Ended(state))
        except RAISED as error:  # boundary: the author's code raises anything
            let_others_pass(error)
            await self._to_us.send(_Ended(error=error))

    def close(self) -> None:
        """Nobody asks or answers any more."""
        for end in (self._to_us, self._heard, self._from_us, self._answers):
            end.close()

    async def _ask(self, prompt: Any, tools: Any, state: Any) -> Any:
        """In their task: what the policy says next, or that it says no more."""
        await self._to_us.send(_Asked(prompt, tools))
        answer = await self._answers.receive()
        if isinstance(answer, _Cut):
            if answer.message is not None:  # of their trajectory, and answered by nothing
                response = response_of(answer.message, cut=True)
                await self._theirs.add_model_response(state, prompt, response)
            raise their_library().OverlongPromptError("a cap of the run ended the dialogue")
        return answer

    async def open(self) -> Step:
        heard = await self._next()
        if not isinstance(heard, _Asked):
            return Step(over=True)
        self._known = list(heard.prompt)
        try:
            return Step(opening_of(self._known, self._rules))
        except Uncarried as why:
            raise ToolServerError(
                f"what the environment asks first cannot be carried: {why}"
            ) from None

    async def answer(self, message: Message) -> Step:
        response = response_of(message)
        await self._from_us.send(response)
        heard = await self._next()
        if isinstance(heard, _Asked):
            before = [*self._known, response.message]
            said = new_messages(before, heard.prompt)
            self._known = list(heard.prompt)
            return step_of(message, said, over=False)
        return step_of(message, last_messages(heard.state), over=True)

    async def score(self, cut: Message | None) -> Score:
        if self._ended is None:
            await self._from_us.send(_Cut(cut))
            if isinstance(await self._next(), _Asked):
                raise ToolServerError("the environment asks on where its model can say no more")
        assert self._ended is not None
        state = self._ended.state
        raised: list[BaseException] = []
        raised_by_rewards.set(raised)
        await self._theirs.rubric.score_rollout(state)
        await self._theirs.rubric.cleanup(state)
        if raised:
            raise raised[0]
        return Score(state["reward"], dict(state["metrics"] or {}))

    async def _next(self) -> _Asked | _Ended:
        """What their rollout comes to next.

        Raises:
            ToolServerError: It failed, by no doing of the policy's.
        """
        heard = await self._heard.receive()
        if isinstance(heard, _Asked):
            offered = {tool.name for tool in heard.tools or ()}
            if offered != self._tools:
                raise ToolServerError(
                    f"the environment offers other tools ({', '.join(sorted(offered)) or 'none'}) than it "
                    f"was loaded with ({', '.join(sorted(self._tools)) or 'none'}); a domain has one list"
                )
            return heard
        self._ended = heard
        if heard.error is not None:
            raise heard.error
        error = heard.state.get("error")
        if error is not None and not isinstance(error, their_library().errors.ToolError):
            raise error  # what the policy called wrongly is its own; all else is not
        return heard  # type: ignore[no-any-return]


def _tool(tool: Any) -> ToolSpec:
    return ToolSpec(tool.name, tool.description, dict(tool.parameters))
