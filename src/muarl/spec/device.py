"""The user's own side of a domain: tools that only she calls, and her part of the world."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field, model_validator

from muarl.spec.base import OneOf, PythonRef, Spec
from muarl.spec.tools import ToolServersSpec

DEVICE = "device"
"""Where the world of a device lies in the dialogue's world: `device.airplane_mode`."""


class DeviceStateSpec(OneOf):
    """Where the device's part of the world, a document, comes from: one of these."""

    data: dict[str, Any] | None = None
    """It itself."""
    file: str | None = None
    """A JSON file, relative to the domain."""
    python: PythonRef | None = None
    """A function without arguments that returns it."""

    @model_validator(mode="before")
    @classmethod
    def _no_tables(cls, given: Any) -> Any:
        if isinstance(given, dict) and "sql" in given:
            raise ValueError(
                "a device has no tables of its own; keep her state in the domain's tables, and leave "
                "`device.world` out: her tools act on those then, and may be SQL"
            )
        return given


class SyncSpec(Spec):
    """One thing that is brought in step: a value copied from a place to another, or a function."""

    model_config = ConfigDict(
        validate_by_name=True, validate_by_alias=True, serialize_by_alias=True
    )

    from_: str | None = Field(None, alias="from", min_length=1)
    """Dotted path in the world to copy from. `{device.line}` in it stands for the text or number
    at that path, as one key: `lines.{device.line}.status`."""
    to: str | None = Field(None, min_length=1)
    """Dotted path to copy to, which holds something already, or whose last part is a new key. Keys
    that hold dots may be in quotes, here and above: `device.apps."v1.2"`."""
    python: PythonRef | None = None
    """A function `sync(world)` that writes what follows from the rest of the whole world, the
    device's part at `world["device"]`. It must draw nothing, ask no clock and settle at once: run
    again, it changes nothing."""

    @model_validator(mode="after")
    def _one_kind(self) -> SyncSpec:
        copies = [end is not None for end in (self.from_, self.to)]
        if any(copies) != all(copies) or any(copies) == (self.python is not None):
            raise ValueError("give either from and to, or python")
        return self


class DeviceSpec(Spec):
    """What the user can do herself."""

    tools: ToolServersSpec
    """Her tool servers: one, or a list. The policy sees neither these tools nor what they answer."""
    writes: list[str] = []
    """Her tools that change the world."""
    world: DeviceStateSpec | None = None
    """The state behind her tools, at `device` in the dialogue's world, where a task's `world` may
    change it. Left out: her tools act on the domain's own world."""
    sync: list[SyncSpec] = []
    """How the two sides are kept in step: these are done in order before a dialogue, and after
    every call of either side."""
