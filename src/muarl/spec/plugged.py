"""A plug-in that a spec names, and what the spec says to it.

`plugin: {name: options}` stands wherever a kind of its group may stand. The options are validated by the
plug-in's own closed model, like everything else in the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar, NoReturn, Self, TypeVar

from pydantic import (
    BaseModel,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import (
    CoreSchema,
    InitErrorDetails,
    PydanticCustomError,
    core_schema,
    to_json,
)

from muarl.authors import RAISED, blame, let_others_pass
from muarl.errors import PluginError
from muarl.spec.plugin import KINDS, Options, Plugin, Provided, installed, provided

P = TypeVar("P", bound=Plugin[Any])

ERROR, NAME_ERROR = "plugin", "plugin_name"
"""Types of pydantic's errors that say what is wrong with a plug-in that a spec names: with what stands
there, or with the name that is the last part of the error's place."""


class Plugged:
    """A plug-in that a spec names, and what the spec says to it.

    In a file a mapping of one name to options, `{patient: {patience: 3}}`, or the name alone where
    nothing needs to be said.

    Attributes:
        name: Its name.
        options: As its own model has read them.
    """

    group: ClassVar[str]

    def __init__(self, name: str, options: Options) -> None:
        self.name = name
        self.options = options

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.options!r})"

    @property
    def provided(self) -> Provided:
        """Who provides it.

        Raises:
            PluginError: Nobody does any more.
        """
        return provided(self.group, self.name)

    def registered(self, kind: type[P]) -> P:
        """What its package registered, which is of a kind."""
        found = self.provided.load()
        assert isinstance(found, kind)  # `load` looked at its group
        return found

    @classmethod
    def model_of(cls, name: str) -> type[Options] | None:
        """The model of a plug-in's options; None where it cannot be had."""
        try:
            model: type[Options] = provided(cls.group, name).load().options
        except PluginError:
            return None
        return model

    @classmethod
    def names(cls) -> list[str]:
        """Those that are installed."""
        return list(installed(cls.group))

    @classmethod
    def _read(cls, value: Any) -> Self:
        if isinstance(value, cls):
            return value
        named = {value: {}} if isinstance(value, str) else value
        if not isinstance(named, Mapping) or len(named) != 1:
            kind = KINDS[cls.group]
            have = f"; installed: {', '.join(cls.names())}" if cls.names() else ""
            raise PydanticCustomError(
                ERROR,
                "{said}",
                {"said": f"expected the name of a {kind}, or one name and its options{have}"},
            )
        ((name, given),) = named.items()
        try:
            model = provided(cls.group, str(name)).load().options
        except PluginError as error:
            if isinstance(value, str):
                raise PydanticCustomError(ERROR, "{said}", {"said": str(error)}) from None
            _refuse(str(error), str(name), given)
        if isinstance(given, model):
            return cls(str(name), given)
        try:
            # As JSON, in which a text may stand for a path or a date; nested, so that errors have places.
            named = TypeAdapter(dict[str, model]).validate_json(  # type: ignore[valid-type]
                to_json({name: given}), strict=True
            )
        except ValidationError:
            raise
        except RAISED as error:  # boundary: validators of the package raise anything
            let_others_pass(error)
            said = f"the options of {provided(cls.group, str(name))} raised {blame(error)}"
            raise PydanticCustomError(ERROR, "{said}", {"said": said}) from error
        return cls(str(name), named[name])

    def _dumped(self, info: core_schema.SerializationInfo) -> dict[str, Any]:
        options = self.options.model_dump(
            mode=info.mode,
            exclude_defaults=info.exclude_defaults,
            exclude_unset=info.exclude_unset,
            exclude_none=info.exclude_none,
        )
        return {self.name: options}

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._read,
            serialization=core_schema.plain_serializer_function_ser_schema(
                cls._dumped, info_arg=True
            ),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        one: dict[str, Any] = {"type": "object", "minProperties": 1, "maxProperties": 1}
        models = (
            {name: cls.model_of(name) for name in cls.names()} if _INSTALLED_SHOWN.get() else {}
        )
        if not models:
            return {"anyOf": [{"type": "string"}, one]}
        one["properties"] = {
            name: {"type": "object"} if model is None else handler(model.__pydantic_core_schema__)
            for name, model in models.items()
        }
        one["additionalProperties"] = False
        bare = [name for name, model in models.items() if model is None or not _needs(model)]
        return {"anyOf": [{"type": "string", "enum": bare}, one] if bare else [one]}


_INSTALLED_SHOWN: ContextVar[bool] = ContextVar("muarl_installed_shown", default=False)


@contextmanager
def installed_shown() -> Iterator[None]:
    """Within the block JSON Schemas know the options of the plug-ins installed.

    Of a kind of which any is installed they take no others.
    """
    token = _INSTALLED_SHOWN.set(True)
    try:
        yield
    finally:
        _INSTALLED_SHOWN.reset(token)


def _needs(model: type[Options]) -> bool:
    return any(field.is_required() for field in model.model_fields.values())


def _refuse(said: str, name: str, given: Any) -> NoReturn:
    error = PydanticCustomError(NAME_ERROR, "{said}", {"said": said})
    details = InitErrorDetails(type=error, loc=(name,), input=given)
    raise ValidationError.from_exception_data("plugin", [details])


class PluggedUser(Plugged):
    """A user of an installed package."""

    group = "muarl.users"


class PluggedToolServer(Plugged):
    """A tool server, likewise."""

    group = "muarl.tool_servers"


class PluggedWorld(Plugged):
    """A world, likewise."""

    group = "muarl.worlds"


class PluggedPredicate(Plugged):
    """A predicate, likewise."""

    group = "muarl.predicates"


class PluggedPolicy(Plugged):
    """A policy, likewise."""

    group = "muarl.policies"


class PluggedSink(Plugged):
    """A sink, likewise."""

    group = "muarl.sinks"


def plugged_in(
    value: Any, loc: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], Plugged]]:
    """The plug-ins that a spec, or a part of one, names, and where.

    Args:
        value: The spec.
        loc: Where it stands itself.
    """
    if isinstance(value, Plugged):
        yield loc, value
    elif isinstance(value, BaseModel):
        for name, field in type(value).model_fields.items():
            yield from plugged_in(getattr(value, name), (*loc, field.alias or name))
    elif isinstance(value, Mapping):
        for key, below in value.items():
            yield from plugged_in(below, (*loc, key))
    elif isinstance(value, list | tuple):
        for index, below in enumerate(value):
            yield from plugged_in(below, (*loc, index))


def versions_of(*specs: Any) -> dict[str, str]:
    """What specs name, by kind and name, to the package and its version: `{"user patient": "my-package 0.1"}`."""
    named = (one.provided for spec in specs for _, one in plugged_in(spec))
    return {f"{one.kind} {one.name}": one.by for one in named}
