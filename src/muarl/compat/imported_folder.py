"""Files of an imported domain: as the importer writes them, and as the domain's own Python reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from muarl.errors import SetupError

_HEAD = """\
# yaml-language-server: $schema=schemas/domain.v1.json
# Written by `muarl import`; what it was made from stands in origin.json. Each task has the official reward of its own; the one here counts for none.
"""


def domain_yaml(spec: Mapping[str, Any], code: str) -> str:
    """A domain's file in flow style, which JSON is.

    Args:
        spec: What it says, key by key; `{code}` in it stands for the domain's Python.
        code: The file of that Python.
    """
    said = "\n".join(
        f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in spec.items()
    )
    return f"{_HEAD}{said.replace('{code}', code)}\n"


def read_imported(path: Path, kind: Any) -> Any:
    """What a file of JSON holds that the importer wrote.

    Args:
        path: The file.
        kind: The type it is decoded as.

    Raises:
        SetupError: It is not there, or is no such JSON.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError) as error:
        raise SetupError(f"{path} cannot be read ({error}); import the domain anew") from error
