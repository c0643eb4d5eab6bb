"""A world of tables, and tools that are SQL over it: a domain without Python."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from muarl.spec.base import Spec

_KINDS = {
    "string": "text",
    "integer": "a whole number of at most 64 bits",
    "number": "a number",
    "boolean": "true or false",
}

PARAMETER_PATTERN = r"^[A-Za-z_]\w*$"

ParameterName = Annotated[str, Field(pattern=PARAMETER_PATTERN)]
Value = Any
"""Text, a number or null; true and false are kept as 1 and 0. Checked where it meets its column."""


class SqlWorldSpec(Spec):
    """Tables, and the rows that every world begins with."""

    tables: str = ""
    """CREATE TABLE, INDEX and VIEW statements, which semicolons end. A table's rows lie in the order
    of its primary key."""
    files: list[str] = []
    """Files relative to the domain, read in order after `tables`: `.sql` (statements as above, and
    INSERT), `.csv` (rows of the table it is named after; the first line names columns, an empty cell
    is NULL) and `.yaml` (rows as below)."""
    rows: dict[str, dict[str, dict[str, Value]]] = {}
    """Table to key to the row's other columns, inserted last. Keys are text, so a number is put in
    quotes; of a primary key of several columns it is the JSON list of their values, `["A", 1]`."""
    unordered: list[str] = []
    """Tables with an INTEGER PRIMARY KEY that SQLite gives out: worlds in which such a table holds
    the same rows under other numbers are the same. Tables without a key are so in any case."""

    @model_validator(mode="after")
    def _something(self) -> SqlWorldSpec:
        if not self.tables and not self.files:
            raise ValueError("give the CREATE TABLE statements under tables or in files")
        return self


class SqlParameterSpec(Spec):
    """One parameter of a tool; `:name` in its SQL."""

    type: Literal["string", "integer", "number", "boolean"] = "string"
    """What it must be. Bound to SQL as text, a whole number, a real number, 1 or 0."""
    description: str = ""
    """For the policy."""
    enum: list[Value] = []
    """The values it may have, if not any."""
    required: bool = True
    """Whether a call must give it."""
    default: Value = None
    """Its value where a call leaves it out: NULL, or this."""

    @model_validator(mode="after")
    def _fitting(self) -> SqlParameterSpec:
        if self.required and self.default is not None:
            raise ValueError("a default goes with required: false")
        for value in (*self.enum, *([] if self.default is None else [self.default])):
            if problem := self.problem(value, enum=value is self.default):
                raise ValueError(f"{value!r} {problem}")
        return self

    def problem(self, value: Any, *, enum: bool = True) -> str | None:
        """Why a value is none of this parameter, "must be ..."; None if it is.

        Args:
            value: JSON.
            enum: Whether it must be one of `enum`.
        """
        if not _is(value, self.type):
            return f"must be {_KINDS[self.type]}"
        if enum and self.enum and value not in self.enum:
            return f"must be one of {', '.join(map(str, self.enum))}"
        return None


class SqlGuardSpec(Spec):
    """A condition for a call."""

    query: str
    """It holds if the first value of the first row is neither NULL nor 0; without a row it fails."""
    error: str
    """What the policy is told if it fails; `{name}` stands for a parameter, or for a column of the
    first row."""


class SqlToolSpec(Spec):
    """One tool. Guards, statements and query are one transaction: all of it happens, or nothing."""

    description: str
    """For the policy."""
    parameters: dict[ParameterName, SqlParameterSpec] = {}
    """What a call gives, in order."""
    guards: list[SqlGuardSpec] = []
    """What must hold, checked in order before anything is done."""
    statements: list[str] = []
    """INSERT, UPDATE and DELETE statements, in order."""
    query: str | None = None
    """A SELECT whose rows are the answer, asked after the statements."""
    result: str | None = None
    """How the answer is worded: each row of the query, `{column}` or `{parameter}`, where NULL is
    `none`. Left out: the rows as JSON; `ok` where there is no query."""
    empty: str = "none"
    """The answer if the query gives no row."""
    separator: str = "\n"
    """What stands between rows."""
    max_rows: Annotated[int, Field(gt=0)] = 100
    """Further rows are left out, and the answer says so."""


SqlTools = Annotated[dict[ParameterName, SqlToolSpec], Field(min_length=1)]
"""Tool name to tool."""


def _is(value: Any, kind: str) -> bool:
    if kind == "string" or kind == "boolean":
        return isinstance(value, str if kind == "string" else bool)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return kind == "number" or (value.is_integer() and abs(value) < 2**53)


def sql_of(tool: SqlToolSpec) -> list[tuple[tuple[str | int, ...], str, bool]]:
    """Place, text and whether it writes, of every piece of a tool's SQL."""
    pieces: list[tuple[tuple[str | int, ...], str, bool]] = [
        (("guards", index, "query"), guard.query, False) for index, guard in enumerate(tool.guards)
    ]
    pieces += [(("statements", i), text, True) for i, text in enumerate(tool.statements)]
    if tool.query is not None:
        pieces.append((("query",), tool.query, False))
    return pieces


def json_schema(tool: SqlToolSpec) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments."""
    properties: dict[str, dict[str, Any]] = {}
    for name, parameter in tool.parameters.items():
        properties[name] = {"type": parameter.type}
        if parameter.description:
            properties[name]["description"] = parameter.description
        if parameter.enum:
            properties[name]["enum"] = parameter.enum
        if parameter.default is not None:
            properties[name]["default"] = parameter.default
    required = [name for name, parameter in tool.parameters.items() if parameter.required]
    return {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        "additionalProperties": False,
    }
