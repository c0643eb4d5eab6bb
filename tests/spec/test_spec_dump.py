"""What is dumped loads back equal, and reads well."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.spec import RunSpec, TasksFile, dump_spec, load_spec
from muarl.spec.document import parse_document
from muarl.spec.grpo import GrpoSpec
from muarl.spec.model import PolicyModelSpec, TinyModelSpec
from muarl.spec.run import EvalSpec
from muarl.spec.task import FactSpec, GoldCallSpec, RequestSpec, TaskSpec, UserGoalSpec

characters = st.characters(exclude_categories=["Cs"])
awkward = st.sampled_from(
    [
        "yes",
        "012",
        "12:30",
        "1e3",
        ".5",
        "~",
        "null",
        "0x1F",
        "<<",
        "=",
        "- a",
        "a: b",
        "a #b",
        "%x",
        "",
        " ",
        "\n",
        " a",
        "a ",
        "a\n",
        "\na",
        "a\n b",
        "a\n\n",
        "a\r\nb",
        "a\tb",
        "\ta",
        "a\n\tb",
        "\x85",
        "a\u2028b",
        "\ufeff",
        "\x00",
        "\x7f",
        "'",
        '"',
        "\\",
        "!x",
        "&x",
        "*x",
        "---",
        "...",
        "a  b",
        "a" * 200,
        ("word " * 60).strip(),
        "a\n---\nb",
        "😀\n😀",
        "?",
    ]
)
text = awkward | st.text(characters, max_size=30)
ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,8}", fullmatch=True)
numbers = st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
json = st.recursive(
    st.none() | st.booleans() | numbers | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
facts = st.lists(st.builds(FactSpec, id=ids, value=text), max_size=2)
plain_requests = st.builds(RequestSpec, ask=ids, facts=facts)
requests = plain_requests | st.builds(RequestSpec, ask=ids, facts=facts, instead=plain_requests)
goals = st.builds(UserGoalSpec, requests=st.lists(requests, min_size=1, max_size=2), facts=facts)
plain_predicates = st.one_of(
    st.just({"gold_world": True}),
    st.builds(lambda p, e: {"world": {"path": p, "one_of": [e]}}, text, json),
    st.builds(
        lambda p, e: {"world": {"path": p, "equals": e}}, text, json.filter(lambda e: e is not None)
    ),
    st.builds(lambda t: {"said": {"text": f"a {t}"}}, text),
)
predicates = st.recursive(
    plain_predicates,
    lambda inner: st.builds(
        lambda kind, p: {kind: p if kind == "not" else [p]},
        st.sampled_from(["not", "all", "any", "share"]),
        inner,
    ),
    max_leaves=3,
)
tasks = st.builds(
    TaskSpec,
    id=ids,
    split=ids,
    goal=text,
    personas=st.lists(ids, min_size=1, max_size=2),
    user=st.none() | goals,
    world=st.dictionaries(text, json, max_size=2),
    gold=st.lists(
        st.builds(GoldCallSpec, tool=text, arguments=st.dictionaries(text, json, max_size=2)),
        max_size=2,
    ),
    reward=st.none() | st.lists(predicates, max_size=2),
)
files = st.builds(TasksFile, version=st.just(1), domain=ids, tasks=st.lists(tasks, max_size=2))
runs = st.builds(
    RunSpec,
    version=st.just(1),
    domain=text,
    seed=st.integers(-(2**62), 2**62),
    model=st.builds(
        PolicyModelSpec, tiny=st.builds(TinyModelSpec, vocab_size=st.integers(300, 9999))
    ),
    grpo=st.none() | st.builds(GrpoSpec, lr=st.floats(1e-300, 1e300)),
    eval=st.builds(EvalSpec, temperatures=st.lists(st.floats(0, 9), min_size=1, max_size=2)),
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dump") / "spec.yaml"


@settings(max_examples=60, deadline=None)
@given(spec=files | runs, defaults=st.booleans())
def test_a_dumped_spec_loads_back_equal(
    path: Path, spec: TasksFile | RunSpec, defaults: bool
) -> None:
    path.write_bytes(dump_spec(spec, defaults=defaults).encode())
    again = load_spec(path, type(spec)).spec
    assert again == spec
    assert again.model_dump_json() == spec.model_dump_json()


@settings(max_examples=150, deadline=None)
@given(value=text)
def test_any_text_survives(value: str) -> None:
    fact = FactSpec(id="x", value=value)
    root, problems = parse_document(dump_spec(fact), "x")
    assert problems == []
    assert root.data["value"] == value


def sample() -> TasksFile:
    task = TaskSpec(
        id="cancel-1",
        goal="Cancel W1.\nBe quick: 12:30.\n",
        personas=["plain"],
        user=UserGoalSpec(requests=[RequestSpec(ask="cancel")]),
        world={"note": None},
        gold=[GoldCallSpec(tool="cancel", arguments={"order_id": "W1", "count": 1.0})],
    )
    return TasksFile(version=1, domain="shop", tasks=[task])


def test_a_dumped_spec_reads_as_a_person_writes_it() -> None:
    assert dump_spec(sample(), schema="../tasks.v1.json") == (
        "# yaml-language-server: $schema=../tasks.v1.json\n"
        "version: 1\n"
        "domain: shop\n"
        "tasks:\n"
        "- id: cancel-1\n"
        "  goal: |\n"
        "    Cancel W1.\n"
        "    Be quick: 12:30.\n"
        "  personas:\n"
        "  - plain\n"
        "  user:\n"
        "    requests:\n"
        "    - ask: cancel\n"
        "  world:\n"
        "    note: null\n"
        "  gold:\n"
        "  - tool: cancel\n"
        "    arguments:\n"
        "      order_id: W1\n"
        "      count: 1.0\n"
    )


def test_defaults_are_written_when_asked_for() -> None:
    run: dict[str, Any] = {"version": 1, "domain": "d", "model": {"tiny": {}}}
    spec = RunSpec.model_validate(run)
    assert "max_turns" not in dump_spec(spec)
    resolved = dump_spec(spec, defaults=True)
    assert "max_turns: 24" in resolved
    assert "null" not in resolved
