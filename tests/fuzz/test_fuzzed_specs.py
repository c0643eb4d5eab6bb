"""Whatever a file holds, loading it gives a spec or a SpecError with places in the file.

What is accepted says what the file said: it is dumped and read back equal, has no key that no field
has, and no number that is none.
"""

from __future__ import annotations

import math
import re
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fuzz_tally import TALLIES
from hostile import PLANTED, SHARDS, as_yaml, spoiled_text, spoiled_tree
from hostile import Path as Loc
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from spec_files import DOMAIN, RUN, TASKS, write_all
from sql_files import write_sql_domain

from muarl.errors import Problem, SpecError
from muarl.json_values import json_problem
from muarl.spec import (
    Located,
    dump_spec,
    load_domain_spec,
    load_grid,
    load_run,
    load_spec,
    load_synth,
    load_task_files,
    load_tasks_file,
)
from muarl.spec.base import Spec
from muarl.spec.domain import DomainSpec
from muarl.spec.grid import GridSpec
from muarl.spec.kinds import kind_of
from muarl.spec.predicate import RewardFile
from muarl.spec.run import RunSpec
from muarl.spec.shape import shape_at
from muarl.spec.sql_seed import load_database
from muarl.spec.synth import SynthSpec
from muarl.spec.task import TasksFile
from muarl.world import plain
from muarl.world.sql import SqlWorld

ODD_ENDS = re.compile("[\\r\\x0b\\x0c\\x1c-\\x1e\\x85\\u2028\\u2029]")
SHIPPED = Path(__file__).parents[2]
TALLY = TALLIES["specs"]

REWARD = """\
version: 1
reward:
  - gold_world: true
  - world: {path: orders.W1.status, one_of: [null, cancelled]}
  - called: {tool: cancel, arguments: {order_id: W1}, before: look, at_least: 1, at_most: 3}
  - weighted:
      success: {all: [{said: {text: done}}, {not: {never_called: {tool: look}}}]}
      side: [{weight: 0.25, when: {count: {of: questions, at_most: 2}}}]
      failure_cap: 0.5
metrics:
  - sql: {query: SELECT 1, matches: "^W[0-9]+$", parameters: {a: 1, b: null}}
  - judge: {criterion: It was kind., model: m, base_url_env: JUDGE, timeout_s: 1.5}
  - confirmed: {}
"""


SETTINGS = (
    *("grpo.lr=1e-6", "grpo.iterations=3", "seed=1", "model.tiny={}", "eval.split=dev", "x=1"),
    *("engine={vllm: {}}", "engine=embedded", "rollout.max_turns=.nan", "a.b.c=[1, {d: 2}]"),
    *("domain=${env:HOME}", "domain=${env:NO_SUCH:-domain.yaml}", "model.path=small", "=", "a="),
)
RUN_PARTS = {
    "engine": {"vllm": {}},
    "eval": {"split": "dev", "episodes": 3},
    "model": {"path": "."},
    "seed": 1,
    "threads": 1,
}
STATEMENTS = (
    *("", "CREATE TABLE t (a INT PRIMARY KEY);", "CREATE TABLE t (a, b, PRIMARY KEY (a, b));"),
    *("CREATE TABLE t (a INTEGER PRIMARY KEY, b AS (a * 2));", "CREATE VIEW v AS SELECT * FROM v;"),
    *(
        "CREATE TABLE t AS SELECT 1;",
        "ATTACH 'x' AS y;",
        "PRAGMA user_version = 1;",
        "DROP TABLE log;",
    ),
    *(
        "INSERT INTO log VALUES (x'00');",
        "INSERT INTO log VALUES (1e999);",
        "CREATE TEMP TABLE t (a);",
    ),
    *(
        "INSERT INTO log SELECT zeroblob(100000000);",
        "CREATE TRIGGER x INSERT ON log BEGIN SELECT 1; END;",
    ),
    *("CREATE VIRTUAL TABLE t USING fts5(a);", "CREATE TABLE IF NOT EXISTS log (a);", "VACUUM;"),
    "INSERT INTO log WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r;",
)


