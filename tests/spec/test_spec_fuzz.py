"""Whatever a file holds, loading it gives a spec or a SpecError with places in the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spec_files import DOMAIN, RUN, TASKS, write_all

from muarl.errors import Problem, SpecError
from muarl.spec import load_domain_spec, load_run, load_tasks_file

LOADERS = {"domain": load_domain_spec, "tasks": load_tasks_file, "run": load_run}
TEXTS = {"domain": DOMAIN, "tasks": TASKS, "run": RUN}
SHARDS = [
    "\n",
    "\n\n",
    "\t",
    " ",
    "  ",
    "- ",
    "? ",
    ": ",
    ":",
    ",",
    "[",
    "]",
    "{",
    "}",
    "#",
    "|",
    ">",
    "&a ",
    "*a",
    "!!str ",
    "!x ",
    "<<: ",
    "'",
    '"',
    "%YAML 1.2\n",
    "---\n",
    "...\n",
    "~",
    "\\",
    "null",
    "true",
    ".nan",
    "-.inf",
    "1e999",
    "9" * 30,
    "0o7",
    "12:30",
    "\x00",
    "�",
    "\xa0",
    "\u2028",
    "\x85",
    "\ufeff",
    '"\\ud800"',
    '"\\UFFFFFFFF"',
    "? {a: b}",
    "[[[[",
    "@",
    "`",
    "=",
    "1",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz")
    write_all(folder)
    return folder


@st.composite
def mutated(draw: st.DrawFn, text: str) -> str:
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        end = min(len(text), at + draw(st.integers(0, 12)))
        shard = draw(st.sampled_from(SHARDS) | st.just(text[end : end + 20]) | st.text(max_size=4))
        text = text[:at] + shard + text[end:]
    return text


def attempt(folder: Path, kind: str, raw: bytes) -> None:
    path = folder / f"fuzzed-{kind}.yaml"
    path.write_bytes(raw)
    problems: tuple[Problem, ...] | None = None
    try:
        LOADERS[kind](path)
    except SpecError as error:
        problems = error.problems
    if problems is None:
        return
    assert problems
    last_line = len(raw.decode("utf-8", "replace").splitlines()) + 1
    for problem in problems:
        assert problem.path == str(path)
        assert problem.message
        assert 0 <= problem.line <= last_line


@settings(max_examples=200, deadline=None)
@given(data=st.data(), kind=st.sampled_from(list(LOADERS)))
def test_mutated_files_give_nothing_but_spec_errors(
    folder: Path, data: st.DataObject, kind: str
) -> None:
    text = data.draw(mutated(TEXTS[kind]))
    attempt(folder, kind, text.encode("utf-8", "surrogatepass"))


@settings(max_examples=100, deadline=None)
@given(raw=st.binary(max_size=60), kind=st.sampled_from(list(LOADERS)))
def test_random_bytes_give_nothing_but_spec_errors(folder: Path, raw: bytes, kind: str) -> None:
    attempt(folder, kind, raw)


@settings(max_examples=100, deadline=None)
@given(shards=st.lists(st.sampled_from(SHARDS), max_size=30), kind=st.sampled_from(list(LOADERS)))
def test_random_yaml_signs_give_nothing_but_spec_errors(
    folder: Path, shards: list[str], kind: str
) -> None:
    attempt(folder, kind, "".join(shards).encode("utf-8", "surrogatepass"))
