"""The agent's own loop that a run file names; needs neither a model nor torch."""

from __future__ import annotations

import inspect
from typing import Any

from muarl.errors import SpecError
from muarl.own_loop import AgentLoop
from muarl.python_folder import PythonFolder
from muarl.spec import Located, RunSpec

_AT = ("rollout", "loop")


def loop_of(run: Located[RunSpec]) -> AgentLoop | None:
    """Import what leads a run's dialogues; None where muarl's own loop does.

    Raises:
        SpecError: It cannot be imported, or is no async function of one context.
    """
    reference = run.spec.rollout.loop
    if reference is None:
        return None
    path, _, name = reference.rpartition(":")
    file = run.resolve(path)
    loop = PythonFolder(run, file.stem, file.parent).load(f"{file.name}:{name}", _AT)
    if not _is_async(loop) or not _takes_one(loop):
        message = (
            f"{reference!r} is no async function of one argument, which is what a loop is: "
            f"`async def {name}(context): ...`"
        )
        raise SpecError([run.problem(_AT, message)])
    return loop  # type: ignore[no-any-return]


def _is_async(made: Any) -> bool:
    called = type(made).__call__ if callable(made) else None  # of an object that can be called
    return inspect.iscoroutinefunction(made) or inspect.iscoroutinefunction(called)


def _takes_one(made: Any) -> bool:
    try:
        inspect.signature(made).bind(None)
    except (TypeError, ValueError):
        return False
    return True