def load_reward(path: Path) -> Located[RewardFile]:
    return load_spec(path, RewardFile)


class Kind(NamedTuple):
    load: Callable[[Path], Located[Any]]
    model: type[Spec]


KINDS = {
    "domain": Kind(load_domain_spec, DomainSpec),
    "tasks": Kind(load_tasks_file, TasksFile),
    "run": Kind(load_run, RunSpec),
    "reward": Kind(load_reward, RewardFile),
    "grid": Kind(load_grid, GridSpec),
    "synth": Kind(load_synth, SynthSpec),
}


class Seed(NamedTuple):
    """A sound file: its kind, the folder it is at home in, its text and what it holds."""

    kind: str
    folder: str
    text: str
    tree: Any


@cache
def folder() -> Path:
    """A copy of all shipped files, and of a small domain, to write spoiled files beside."""
    copies = Path(tempfile.mkdtemp(prefix="fuzz-"))
    for name in ("domains", "specs"):
        shutil.copytree(SHIPPED / name, copies / name, ignore=shutil.ignore_patterns("__pycache__"))
    (copies / "small").mkdir()
    (copies / "shelf").mkdir()
    write_all(copies / "small")
    return copies


@cache
def seeds() -> list[Seed]:
    """Sound files, each once by itself in the list and the small ones often: they load fast."""
    small = [("domain", DOMAIN), ("tasks", TASKS), ("run", RUN), ("reward", REWARD)] * 4
    found = [("small", kind, text) for kind, text in small]
    for path in sorted(folder().glob("domains/**/*.yaml")):
        kind = "domain" if path.name == "domain.yaml" else "tasks"
        found.append((str(path.parent.relative_to(folder())), kind, path.read_text()))
    runs = sorted(folder().glob("specs/*.yaml"))
    found += [("specs", kind_of(path), path.read_text()) for path in runs]
    yaml = YAML(typ="safe", pure=True)
    return [Seed(kind, home, text, yaml.load(text)) for home, kind, text in found]


@pytest.fixture(scope="module", autouse=True)
def _folder_is_taken_away() -> Any:
    yield
    shutil.rmtree(folder(), ignore_errors=True)
    folder.cache_clear()


def tried(kind: str, home: str, raw: bytes, planted: Loc | None = None) -> Spec | None:
    """Load a file; the spec, or None if it was refused as it should be."""
    path = folder() / home / f"fuzzed-{kind}.yaml"
    path.write_bytes(raw)
    with TALLY.one((kind, raw)):
        try:
            located = KINDS[kind].load(path)
        except SpecError as error:
            TALLY.note("refused")
            check_problems(error.problems, path, raw)
            return None
    TALLY.note("accepted")
    if planted is not None:
        assert not shape_at(KINDS[kind].model, planted).fields, (
            f"{PLANTED!r} was accepted at {planted}"
        )
    check_accepted(located, kind, path)
    return located.spec


def check_problems(
    problems: tuple[Problem, ...], path: Path, raw: bytes, *, at_least: int = 1
) -> None:
    assert len(problems) >= at_least
    text = raw.decode("utf-8-sig", "replace")
    # What ends a line is decided by YAML; where others see other ends, places are not compared.
    lines = [text] * len(text.splitlines()) if ODD_ENDS.search(text) else text.split("\n")
    for problem in problems:
        assert problem.message
        if problem.path != str(path):
            assert Path(problem.path).parent.is_relative_to(folder()), problem
            continue
        assert 1 <= problem.line <= len(lines) + 1, problem
        line = lines[problem.line - 1] if problem.line <= len(lines) else ""
        assert 1 <= problem.column <= len(line) + 2, problem


def check_accepted(located: Located[Any], kind: str, path: Path) -> None:
    spec = located.spec
    assert not list(no_numbers(spec.model_dump())), "a number that is none was accepted"
    for defaults in (False, True):
        path.write_text(dump_spec(spec, defaults=defaults), encoding="utf-8")
        again = KINDS[kind].load(path)
        assert again.spec == spec
        assert repr(again.spec) == repr(spec), "1 and 1.0 and true are equal in Python"


