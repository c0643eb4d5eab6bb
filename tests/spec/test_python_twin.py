"""Every kind of spec file made in Python is written, and loads back equal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_spec_dump import ids, json, predicates, text

from muarl.spec import DomainSpec, GridSpec, RewardFile, RunSpec, SuiteSpec, SynthSpec, load_spec
from muarl.spec.base import Spec
from muarl.spec.schema import KINDS

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,6}", fullmatch=True)
code = st.builds(lambda file, name: f"{file}.py:{name}", names, names)
texts = st.lists(text, max_size=2)
plain = st.dictionaries(names, text, max_size=2)
sql_tool = st.fixed_dictionaries({"description": text}, optional={"query": text, "result": text})
servers = st.one_of(
    st.fixed_dictionaries({"python": code}, optional={"stateless": st.booleans()}),
    st.fixed_dictionaries(
        {"command": st.lists(text, min_size=1, max_size=2)}, optional={"files": text}
    ),
    st.fixed_dictionaries(
        {"url": st.just("https://example.org/mcp")}, optional={"secrets": st.just({"X": "NAME"})}
    ),
    st.fixed_dictionaries({"sql": st.dictionaries(names, sql_tool, min_size=1, max_size=2)}),
)
worlds = st.one_of(
    st.fixed_dictionaries({"data": st.dictionaries(text, json, max_size=2)}),
    st.fixed_dictionaries({"file": text}),
    st.fixed_dictionaries({"python": code}),
    st.fixed_dictionaries({"sql": st.fixed_dictionaries({"tables": text.filter(bool)})}),
)
phrasings = st.dictionaries(ids, st.dictionaries(text, texts, max_size=2), max_size=2)
personas = st.fixed_dictionaries(
    {"style": text}, optional={"weight": st.floats(0, 9), "phrasings": phrasings}
)
domains = st.fixed_dictionaries(
    {
        "version": st.just(1),
        "id": ids,
        "summary": text,
        "rules": text,
        "tools": st.lists(servers, min_size=1, max_size=3),
        "world": worlds,
        "tasks": st.fixed_dictionaries({"files": st.lists(text, min_size=1, max_size=2)}),
        "personas": st.dictionaries(ids, personas, min_size=1, max_size=2),
        "reward": st.lists(predicates, min_size=1, max_size=3),
    },
    optional={
        "writes": texts,
        "expert": code,
        "metrics": st.lists(predicates, max_size=2),
        "floor": st.floats(0, 1),
    },
)
rewards = st.fixed_dictionaries(
    {"version": st.just(1), "reward": st.lists(predicates, min_size=1, max_size=3)},
    optional={"metrics": st.lists(predicates, max_size=2)},
)
engines = st.one_of(
    st.sampled_from(["embedded", "vllm"]),
    st.fixed_dictionaries(
        {"vllm_server": st.just({"endpoints": ["http://a:1"], "api_key_env": "KEY"})}
    ),
)
users = st.one_of(
    st.just({"scripted": {}}),
    st.builds(lambda m: {"llm": {"base_url": "http://a/v1", "model": m}}, text),
    st.builds(lambda n: {"pool": {n: {"user": {"scripted": {}}}}}, ids),
)
runs = st.fixed_dictionaries(
    {
        "version": st.just(1),
        "domain": text,
        "model": st.just({"tiny": {}}) | st.builds(lambda p: {"path": p}, text),
        "engine": engines,
        "user": users,
    },
    optional={"cold_start": st.just({}), "grpo": st.just({"lr": 1e-6}), "seed": st.integers(0, 9)},
)
policies = st.one_of(
    st.fixed_dictionaries({"model": text}),
    st.fixed_dictionaries({"cold_start": text}),
    st.fixed_dictionaries({"trivial": ids}),
    st.just({"expert": {"imperfections": {"quit": 0.5}}}),
)
user_kinds = st.sampled_from([{"scripted": {}}, {"scripted": {"knobs": {"no_follow_up": 1.0}}}])
grids = st.fixed_dictionaries(
    {
        "version": st.just(1),
        "run": text,
        "policies": st.dictionaries(ids, policies, min_size=1, max_size=2),
        "users": st.dictionaries(ids, user_kinds, min_size=1, max_size=2),
    },
    optional={
        "gain": st.just({"cold": "a", "trained": "b", "user": "c"}),
        "tasks": st.integers(1, 9),
    },
)
member_names = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9_-]{0,8}\Z")
members = st.fixed_dictionaries(
    {"file": text, "splits": st.dictionaries(ids, ids, min_size=1, max_size=2)},
    optional={"row": ids, "user": user_kinds},
)
suites = st.fixed_dictionaries(
    {
        "version": st.just(1),
        "id": ids,
        "summary": text,
        "members": st.dictionaries(member_names, members, min_size=1, max_size=2),
    }
)
agents = st.one_of(
    st.just({"expert": {}}),
    st.fixed_dictionaries({"model": text}),
    st.builds(lambda m: {"llm": {"base_url": "http://a/v1", "model": m}}, text),
)
synths = st.fixed_dictionaries(
    {"version": st.just(1), "domain": text, "agent": agents},
    optional={
        "user": users,
        "verify": st.fixed_dictionaries({"rules": st.lists(predicates, max_size=2)}),
        "dialogues": st.integers(1, 9),
        "licence": text.filter(bool),
    },
)
FILES: dict[type[Spec], st.SearchStrategy[dict[str, Any]]] = {
    DomainSpec: domains,
    RewardFile: rewards,
    RunSpec: runs,
    GridSpec: grids,
    SuiteSpec: suites,
    SynthSpec: synths,
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("twin") / "spec.yaml"


@settings(max_examples=60, deadline=None)
@given(data=st.data(), model=st.sampled_from(list(FILES)), defaults=st.booleans())
def test_what_python_makes_is_what_its_yaml_says(
    path: Path, data: st.DataObject, model: type[Spec], defaults: bool
) -> None:
    spec = model.model_validate(data.draw(FILES[model]), strict=True)
    written = spec.to_yaml(schema="schemas/x.v1.json", defaults=defaults)
    assert written.splitlines()[:2] == [
        "# yaml-language-server: $schema=schemas/x.v1.json",
        "version: 1",
    ]
    path.write_bytes(written.encode())
    assert load_spec(path, model).spec == spec


def test_every_kind_of_file_is_tried() -> None:
    assert set(FILES) | {KINDS["tasks"]} == set(KINDS.values()), "tasks: test_spec_dump.py"
