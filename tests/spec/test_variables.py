"""Environment variables in run files: what they become, and where they may not stand."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spec_files import DOMAIN, RUN, said, spoil

from muarl.errors import SpecError
from muarl.spec import (
    RunSpec,
    TasksFile,
    dump_spec,
    load_domain_spec,
    load_run,
    load_spec,
    load_tasks_file,
)
from muarl.spec.document import parse_document
from muarl.spec.engine import VllmSpec
from muarl.spec.variables import fill_in

LLM = "user: {llm: {base_url: 'http://h/v1', model: m, api_key_env: OPENAI_API_KEY}}\n"


@pytest.fixture(autouse=True)
def _variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNS", "7")
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.delenv("UNSET", raising=False)


def loaded(folder: Path, more: str) -> RunSpec:
    (folder / "run.yaml").write_text(RUN + more)
    return load_run(folder / "run.yaml").spec


def refused(folder: Path, more: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        loaded(folder, more)
    return said(caught.value)


def test_a_variable_is_read_as_yaml_reads_a_plain_scalar(folder: Path) -> None:
    spec = loaded(folder, "rollout:\n  max_turns: ${env:TURNS}\n  max_tokens: ${env:UNSET:-99}\n")
    assert (spec.rollout.max_turns, spec.rollout.max_tokens) == (7, 99)
    spec = loaded(folder, "grpo: ${env:UNSET:-}\n".replace("grpo", "cold_start"))
    assert spec.cold_start is None


def test_a_default_stands_for_what_is_empty_too(folder: Path) -> None:
    assert loaded(folder, "seed: ${env:EMPTY:-4}\n").seed == 4


def test_a_url_may_be_a_default(folder: Path) -> None:
    spec = loaded(
        folder, "engine:\n  vllm_server:\n    endpoints:\n    - ${env:UNSET:-http://a:1}\n"
    )
    assert spec.engine.vllm_server is not None
    assert spec.engine.vllm_server.endpoints == ["http://a:1"]


def test_in_quotes_it_is_text(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    llm = "user:\n  llm:\n    base_url: http://h/v1\n    model: {}\n"
    found = refused(folder, llm.format("${env:TURNS}"))
    assert found == ["8:12: 'model' must be text, got 7; put it in quotes"]
    spec = loaded(folder, llm.format('"${env:TURNS}"'))
    assert spec.user.llm is not None
    assert spec.user.llm.model == "7"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("${env:UNSET}", "the environment variable 'UNSET' is not set; set it, or write a default"),
        ("${env:EMPTY}", "the environment variable 'EMPTY' is empty; set it, or write a default"),
        ("${env:TURN}", "did you mean 'TURNS'?"),
        ("http://${env:TURNS}/v1", "a variable stands for a whole value: expected ${env:NAME} or"),
        ("${env:TURNS}${env:TURNS}", "expected ${env:NAME} or ${env:NAME:-default}"),
        ("${env:a-b}", "expected ${env:NAME} or ${env:NAME:-default}, got '${env:a-b}'"),
        ("${env:}", "expected ${env:NAME}"),
        ("${env:TURNS", "a variable stands for a whole value"),
        ("${env:UNSET:-.inf}", "'UNSET': .inf is not a finite number"),
    ],
)
def test_what_is_wrong_with_a_reference_is_said_at_its_place(
    folder: Path, value: str, message: str
) -> None:
    (found,) = refused(folder, f"seed: {value}\n")
    assert found.startswith("5:7: ")
    assert message in found


def test_settings_may_name_variables(folder: Path) -> None:
    path = folder / "run.yaml"
    assert load_run(path, settings=["seed=${env:TURNS}"]).spec.seed == 7
    with pytest.raises(SpecError, match=r"^--set seed=\$\{env:UNSET\}: .*'UNSET' is not set"):
        load_run(path, settings=["seed=${env:UNSET}"])


@settings(max_examples=100, deadline=None)
@given(
    value=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
    | st.sampled_from(["{a: 1}", "[1]", "x: y", "x # y", "*a", "&a b", "!!int 1", "- 1", "'a'"])
)
def test_no_variable_brings_in_structure(value: str) -> None:
    root, _ = parse_document("a: ${env:X}\nb: '${env:X}'\n", "x.yaml")
    problems = list(fill_in(root, {"X": value}))
    if not problems:
        assert not isinstance(root.data["a"], (dict, list))
        assert root.data["b"] == value
        assert root.data == {at: child.data for at, child in root.children.items()}


def test_no_variable_brings_in_another(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INNER", "${env:OPENAI_API_KEY}")
    (found,) = refused(folder, "engine: ${env:INNER}\n")
    assert "'INNER' holds what is no plain value" in found


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("summary: A shop.", "summary: ${env:TURNS}", "3:10"),
        ("- gold_world: true", "- {said: {text: '${env:TURNS:-x}'}}", "38:19"),
    ],
)
def test_a_domain_has_no_variables(folder: Path, old: str, new: str, place: str) -> None:
    spoil(folder / "domain.yaml", old, new)
    with pytest.raises(SpecError) as caught:
        load_domain_spec(folder)
    (found,) = said(caught.value)
    assert found.startswith(place)
    assert "environment variables are for run and grid files" in found


def test_tasks_have_none_either_but_may_speak_of_them(folder: Path) -> None:
    spoil(folder / "tasks.yaml", "Cancel W1.", "Say what ${env:HOME} is.")
    assert load_tasks_file(folder / "tasks.yaml").spec.tasks[0].goal == "Say what ${env:HOME} is."
    spoil(folder / "tasks.yaml", "Say what ${env:HOME} is.", "${env:HOME}")
    with pytest.raises(SpecError, match="environment variables are for run and grid files"):
        load_tasks_file(folder / "tasks.yaml")


def test_a_secret_is_given_by_name_and_its_value_is_nowhere(folder: Path) -> None:
    spec = loaded(folder, LLM)
    assert "sk-secret" not in dump_spec(spec, defaults=True)
    found = refused(folder, LLM.replace("OPENAI_API_KEY", '"${env:OPENAI_API_KEY}"'))
    assert found == [
        "5:62: 'api_key_env' is the name of a variable: write OPENAI_API_KEY, without ${env:...}"
    ]
    (found_key,) = refused(folder, LLM.replace("OPENAI_API_KEY", "sk-secret"))
    assert "must be the name of an environment variable, never what it holds" in found_key
    assert "sk-secret" not in found_key


def test_what_looks_like_a_secret_is_not_recorded(folder: Path) -> None:
    vllm = "engine:\n  vllm:\n    args:\n      hf_token: {}\n"
    (found,) = refused(folder, vllm.format("${env:OPENAI_API_KEY}"))
    assert "'hf_token' looks like a secret" in found
    (found,) = refused(folder, vllm.format("abc"))
    assert "'hf_token' would be recorded" in found
    assert VllmSpec(args={"max_num_batched_tokens": 9}).args


@pytest.mark.parametrize(
    "tools",
    [
        "{command: [x], env: {GITHUB_TOKEN: abc}}",
        "{url: 'http://h/mcp', headers: {Authorization: Bearer abc}}",
        "{url: 'http://h/mcp', headers: {X-Api-Key: abc}}",
    ],
)
def test_a_tool_server_gets_secrets_by_name(folder: Path, tools: str) -> None:
    path = folder / "domain.yaml"
    path.write_text(DOMAIN.replace("\n  python: tools.py:serve", f" {tools}"))
    with pytest.raises(SpecError, match="would be recorded; name the environment variable"):
        load_domain_spec(path)


@pytest.mark.parametrize(
    "tools",
    [
        "{url: 'http://me:hunter2@h/mcp'}",
        "{url: 'http://h/mcp?api_key=hunter2'}",
        "{url: 'http://h/mcp?a=b&access_token=hunter2'}",
        "{command: [x, --api-key=hunter2]}",
        "{command: [x, --token, hunter2]}",
        "{command: [env, DB_PASSWORD=hunter2, x]}",
        "{command: [x, 'postgres://me:hunter2@h/db']}",
        "{command: [x, '--db=postgres://me:hunter2@h/db']}",
        "{command: [x], env: {DATABASE_URL: 'postgres://me:hunter2@h/db'}}",
        "{command: [x], env: {ADDRESS: 'http://h/?token=hunter2'}}",
    ],
)
def test_what_would_record_a_secret_is_refused_where_it_stands_and_not_repeated(
    folder: Path, tools: str
) -> None:
    path = folder / "domain.yaml"
    path.write_text(DOMAIN.replace("\n  python: tools.py:serve", f" {tools}"))
    with pytest.raises(SpecError, match="would be recorded") as caught:
        load_domain_spec(path)
    assert "hunter2" not in str(caught.value)
    assert "`secrets" in str(caught.value)
    assert all(problem.line == 5 for problem in caught.value.problems)


@pytest.mark.parametrize(
    "tools",
    [
        "{command: [x, --max-tokens, '5', --token-file=a, --password-prompt, --api-key-env, KEY]}",
        "{url: 'http://h/mcp?a=me@b'}",
        "{command: [x], env: {MAIL: me@h}}",
    ],
)
def test_what_holds_no_secret_is_taken(folder: Path, tools: str) -> None:
    path = folder / "domain.yaml"
    path.write_text(
        DOMAIN.replace("\n  python: tools.py:serve", f" {tools}").replace("[cancel]", "[]")
    )
    assert load_domain_spec(path).spec.tools


def test_what_would_be_read_as_a_variable_is_not_written() -> None:
    run = RunSpec.model_validate({"version": 1, "domain": "a${env:X}", "model": {"tiny": {}}})
    with pytest.raises(ValueError, match="would be read as a variable"):
        dump_spec(run)
    tasks = {"id": "a", "goal": "${env:X}", "personas": ["p"], "gold": []}
    file = TasksFile.model_validate({"version": 1, "domain": "d", "tasks": [tasks]})
    with pytest.raises(ValueError, match="would be read as a variable"):
        dump_spec(file)


def test_a_recorded_run_holds_values(folder: Path, tmp_path: Path) -> None:
    spec = loaded(folder, "seed: ${env:TURNS}\n")
    (tmp_path / "resolved.yaml").write_text(dump_spec(spec, defaults=True))
    assert "seed: 7" in (tmp_path / "resolved.yaml").read_text()
    assert load_spec(tmp_path / "resolved.yaml", RunSpec).spec == spec


def test_what_a_mapping_lacks_for_want_of_a_variable_is_no_second_problem(folder: Path) -> None:
    spoil(folder / "run.yaml", "model: {tiny: {}}", "model:\n  path: ${env:MUARL_TEST_NOWHERE}")
    with pytest.raises(SpecError) as refused:
        load_run(folder / "run.yaml")
    (problem,) = said(refused.value)
    assert "the environment variable 'MUARL_TEST_NOWHERE' is not set" in problem