def no_numbers(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        yield value
    for below in value.values() if isinstance(value, dict) else value:
        if isinstance(below, (dict, list, tuple, float)):
            yield from (
                no_numbers(below)
                if not isinstance(below, float)
                else ([below] if not math.isfinite(below) else [])
            )


def fuzz(data: st.DataObject) -> None:
    """Load one file that is spoiled, or is none; or what belongs to a sound one."""
    what = data.draw(st.sampled_from([fuzz_file, fuzz_file, fuzz_file, fuzz_layers, fuzz_tables]))
    what(data)


def fuzz_layers(data: st.DataObject) -> None:
    """A sound run file, a spoiled one laid over it, and settings."""
    run = next(seed.tree for seed in seeds() if seed.kind == "run")
    tree, _ = spoiled_tree(data.draw, run, [run, RUN_PARTS], plant=False)
    text = data.draw(spoiled_text(RUN)) if data.draw(st.booleans()) else as_yaml(tree)
    values = st.sampled_from(SETTINGS).flatmap(spoiled_text) | st.sampled_from(SETTINGS)
    given = data.draw(st.lists(values, max_size=3))
    path = folder() / "small" / "fuzzed-overlay.yaml"
    raw = text.encode("utf-8", "surrogatepass")
    path.write_bytes(raw)
    with TALLY.one((raw, given)):
        try:
            located = load_run(folder() / "small" / "run.yaml", path, settings=given)
        except SpecError as error:
            TALLY.note("layers refused")
            said = tuple(p for p in error.problems if not p.path.startswith("--set "))
            check_problems(said, path, raw, at_least=0)
            return
    TALLY.note("layers accepted")
    check_accepted(located, "run", path)


def fuzz_tables(data: st.DataObject) -> None:
    """A sound domain in SQL, with the spoiled text of one of its files."""
    home = folder() / "shelf"
    write_sql_domain(home)
    name = data.draw(st.sampled_from(["books.csv", "more.sql", "rows.yaml", "domain.yaml"]))
    path = home / name
    text = path.read_text()
    raw = data.draw(spoiled_text(text)).encode("utf-8", "surrogatepass")
    if name == "more.sql":
        raw += data.draw(st.sampled_from(STATEMENTS)).encode()
    path.write_bytes(raw)
    with TALLY.one((name, raw)):
        try:
            domain = load_domain_spec(home)
            load_task_files(domain)
        except SpecError as error:
            TALLY.note("tables refused")
            check_problems(error.problems, path, raw)
            return
        TALLY.note("tables accepted")
        world = SqlWorld(load_database(domain))
        assert json_problem(plain(world)) is None
        assert not {"sqlite_schema", "sqlite_master"} & set(world)


def fuzz_file(data: st.DataObject) -> None:
    """One file of its kind."""
    seed = data.draw(st.sampled_from(seeds()), "seed")
    how = data.draw(st.sampled_from(["nodes", "nodes", "signs", "shards", "bytes"]))
    planted: Loc | None = None
    if how == "nodes":
        others = [other.tree for other in seeds()[:5]]
        plant = data.draw(st.booleans())
        tree, planted = spoiled_tree(data.draw, seed.tree, others, plant=plant)
        raw = as_yaml(tree).encode("utf-8", "surrogatepass")
    elif how == "signs":
        raw = data.draw(spoiled_text(seed.text)).encode("utf-8", "surrogatepass")
    elif how == "shards":
        shards = data.draw(st.lists(st.sampled_from(SHARDS), max_size=30))
        raw = "".join(shards).encode("utf-8", "surrogatepass")
    else:
        raw = data.draw(st.binary(max_size=60))
    tried(seed.kind, seed.folder, raw, planted)


@pytest.mark.parametrize("number", range(len(seeds())))
def test_the_sound_files_are_accepted(number: int) -> None:
    seed = seeds()[number]
    assert tried(seed.kind, seed.folder, seed.text.encode()) is not None


@settings(max_examples=100, deadline=None, phases=[Phase.generate], database=None)
@given(data=st.data())
def test_spoiled_files_give_a_spec_or_places_in_the_file(data: st.DataObject) -> None:
    fuzz(data)
