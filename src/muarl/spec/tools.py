"""Tool servers: where a domain's tools come from. Each has one key that says what it is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from muarl.spec.base import SECRET_KEY, EnvName, Id, PythonRef, Spec
from muarl.spec.plugged import PluggedToolServer
from muarl.spec.simulated import SimulatorLlmSpec
from muarl.spec.sql import SqlTools
from muarl.spec.url import HttpUrl, refuse_userinfo

Seconds = Annotated[float, Field(gt=0)]
Chars = Annotated[int, Field(gt=0)]

HOME = "{home}"
"""In a command's arguments and environment: the folder that its process has for itself."""


class ToolLimitsSpec(Spec):
    """Limits of one tool; what is left out is that of its server."""

    call_timeout_s: Seconds | None = None
    """Seconds one call may take."""
    max_result_chars: Chars | None = None
    """Longer results are cut, and the cut is said in the result."""


class SetupCallSpec(Spec):
    """A call that brings a fresh server to the state that a dialogue starts from."""

    tool: str
    """One of the server's tools, by the server's own name for it; it may be hidden."""
    arguments: dict[str, Any] = {}
    """Its arguments. A value `{$world: graph.entities}` stands for what the task's world holds at
    that path."""


class StateSpec(Spec):
    """How a part of a server's state is read: exactly one of `resource` and `call`."""

    resource: str | None = None
    """URI of a resource that returns it."""
    call: str | None = None
    """A tool that returns it, by the server's own name for it; it may be hidden."""
    arguments: dict[str, Any] = {}
    """For `call`: its arguments."""
    form: Literal["json", "text"] = "json"
    """What the server returns: JSON, or a text that goes into the world as it is."""

    @model_validator(mode="after")
    def _one_source(self) -> StateSpec:
        if (self.resource is None) == (self.call is None):
            raise ValueError("give exactly one of resource and call")
        if self.resource is not None and self.arguments:
            raise ValueError("arguments go with call; a resource has none")
        return self


class AnyToolsSpec(Spec):
    """What can be said of every tool server."""

    name: Id | None = None
    """Stands before the names of its tools where another server has a tool of the same name:
    `name_tool`. Left out: that of the file, program or host."""
    hidden: list[str] = []
    """Tools that the policy is not shown and cannot call; `setup` and `state` can."""
    limits: dict[str, ToolLimitsSpec] = {}
    """Tool to limits of its own; tools by the server's own names."""
    setup: list[SetupCallSpec] = []
    """Calls made in this order before the dialogue, for a server that does not start from the
    dialogue's world by itself."""
    state: dict[Id, StateSpec] = {}
    """Key of the world to where its value is read, for a server that keeps state of its own. It is
    read before the dialogue and after it. What the world declares at the key must be what the
    server starts with; where the world declares nothing there, it is put there."""
    external: bool | None = None
    """Whether calls of the `writes` tools change something outside the dialogue's own world, such as
    a database. A dialogue that made such a call is never run again after a fault. Left out: no for
    `python` and `sql` and for a `command` that shows its state, yes for any other."""
    at_once: Annotated[int, Field(gt=0)] | None = None
    """Calls that it answers at once, over all dialogues; those beyond wait, task by task. Left out:
    as many as `rollout.at_once.calls` lets through to all servers together."""
    start_timeout_s: Seconds = 30.0
    """Seconds the server may take to start and list its tools."""
    call_timeout_s: Seconds = 30.0
    """Seconds one call may take."""
    max_result_chars: Chars = 20_000
    """Longer results are cut, and the cut is said in the result."""
    on_crash: Literal["fault", "answer"] = "fault"
    """What it is when a tool raises something else than `ToolError`: a fault of the server, which is
    neither scored nor trained on, or an answer `tool failed`, for servers that crash on arguments
    they should refuse."""

    verbatim: bool = False
    """What it answers is passed on as it stands: JSON keeps its white space, which costs tokens. And
    a call of a tool that it does not list is its own to answer (of several such servers, the first's).
    For servers that must answer as another does, word by word."""

    @property
    def label(self) -> str:
        """Name of the server."""
        return self.name or self._source

    @property
    def writes_outside(self) -> bool:
        """Whether a write outlives the dialogue; see `external`."""
        return self._outside if self.external is None else self.external

    @property
    @abstractmethod
    def _source(self) -> str:
        """Its name if it is given none."""

    @property
    @abstractmethod
    def _outside(self) -> bool:
        """What `writes_outside` is if nothing is said."""


