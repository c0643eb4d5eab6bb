"""What all spec models share."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticKnownError

from muarl.errors import did_you_mean


class Spec(BaseModel):
    """A closed, immutable model whose attribute docstrings appear in the JSON Schema."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False
    )

    @field_validator("version", mode="before", check_fields=False)
    @classmethod
    def _whole_version(cls, version: Any) -> Any:
        """A version is a whole number: Python, and pydantic with it, takes `true` and 1.0 for 1."""
        known = get_args(cls.model_fields["version"].annotation)
        if type(version) in (bool, float) and len(known) == 1:  # an option of a plug-in may be any
            (newest,) = known
            raise PydanticKnownError("literal_error", {"expected": str(newest)})
        return version

    def to_yaml(self, *, schema: str | None = None, defaults: bool = False) -> str:
        """The YAML that loads back as an equal spec; see `muarl.spec.dump_spec`."""
        from muarl.spec.dump import dump_spec  # which writes all models, and so imports this one

        return dump_spec(self, schema=schema, defaults=defaults)


class OneOf(Spec):
    """A mapping of which exactly one key is given, and says what it is.

    Attributes:
        beside: Keys that may stand beside that one, whichever it is.
    """

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})
    beside: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def kinds(cls) -> list[str]:
        """The keys of which one is given."""
        return [name for name in cls.model_fields if name not in cls.beside]

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        *kinds, last = self.kinds()
        if sum(getattr(self, kind) is not None for kind in (*kinds, last)) != 1:
            raise ValueError(f"give exactly one of {', '.join(kinds)} and {last}")
        return self


class OneOrName(OneOf):
    """The same, or only the name of a kind: `engine: vllm` stands for `engine: {vllm: {}}`."""

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        kinds = [name for name, field in cls.model_fields.items() if _is_spec(field)]
        if value not in kinds:
            choices = f"{', '.join(kinds[:-1])} or {kinds[-1]}"
            raise ValueError(f"must be {choices}, got {value!r}{did_you_mean(value, kinds)}")
        return {value: {}}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        bare = [name for name, field in cls.model_fields.items() if not _needs(field)]
        names = {"enum": bare, "type": "string"}
        return {"anyOf": [names, handler.resolve_ref_schema(handler(schema))]}

    @property
    def name(self) -> str:
        """Which it is; of an installed package, what that calls it."""
        kinds = type(self).model_fields
        name, value = next((k, v) for k in kinds if (v := getattr(self, k)) is not None)
        return name if isinstance(value, Spec) else str(value.name)


def _needs(kind: FieldInfo) -> bool:
    """Whether a kind has settings that must be given, or a name, as a plug-in has."""
    model = get_args(kind.annotation)[0]
    return not _is_spec(kind) or any(field.is_required() for field in model.model_fields.values())


def _is_spec(kind: FieldInfo) -> bool:
    return issubclass(get_args(kind.annotation)[0], Spec)


ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
PYTHON_REF_PATTERN = r"^([\w-]+/)*[\w-]+\.py:\w+$"
ENV_NAME_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"
SECRET_KEY = re.compile(r"(?i)(token|secret|password|api[_-]?key|credentials?)$")
"""What a key ends in whose value is a secret."""

Id = Annotated[str, Field(pattern=ID_PATTERN)]
"""An identifier: letters, digits, `_`, `-`, `.`."""

LARGEST_WEIGHT = 1e9
"""Weights are shares beside one another: so large at most that their sum is a number."""

PythonRef = Annotated[str, Field(pattern=PYTHON_REF_PATTERN)]
"""`file.py:name`, the file in the folder of the spec that names it, or below: `code/file.py:name`."""

PYTHON_ANYWHERE_PATTERN = r"^(.*/)?[\w-]+\.py:\w+$"

PythonAnywhere = Annotated[str, Field(pattern=PYTHON_ANYWHERE_PATTERN)]
"""`file.py:name`, the file anywhere: `../agents/mine.py:agent`."""

EnvName = Annotated[str, Field(pattern=ENV_NAME_PATTERN)]
"""Name of an environment variable that holds a secret; the secret itself is never written."""

Text = Annotated[
    str,
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "properties": {"file": {"type": "string"}},
                    "required": ["file"],
                    "additionalProperties": False,
                },
            ]
        }
    ),
]
"""A text, or `{file: rules.md}`: a file that holds it, relative to the spec."""

Fraction = Annotated[float, Field(ge=0, le=1)]
