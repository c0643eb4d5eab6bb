"""Dialogues the other way round: what a scripted user said, as if a model had sampled it.

Her messages pass through the very path that rollouts take (`muarl.model_user`): the same role, the same
rendering, the same mask, so that the loss is on her tokens only. Guards and knobs are left out: the
script kept her contract, and what its knobs did is in what she said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import anyio.lowlevel

from muarl.errors import EpisodeError
from muarl.messages import Message, ToolCall, ToolResult, ToolSpec
from muarl.model_user import ModelSpeaker, ModelUser
from muarl.policy import GenerateRequest, Generation
from muarl.policy.spoken import as_sampled
from muarl.record import Episode, Sample, UserReply
from muarl.render import Renderer
from muarl.spec import KnobsSpec, PersonaSpec, TaskSpec
from muarl.spec.user import ModelUserSpec
from muarl.suite import AnyDomain
from muarl.user.llm import LlmUser
from muarl.user.role import STOP

_MAX_TOKENS = 65_536
"""Of one message; byte by byte, everything is several times as long."""


class Reversed(NamedTuple):
    """The user's side of some dialogues.

    Attributes:
        dialogues: Of each, her samples, with what she said as what was sampled.
        lost: Those that give none, and why.
    """

    dialogues: list[list[Sample]]
    lost: list[str]

    @property
    def samples(self) -> list[Sample]:
        """Those of all dialogues."""
        return [sample for dialogue in self.dialogues for sample in dialogue]


async def role_reversed(
    domain: AnyDomain,
    tasks: Mapping[str, TaskSpec],
    episodes: Sequence[Episode],
    renderer: Renderer,
    *,
    context_tokens: int = _MAX_TOKENS,
) -> Reversed:
    """Turn dialogues with scripted users round.

    Args:
        domain: Of the dialogues; has their personas.
        tasks: Theirs, by id.
        episodes: The dialogues.
        renderer: Of the model that is to learn from them.
        context_tokens: Longer ones are lost.
    """
    found = Reversed([], [])
    for episode in episodes:
        await anyio.lowlevel.checkpoint()  # thousands of them: others have their turn
        persona = domain.of(episode.key.task_id).spec.personas[episode.persona]
        try:
            found.dialogues.append(
                await _turned(
                    episode, tasks[episode.key.task_id], persona, renderer, context_tokens
                )
            )
        except EpisodeError as error:
            found.lost.append(f"{episode.key}: {error}")
    return found


async def _turned(
    episode: Episode,
    task: TaskSpec,
    persona: PersonaSpec,
    renderer: Renderer,
    context_tokens: int,
) -> list[Sample]:
    reciter = _Reciter(episode.replies(), renderer)
    speaker = ModelSpeaker(
        reciter, renderer, dialogue=str(episode.key), context_tokens=context_tokens
    )
    spec = ModelUserSpec(guards=[], tries=1, max_tokens=context_tokens, tool_rounds=_MAX_TOKENS)
    llm = LlmUser(spec, persona=persona, goal=task.goal, seed=0, client=speaker, knobs=KnobsSpec())
    her = ModelUser(llm, speaker)
    if episode.user_tools:
        her.take(_Recorded(episode))
    await her.open()
    for turn in episode.turns:
        if turn.reply is not None:
            await her.reply(turn.message.content)
    return [sample for sample in speaker.side.samples if sample.spans]


class _Reciter:
    """A policy that says what somebody said and did."""

    policy_version = 0

    def __init__(self, replies: Sequence[UserReply], renderer: Renderer) -> None:
        self._coming = _messages(replies)
        self._renderer = renderer

    async def generate(self, request: GenerateRequest) -> Generation:
        return as_sampled(next(self._coming), self._renderer, request)


def _messages(replies: Sequence[UserReply]) -> Iterator[Message]:
    for reply in replies:
        for call in reply.calls:
            yield Message("assistant", "", tool_calls=(call,))
        text = f"{reply.text}\n{STOP}".lstrip() if reply.stop else reply.text
        yield Message("assistant", text)


class _Recorded:
    """A device on which everything happens as it happened."""

    def __init__(self, episode: Episode) -> None:
        self._results = (result for reply in episode.replies() for result in reply.results)
        self._tools = tuple(episode.user_tools)

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return self._tools

    async def call(self, call: ToolCall) -> ToolResult:
        del call
        return next(self._results)