class PythonToolsSpec(AnyToolsSpec):
    """An MCP server built and run in memory."""

    python: PythonRef
    """A function `serve(world) -> mcp.server.MCPServer`."""
    stateless: bool = False
    """`serve` keeps no state outside `world`: it is called once and shared by all dialogues."""

    @property
    def _source(self) -> str:
        return PurePath(self.python.partition(":")[0]).stem

    @property
    def _outside(self) -> bool:
        return False


class SqlToolsSpec(AnyToolsSpec):
    """Tools that are SQL over the domain's own world, which must be one of tables."""

    sql: SqlTools
    """Tool name to tool."""

    @property
    def _source(self) -> str:
        return "sql"

    @property
    def _outside(self) -> bool:
        return False


class SimulatedToolsSpec(AnyToolsSpec):
    """Tools that an LLM simulates, with the dialogue's world for its memory; see docs/synthesis.md."""

    call_timeout_s: Seconds = 600.0
    """Seconds one call may take, with all tries of the simulator."""
    simulated: SimulatorLlmSpec
    """Who simulates, and which tools."""

    @model_validator(mode="after")
    def _all_tries_fit_into_a_call(self) -> SimulatedToolsSpec:
        needed = self.simulated.tries * self.simulated.timeout_s
        if self.call_timeout_s < needed:
            raise ValueError(
                f"a call may take {self.call_timeout_s:g} s (call_timeout_s), and the simulator's "
                f"{self.simulated.tries} tries {needed:g} s; raise the one, or lower the others"
            )
        return self

    @property
    def _source(self) -> str:
        return "simulated"

    @property
    def _outside(self) -> bool:
        return False


class CommandToolsSpec(AnyToolsSpec):
    """An MCP server that is a process and speaks over stdio, in any language."""

    command: Annotated[list[str], Field(min_length=1)]
    """Program and arguments, run in the domain's folder, once per dialogue. `{home}` stands for a
    new folder that goes with the process and is its HOME."""
    env: dict[str, str] = {}
    """Environment variables; of ours it sees `PATH`, `SHELL`, `TERM` and the user's name, nothing
    else. `{home}` is replaced as in `command`."""
    secrets: dict[str, EnvName] = {}
    """Its environment variable to the one of ours that holds the value. The value is taken out of
    whatever the server says, and is never recorded."""
    files: str | None = None
    """A folder, relative to the domain, whose content is copied into its HOME before it starts."""
    stateless: bool = False
    """Calls change nothing in it: all dialogues share `pool` processes."""
    pool: Annotated[int, Field(gt=0)] = 4
    """For `stateless`: processes at most."""
    world_resource: str | None = None
    """URI of a resource that returns the whole world as JSON, for a server that starts from the
    dialogue's world: it finds it in the JSON file that `MUARL_WORLD` names."""

    @model_validator(mode="after")
    def _secrets_by_name(self) -> CommandToolsSpec:
        _refuse_secrets(self.env)
        _refuse_secret_arguments(self.command)
        for value in (*self.env.values(), *self.command):
            refuse_userinfo(value.partition("=")[2] if value.startswith("-") else value)
        return self

    @model_validator(mode="after")
    def _state_needs_a_process(self) -> CommandToolsSpec:
        given = [part for part in ("world_resource", "state", "setup") if getattr(self, part)]
        if self.stateless and given:
            raise ValueError(f"a stateless server has no {given[0]}; declare `stateless: false`")
        if self.world_resource is not None and len(given) > 1:
            raise ValueError(
                f"world_resource shows the whole world, so there is no {given[1]}; give one of them"
            )
        return self

    @property
    def _source(self) -> str:
        return PurePath(self.command[0]).stem or "command"

    @property
    def _outside(self) -> bool:
        return self.world_resource is None and not self.state


