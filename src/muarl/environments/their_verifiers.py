"""verifiers itself: found, loaded without what it does beside, and spoken to in its own types."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from muarl.errors import SetupError
from muarl.messages import Message

_APART = Path(sys.prefix) / "verifiers"
_MEND = "scripts/install-verifiers.sh .venv"

raised_by_rewards: ContextVar[list[BaseException]] = ContextVar("muarl_raised_by_rewards")
"""What reward functions raised in a scoring: verifiers makes 0 of it, and it is no reward (law L2)."""


def response_of(message: Message, *, cut: bool = False) -> Any:
    """A policy's message as an answer of a model of theirs; of one that was cut no call."""
    types = their_library().types
    calls = [
        types.ToolCall(
            id=call.id,
            name=call.name,
            arguments=call.raw if call.error is not None else json.dumps(call.arguments),
        )
        for call in (() if cut else message.tool_calls)
    ]
    said = types.ResponseMessage(
        content=message.content,
        reasoning_content=message.reasoning or None,
        tool_calls=calls or None,
        finish_reason="length" if cut else "tool_calls" if calls else "stop",
        is_truncated=cut,
    )
    return types.Response(id="muarl", created=0, model="muarl", message=said)


def client_of(ask: Callable[[Any, Any, Any], Any]) -> Any:
    """A client of theirs that asks us."""

    class Policy(their_library().Client):  # type: ignore[misc]
        async def get_response(
            self, prompt: Any, model: Any, sampling_args: Any, tools: Any = None, **more: Any
        ) -> Any:
            del model, sampling_args
            return await ask(prompt, tools, more["state"])

        async def close(self) -> None:
            pass

    Policy.__abstractmethods__ = frozenset()  # all that they do is done by `get_response`
    return Policy(None)


def rubrics_of(rubric: Any) -> Iterator[Any]:
    """A rubric, and those that it is made of."""
    yield rubric
    for part in getattr(rubric, "rubrics", ()):
        yield from rubrics_of(part)


def watched(func: Callable[..., Any]) -> Callable[..., Any]:
    """A reward function; what it raises is kept beside being raised."""

    @functools.wraps(func)
    async def call(*arguments: Any, **more: Any) -> Any:
        try:
            found = func(*arguments, **more)
            return await found if inspect.isawaitable(found) else found
        except Exception as error:
            raised_by_rewards.get([]).append(error)
            raise

    return call


def their_library() -> Any:
    """The library, from where `scripts/install-verifiers.sh` puts it if it is not installed beside muarl.

    Raises:
        SetupError: It is not there, or is one that this bridge does not know.
    """
    if importlib.util.find_spec("verifiers") is None and _APART.is_dir():
        sys.path.append(str(_APART))
    try:
        import verifiers as vf
    except ModuleNotFoundError as error:
        if error.name != "verifiers":
            raise
        raise SetupError(f"environment.verifiers needs verifiers 0.2: {_MEND}") from error
    try:
        _ = vf.MultiTurnEnv
    except AttributeError as error:
        why = error.__cause__ or "it has no environments of this form any more"
        raise SetupError(
            f"environment.verifiers needs verifiers 0.2; installed is {vf.__version__} ({why}): {_MEND}"
        ) from error
    return vf


@contextmanager
def signals_kept() -> Iterator[None]:
    """Their environments put handlers of their own in the place of Ctrl-C's."""
    kept = {which: signal.getsignal(which) for which in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for which, handler in kept.items():
            if signal.getsignal(which) is not handler:
                signal.signal(which, handler)


@contextmanager
def without_progress_bars() -> Iterator[None]:
    """Within the block `datasets` draws none: a terminal is for what muarl says."""
    import datasets

    were_off = datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if not were_off:
            datasets.enable_progress_bars()
