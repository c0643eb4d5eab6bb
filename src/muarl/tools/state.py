"""Servers that keep state of their own: brought to where a dialogue starts, and looked into.

The state is read before the dialogue and after it, into the dialogue's world; so predicates, the
gold world, the journal and replay see it like any other part of the world (law L3).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

from muarl.json_values import json_problem
from muarl.spec.tools import SetupCallSpec, StateSpec
from muarl.tools.session import McpSession
from muarl.world import Json, World, diff, lookup, plain, put

_FROM_WORLD = "$world"


class McpServer(Protocol):
    """A `ToolServer` whose sessions can be asked for more than calls of the policy."""

    def session(self, world: World) -> AbstractAsyncContextManager[McpSession]:
        """As of a `ToolServer`."""
        ...


class StatefulToolServer:
    """A `ToolServer` over one that keeps state of its own.

    Every dialogue must find the same: what its world declares under a key of `state`, or else what
    the first dialogue found after the same `setup`.

    Args:
        server: The server.
        setup: Calls that bring it to where a dialogue starts.
        state: Key of the world to how its value is read.
    """

    def __init__(
        self, server: McpServer, setup: Sequence[SetupCallSpec], state: Mapping[str, StateSpec]
    ) -> None:
        self._server = server
        self._setup = setup
        self._state = state
        self._seen: dict[str, str] = {}

    @asynccontextmanager
    async def session(self, world: World) -> AsyncIterator[McpSession]:
        async with self._server.session(world) as session:
            made = await self._set_up(session, world)
            await self._check_start(session, world, made)
            yield session
            for key, state in (await self._read(session)).items():
                put(world, key, state)

    async def _set_up(self, session: McpSession, world: World) -> str:
        """Make the calls of `setup`; what was called, as JSON.

        Raises:
            ToolServerError: One was answered with an error, or its arguments are not in the world.
        """
        made = []
        for number, call in enumerate(self._setup):
            what = f"tools.setup.{number}"
            try:
                arguments = _resolved(call.arguments, world)
            except KeyError as missing:
                raise session.failure(
                    f"cannot be set up ({what}): {missing.args[0]!r} is not in the world"
                ) from None
            await session.fetch(StateSpec(call=call.tool, arguments=arguments), what)
            made.append([call.tool, arguments])
        return json.dumps(made, sort_keys=True)

    async def _check_start(self, session: McpSession, world: World, made: str) -> None:
        """Put the state into the world where the world declares none.

        Raises:
            ToolServerError: The server does not start from what the world declares, or from what
                another dialogue started from.
        """
        state = await self._read(session)
        for key in [key for key in state if key in world]:
            if changes := diff({key: world[key]}, {key: state.pop(key)}):
                raise session.failure(
                    f"does not start from the dialogue's world ({changes[0]}, {len(changes)} "
                    "difference(s) in all); let tools.setup bring it there, or leave the key out "
                    "of the world"
                )
        if not state:
            return
        found = hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()
        if self._seen.setdefault(made, found) != found:
            raise session.failure(
                f"starts from another state than in an earlier dialogue (tools.state: "
                f"{', '.join(state)}); let each dialogue have one of its own, such as a file in "
                "{home}, and keep times and random numbers out of what is read"
            )
        for key, value in state.items():
            world[key] = value

    async def _read(self, session: McpSession) -> dict[str, Json]:
        """What the server holds now, by key of the world.

        Raises:
            ToolServerError: It cannot be read, or is not what was declared.
        """
        return {key: await _value(session, key, source) for key, source in self._state.items()}


async def _value(session: McpSession, key: str, source: StateSpec) -> Json:
    text = await session.fetch(source, f"tools.state.{key}")
    if source.form == "text":
        return text
    what = f"{source.resource or source.call!r} (tools.state.{key})"
    return parse_json(session, text, what, "; declare `form: text` if it is meant to be text")


def parse_json(session: McpSession, text: str, what: str, hint: str = "") -> Json:
    """What a server returned as JSON.

    Args:
        session: With the server.
        text: What it returned.
        what: What it was asked for.
        hint: What to do if it is no JSON.

    Raises:
        ToolServerError: It is none.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise session.failure(f"answered {what} without valid JSON: {error}{hint}") from None
    if problem := json_problem(value):
        raise session.failure(f"answered {what} with what is no JSON: {problem}")
    return value


def _resolved(value: Any, world: World) -> Any:
    """Arguments with what the world holds where they refer to it.

    Raises:
        KeyError: It holds nothing there; names the path.
    """
    if isinstance(value, Mapping):
        if value.keys() == {_FROM_WORLD}:
            return plain(lookup(world, str(value[_FROM_WORLD])))
        return {key: _resolved(below, world) for key, below in value.items()}
    if isinstance(value, (list, tuple)):
        return [_resolved(below, world) for below in value]
    return value