class UrlToolsSpec(AnyToolsSpec):
    """An MCP server that runs elsewhere, over streamable HTTP; each dialogue is one session."""

    url: HttpUrl
    """Its address, `https://example.org/mcp`."""
    headers: dict[str, str] = {}
    """HTTP headers sent with every request."""
    secrets: dict[str, EnvName] = {}
    """HTTP header to the environment variable that holds its value; for `Authorization` a value of
    one word is sent as `Bearer <value>`. The value is taken out of whatever the server says, and is
    never recorded."""

    @model_validator(mode="after")
    def _secrets_by_name(self) -> UrlToolsSpec:
        _refuse_secrets(self.headers)
        return self

    @property
    def _source(self) -> str:
        return urlsplit(self.url).hostname or "url"

    @property
    def _outside(self) -> bool:
        return True


class PluginToolsSpec(AnyToolsSpec):
    """A tool server of an installed package; see docs/plugins.md."""

    plugin: PluggedToolServer
    """Its name and its options: `{name: options}`."""

    @model_validator(mode="after")
    def _no_state_to_be_read(self) -> PluginToolsSpec:
        for part in ("setup", "state"):
            if getattr(self, part):
                raise ValueError(
                    f"{part} is for MCP servers; one of a package begins with the dialogue's world and "
                    "writes into it itself"
                )
        return self

    @property
    def _source(self) -> str:
        return self.plugin.name

    @property
    def _outside(self) -> bool:
        return True


def _refuse_secrets(given: Mapping[str, str]) -> None:
    """A secret in a domain's file would be recorded wherever the domain is."""
    for name in given:
        if SECRET_KEY.search(name) or name.lower() in ("authorization", "cookie"):
            raise ValueError(
                f"{name!r} would be recorded; name the environment variable that holds it, under "
                f"`secrets: {{{name}: NAME}}`"
            )


def _refuse_secret_arguments(command: Sequence[str]) -> None:
    """`--api-key=...` and `--token ...` would be recorded, and seen by all programs of the machine."""
    for argument, following in zip(command, [*command[1:], ""], strict=True):
        name, equals, value = argument.partition("=")
        if not SECRET_KEY.search(name) or not (name.startswith("-") or equals):
            continue
        if value if equals else following and not following.startswith("-"):
            raise ValueError(
                f"the value of {name!r} would be recorded; let the program read it from a variable "
                "of its environment, and name yours that holds it: `secrets: {ITS_NAME: YOUR_NAME}`"
            )


def _variant(value: Any) -> str | None:
    """Tag of the model that a mapping, or a model already made, belongs to."""
    if isinstance(value, AnyToolsSpec):
        return f"<{type(value).__name__}>"
    if not isinstance(value, Mapping):
        return None
    given = [model for key, model in VARIANTS.items() if key in value]
    return f"<{given[0].__name__}>" if len(given) == 1 else None


VARIANTS: dict[str, type[AnyToolsSpec]] = {
    "python": PythonToolsSpec,
    "sql": SqlToolsSpec,
    "simulated": SimulatedToolsSpec,
    "command": CommandToolsSpec,
    "url": UrlToolsSpec,
    "plugin": PluginToolsSpec,
}
"""The key that says what a server is, to its model."""

ToolsSpec = Annotated[
    Annotated[PythonToolsSpec, Tag("<PythonToolsSpec>")]
    | Annotated[SqlToolsSpec, Tag("<SqlToolsSpec>")]
    | Annotated[SimulatedToolsSpec, Tag("<SimulatedToolsSpec>")]
    | Annotated[CommandToolsSpec, Tag("<CommandToolsSpec>")]
    | Annotated[UrlToolsSpec, Tag("<UrlToolsSpec>")]
    | Annotated[PluginToolsSpec, Tag("<PluginToolsSpec>")],
    Discriminator(
        _variant,
        custom_error_type="one_of",
        custom_error_message=f"give exactly one of {', '.join(VARIANTS)}",
    ),
]
"""One tool server."""


def listed(value: Any) -> Any:
    """One server as a list of one."""
    return value if isinstance(value, (list, tuple)) else [value]


ToolServersSpec = Annotated[
    list[ToolsSpec],
    BeforeValidator(listed, json_schema_input_type=ToolsSpec | list[ToolsSpec]),
    Field(min_length=1),
]
"""One server or a list of them."""
