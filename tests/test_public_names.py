"""`import muarl` is instant, and its names are what it says."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import muarl


def test_every_public_name_is_there() -> None:
    for name in muarl.__all__:
        assert getattr(muarl, name) is not None
    assert muarl.__all__ == sorted(muarl.__all__)


def test_type_checkers_see_the_same_names() -> None:
    assert muarl.__file__ is not None
    tree = ast.parse(Path(muarl.__file__).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = [
        (alias.asname, node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    assert dict(seen) == muarl._HOME


def test_importing_muarl_loads_nothing_heavy() -> None:
    heavy = {"torch", "transformers", "vllm", "mcp", "anyio", "pydantic"}
    code = f"import muarl, sys; sys.exit(repr({heavy!r} & set(sys.modules)) if {heavy!r} & set(sys.modules) else 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
