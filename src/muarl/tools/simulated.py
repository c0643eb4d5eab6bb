"""Tools that an LLM simulates: an MCP server of the official SDK whose memory is the dialogue's world.

The LLM answers a call with what the policy reads, what of the memory it rests on, and what it changes. None
of that is believed: the memory is muarl's, and an answer that contradicts it is asked for again.

    a value that it rests on is not the one at that place
    what it changes was another value before, or stands where nothing can
    a tool that only looks changes something
    the answer names an identifier that neither memory, call nor changes hold
    the same call on the same memory was answered otherwise (it is not even asked again)

What still contradicts itself after all tries is a fault of the surroundings (law L2).
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from mcp.server import Server
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool

from muarl.errors import EpisodeError, ToolServerError, did_you_mean
from muarl.http.chat_client import ChatClient, ChatMessage, strip_reasoning
from muarl.json_values import json_problem
from muarl.seeds import derive_seed
from muarl.spec.simulated import SimulatedToolSpec, SimulatorLlmSpec
from muarl.spec.sql import SqlToolSpec, json_schema
from muarl.spoken.naming import entities
from muarl.world import Change, World, apply_changes, equal, lookup, plain

_REMEMBERED = 4096
"""Answers that are kept, so that the same call on the same memory is answered alike."""
_SHOWN = 200

_ROLE = """\
You are the back end of a service. Its whole data is the JSON object "memory"; nothing else is true. You are \
given one call of one of its tools. Answer with one JSON object and nothing else:
{"answer": "<what the caller reads>", "error": true or false, "reads": [{"path": "<dotted path into the \
memory>", "value": <the value there>}], "changes": [{"path": "<dotted path>", "before": <the value there, or \
null if there is none>, "after": <the new value, or null to remove it>}]}
"reads" are all values that the answer rests on. A tool changes only what its description says, and nothing if the \
call is refused: then "error" is true and the answer says why. Name nothing that is not in the memory, in the \
call, or in your own changes."""


class _Read(msgspec.Struct):
    path: str
    value: Any = None


class _Written(msgspec.Struct):
    path: str
    before: Any = None
    after: Any = None


class _Answer(msgspec.Struct):
    answer: str
    error: bool = False
    reads: list[_Read] = []
    changes: list[_Written] = []


class Contradiction(Exception):
    """What an answer says that is not so."""


def simulated_server(
    spec: SimulatorLlmSpec, client: Callable[[], ChatClient]
) -> Callable[[World], Server]:
    """What builds the server over a world; it keeps nothing of it, so it can be shared.

    Args:
        spec: The tools, and how often is asked.
        client: Makes who is asked, when the first call comes.
    """
    offered = [
        Tool(name=name, description=tool.description, input_schema=_schema(tool))
        for name, tool in spec.tools.items()
    ]
    simulator = _Simulator(spec, client)

    def simulated(world: World) -> Server:
        async def list_tools(_context: Any, _params: Any) -> ListToolsResult:
            return ListToolsResult(tools=offered)

        async def call_tool(_context: Any, params: CallToolRequestParams) -> CallToolResult:
            tool = spec.tools[params.name]
            arguments = params.arguments or {}
            if wrong := list(_wrong(tool, arguments)):
                return _result(f"wrong arguments: {'; '.join(wrong)}", is_error=True)
            answer = await simulator.answer(params.name, arguments, world)
            return _result(answer.answer, is_error=answer.error)

        return Server("simulated", on_list_tools=list_tools, on_call_tool=call_tool)

    return simulated


class _Simulator:
    def __init__(self, spec: SimulatorLlmSpec, client: Callable[[], ChatClient]) -> None:
        self._spec = spec
        self._make = client
        self._client: ChatClient | None = None
        self._known: OrderedDict[str, _Answer] = OrderedDict()

    async def answer(self, name: str, arguments: Mapping[str, Any], world: World) -> _Answer:
        """An answer that the memory bears out, with its changes made.

        Raises:
            ToolServerError: There is none to be had.
        """
        memory = plain(world)
        asked = json.dumps(
            {
                "memory": memory,
                "tool": name,
                "description": self._spec.tools[name].description,
                "arguments": arguments,
            },
            ensure_ascii=False,
            sort_keys=True,
        )
        if (known := self._known.get(asked)) is not None:
            self._known.move_to_end(asked)
            _change(world, known)
            return known
        try:
            if self._client is None:
                self._client = self._make()
            answer = await self._asked(name, arguments, memory, world, asked)
        except EpisodeError as error:
            raise ToolServerError(str(error)) from error
        self._known[asked] = answer
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return answer

    async def _asked(
        self, name: str, arguments: Mapping[str, Any], memory: Any, world: World, asked: str
    ) -> _Answer:
        assert self._client is not None
        talk = [ChatMessage("system", _ROLE), ChatMessage("user", asked)]
        flaw = ""
        for attempt in range(self._spec.tries):
            said = await self._client.complete(
                talk,
                seed=derive_seed(0, asked, attempt),
                temperature=0.0 if attempt == 0 else 0.5,  # the same again would be as wrong
                max_tokens=self._spec.max_tokens,
            )
            text = strip_reasoning(said.text)
            try:
                answer = _read(text)
                _check(self._spec.tools[name], answer, arguments, memory, world)
                _change(world, answer)
            except Contradiction as contradiction:
                flaw = str(contradiction)
                talk = [
                    *talk[:2],
                    ChatMessage("assistant", text),
                    ChatMessage("user", f"That contradicts the memory: {flaw}. Answer again."),
                ]
            else:
                return answer
        raise ToolServerError(
            f"contradicts its memory in all of {self._spec.tries} tries; the last time: {flaw}"
        )


def _check(
    tool: SimulatedToolSpec,
    answer: _Answer,
    arguments: Mapping[str, Any],
    memory: Any,
    world: World,
) -> None:
    """Raise the first contradiction of an answer."""
    for read in answer.reads:
        value = _at(world, read.path)
        if not equal(value, read.value):
            raise Contradiction(f"{read.path} is {_short(value)}, not {_short(read.value)}")
    if answer.changes and not tool.writes:
        raise Contradiction(f"this tool only looks, and {answer.changes[0].path} was to change")
    if answer.changes and answer.error:
        raise Contradiction("a call that is refused changes nothing")
    for change in answer.changes:
        value = _at(world, change.path)
        if not equal(value, change.before):
            raise Contradiction(
                f"{change.path} is {_short(value)} before the change, not {_short(change.before)}"
            )
        if problem := json_problem(change.after):
            raise Contradiction(f"{change.path} cannot become that: {problem}")
    told = [memory, arguments, [change.after for change in answer.changes]]
    known = {name for text in _texts(told) for name in entities(text)}
    if made_up := sorted(entities(answer.answer) - known):
        raise Contradiction(f"the answer names {made_up[0]!r}, which is nowhere in the memory")


def _change(world: World, answer: _Answer) -> None:
    """Make the changes of an answer, all of them or none.

    Raises:
        Contradiction: One is nowhere where something can stand.
    """
    try:
        apply_changes(world.fork(), list(_changes(answer, world)))
    except ValueError as nowhere:
        raise Contradiction(str(nowhere)) from nowhere
    apply_changes(world, list(_changes(answer, world)))


def client_of(spec: SimulatorLlmSpec) -> ChatClient:
    """Whoever answers at the simulator's endpoint.

    Raises:
        SetupError: The key is not set.
    """
    return ChatClient(
        spec.base_url, spec.model, api_key_env=spec.api_key_env, timeout_s=spec.timeout_s
    )


def _changes(answer: _Answer, world: World) -> Iterator[Change]:
    for change in answer.changes:
        before, after = _at(world, change.path), change.after
        if before is None and after is None:
            continue
        kind = "added" if before is None else "removed" if after is None else "changed"
        yield Change(change.path, before, after, kind)


def _at(world: World, path: str) -> Any:
    try:
        return plain(lookup(world, path))
    except (KeyError, ValueError):
        return None


def _read(text: str) -> _Answer:
    start, end = text.find("{"), text.rfind("}")
    try:
        return msgspec.json.decode(text[start : end + 1].encode(), type=_Answer)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError) as error:
        raise Contradiction(f"it is no answer of the form asked for: {error}") from error


def _texts(value: Any) -> Iterator[str]:
    match value:
        case Mapping():
            for key, below in value.items():
                yield str(key)
                yield from _texts(below)
        case list() | tuple():
            for below in value:
                yield from _texts(below)
        case None | bool():
            return
        case _:
            yield str(value)


def _wrong(tool: SimulatedToolSpec, arguments: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with a call's arguments; nobody is asked for that."""
    for name in arguments:
        if name not in tool.parameters:
            yield f"{name}: there is no such parameter{did_you_mean(name, tool.parameters)}"
    for name, parameter in tool.parameters.items():
        value = arguments.get(name)
        if value is None:
            if parameter.required:
                yield f"{name}: is missing"
        elif problem := parameter.problem(value):
            yield f"{name}: {problem}"


def _schema(tool: SimulatedToolSpec) -> dict[str, Any]:
    return json_schema(SqlToolSpec(description=tool.description, parameters=tool.parameters))


def _result(text: str, *, is_error: bool) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=is_error)


def _short(value: Any) -> str:
    text = "absent" if value is None else repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
