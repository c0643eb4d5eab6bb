"""What tests of models that write calls into their text share: such a model, calls, an evaluation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from muarl.cli import main
from muarl.messages import Message, ToolCall

ANY_TEXT = st.text("[]()='\",:{}*.fg1+- \n`", max_size=60) | st.text(max_size=30)
"""Texts, many of them nearly calls."""
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs",)), max_size=6)
)


class Writer:
    """Writes the texts of a list, as a model does, and the last words when there are no more."""

    def __init__(self, *texts: str, last: str) -> None:
        self._left = list(texts)
        self._last = last

    def act(self, history: Sequence[Message]) -> Message:
        del history
        return Message("assistant", self._left.pop(0) if self._left else self._last)


def calls(*names: str, dicts: bool) -> st.SearchStrategy[list[ToolCall]]:
    """Lists of calls.

    Args:
        names: Of tools.
        dicts: Their arguments may hold mappings.
    """
    values = st.recursive(
        _SCALARS,
        lambda v: st.lists(
            v | st.dictionaries(st.text("ab", max_size=2), v, max_size=2) if dicts else v,
            max_size=3,
        ),
        max_leaves=5,
    )
    call = st.builds(
        ToolCall,
        id=st.just(""),
        name=st.sampled_from(names),
        arguments=st.dictionaries(st.sampled_from(["a", "b_1"]), values, max_size=3),
    )
    return st.lists(call, min_size=1, max_size=3)


def evaluated(
    folder: Path, run: str, user: str, tasks: int, capsys: pytest.CaptureFixture[str]
) -> tuple[dict[str, Any], str]:
    """What `muarl eval` finds of the gold calls and of doing nothing, and what it says beside it.

    Args:
        folder: An empty one.
        run: The run file; `prompted.yaml` of a domain is what it names.
        user: The users' name and spec.
        tasks: So many.
        capsys: Of the test.
    """
    (folder / "run.yaml").write_text(f"version: 1\nmodel: {{tiny: {{}}}}\n{run}")
    (folder / "grid.yaml").write_text(
        "version: 1\nrun: run.yaml\npolicies: {gold: {expert: {}}, idle: {trivial: do_nothing}}\n"
        f"users: {{{user}}}\ntasks: {tasks}\ntrials: 1\n"
    )
    assert main(["eval", str(folder / "grid.yaml"), "--out", str(folder / "out"), "--json"]) == 0
    said, beside = capsys.readouterr()
    found = {cell["policy"]: cell["summary"] for cell in json.loads(said)["cells"]}
    assert [found[name]["success"]["value"] for name in ("gold", "idle")] == [1.0, 0.0]
    return found, beside
