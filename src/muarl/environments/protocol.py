"""What an environment is to muarl: something that answers a policy's messages, and knows what they earned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from typing import Any, Protocol

import msgspec

from muarl.messages import Message, ToolSpec
from muarl.spec import TaskSpec

whose_calls: ContextVar[Message | None] = ContextVar("muarl_message", default=None)
"""The policy's message whose calls are being made: an environment answers it as a whole."""


class Answer(msgspec.Struct, frozen=True, gc=False):
    """What one call of a message was answered with.

    Attributes:
        text: What the policy reads.
        is_error: The call did not do what it was to do.
    """

    text: str
    is_error: bool = False


class Step(msgspec.Struct, frozen=True, gc=False):
    """What an environment did with a message.

    Attributes:
        text: What it says, where the message had no calls; its first words, as it begins.
        answers: What it answered to the message's calls, in order.
        over: It takes no further message.
        earned: All that was earned so far; None where that is known at the end only.
    """

    text: str = ""
    answers: Sequence[Answer] = ()
    over: bool = False
    earned: float | None = None


class Score(msgspec.Struct, frozen=True, gc=False):
    """What a dialogue came to in an environment.

    Attributes:
        earned: In all.
        metrics: What else was measured, by name.
    """

    earned: float
    metrics: Mapping[str, float] = {}


class Environment(Protocol):
    """One dialogue's environment. Whatever it raises is its fault, and no policy's (law L2)."""

    async def open(self) -> Step:
        """Begin; asked once, first."""
        ...

    async def answer(self, message: Message) -> Step:
        """Take a message of the policy's: one to be read, or one that makes calls."""
        ...

    async def score(self, cut: Message | None) -> Score:
        """What the dialogue came to; asked once, last, whether it is over or a cap ended it.

        Args:
            cut: The policy's last message, if a cap cut it in its middle: it was not answered, and
                nothing in it may be done.
        """
        ...


class Environments(Protocol):
    """A domain's environments: one for each dialogue, and the tasks that they are made for.

    Attributes:
        tools: What the policy may call in each of them.
        actions: Messages that are actions of any of them, to play without skill; where that is not
            known, none.
    """

    @property
    def tools(self) -> tuple[ToolSpec, ...]: ...

    @property
    def actions(self) -> Sequence[Message]: ...

    def tasks(self, split: str) -> Sequence[TaskSpec]:
        """The tasks of a split.

        Raises:
            SpecError: There are none such; what to do about it.
        """
        ...

    def environment(self, task: Mapping[str, Any]) -> AbstractAsyncContextManager[Environment]:
        """A new one for one dialogue, opened and closed by the same task (law L7).

        Args:
            task: What the task's world says of it.
        """
        ...
