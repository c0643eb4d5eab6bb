"""Write specs as YAML that a person would write, and that loads back equal."""

from __future__ import annotations

import io
import re
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.representer import SafeRepresenter

from muarl.spec.base import Spec
from muarl.spec.plugged import Plugged
from muarl.spec.run import RunSpec
from muarl.spec.variables import BEGINS, is_reference

# What is safe without quotes under any YAML version, and reads as text in ours.
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_./ -]*[A-Za-z0-9_]")
_RESERVED = frozenset(["null", "true", "false", "yes", "no", "on", "off", "y", "n"])
# ruamel's literal blocks lose these: they are line ends or are escaped only inside quotes.
_BLOCK = re.compile(r"[^\x00-\x08\x0b-\x1f\x7f-\xa0\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]+")


def dump_spec(spec: Spec, *, schema: str | None = None, defaults: bool = False) -> str:
    """A spec as YAML.

    Args:
        spec: What to write.
        schema: Path or URL of the file kind's JSON Schema, named for editors in the first line.
        defaults: Also write values that are the defaults, as a record of a run wants it.

    Returns:
        Text that `load_spec` reads back as an equal spec.

    Raises:
        ValueError: It holds a text that would be read as a reference to an environment variable.
    """
    yaml = YAML(typ="safe", pure=True)
    yaml.Representer = _Representer
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.allow_unicode = True
    yaml.width = 100
    out = io.StringIO()
    yaml.dump(_plain(spec, defaults), out)
    if isinstance(spec, RunSpec) and BEGINS in out.getvalue():
        raise ValueError(f"a run's text holds {BEGINS!r}, which would be read as a variable")
    head = f"# yaml-language-server: $schema={schema}\n" if schema else ""
    return head + out.getvalue()


def _plain(value: Any, defaults: bool) -> Any:
    if isinstance(value, Spec):
        fields = type(value).model_fields
        return {
            fields[name].alias or name: _plain(at, defaults)
            for name in fields
            if not _left_out(at := getattr(value, name), fields[name].default, defaults)
        }
    if isinstance(value, Plugged):
        options = value.options.model_dump(mode="json", exclude_defaults=not defaults)
        return {value.name: _plain(options, defaults)}
    if isinstance(value, dict):
        return {key: _plain(at, defaults) for key, at in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(at, defaults) for at in value]
    if isinstance(value, str) and is_reference(value):
        raise ValueError(f"{value!r} would be read as a variable; write the value")
    return value


def _left_out(value: Any, default: Any, defaults: bool) -> bool:
    """None that stands for "not given" is never written; other defaults only when asked for."""
    return default is value is None or (
        not defaults and type(value) is type(default) and value == default
    )


class _Representer(SafeRepresenter):
    """Plain words bare, several lines as a block, everything else in double quotes."""

    def represent_str(self, data: str) -> ScalarNode:
        bare = _BARE.fullmatch(data) and data.lower() not in _RESERVED and "  " not in data
        block = "\n" in data and _BLOCK.fullmatch(data) and data.strip() and data[0] not in " \n\t"
        style = None if bare else "|" if block else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Representer.add_representer(str, _Representer.represent_str)
