"""Tool servers in a domain's file: one or several, each with the keys of its kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError
from spec_files import said, spoil

from muarl.errors import SpecError
from muarl.spec import DomainSpec, dump_spec, load_domain_spec, load_spec
from muarl.spec.schema import schema_files
from muarl.spec.tools import (
    CommandToolsSpec,
    PythonToolsSpec,
    StateSpec,
    ToolLimitsSpec,
    ToolsSpec,
    UrlToolsSpec,
)

ONE = "tools:\n  python: tools.py:serve\n"
SEVERAL = """\
tools:
  - python: tools.py:serve
    stateless: true
  - name: graph
    command: [mcp-server-memory, --fast]
    env: {MEMORY_FILE_PATH: "{home}/graph"}
    hidden: [read_graph]
    state: {graph: {call: read_graph}}
  - url: https://example.org/mcp
    secrets: {Authorization: SHOP_TOKEN}
    limits: {search: {call_timeout_s: 5}}
"""


def problems(folder: Path, tools: str) -> list[str]:
    spoil(folder / "domain.yaml", ONE, tools)
    with pytest.raises(SpecError) as caught:
        load_domain_spec(folder)
    return said(caught.value)


def test_servers_are_read_by_the_key_that_says_what_they_are(folder: Path) -> None:
    spoil(folder / "domain.yaml", ONE, SEVERAL)
    assert load_domain_spec(folder).spec.tools == [
        PythonToolsSpec(python="tools.py:serve", stateless=True),
        CommandToolsSpec(
            name="graph",
            command=["mcp-server-memory", "--fast"],
            env={"MEMORY_FILE_PATH": "{home}/graph"},
            hidden=["read_graph"],
            state={"graph": StateSpec(call="read_graph")},
        ),
        UrlToolsSpec(
            url="https://example.org/mcp",
            secrets={"Authorization": "SHOP_TOKEN"},
            limits={"search": ToolLimitsSpec(call_timeout_s=5)},
        ),
    ]


def test_a_single_server_needs_no_list(folder: Path) -> None:
    single = load_domain_spec(folder).spec
    spoil(folder / "domain.yaml", ONE, "tools: [{python: tools.py:serve}]\n")
    assert load_domain_spec(folder).spec == single
    assert single.tools == [PythonToolsSpec(python="tools.py:serve")]


@pytest.mark.parametrize("tools", [ONE, SEVERAL])
def test_what_is_dumped_loads_back_equal(folder: Path, tools: str) -> None:
    path = folder / "domain.yaml"
    spoil(path, ONE, tools)
    spec = load_domain_spec(folder).spec
    path.write_text(dump_spec(spec))
    assert load_spec(path, DomainSpec).spec == spec


@pytest.mark.parametrize(
    ("server", "name"),
    [
        (PythonToolsSpec(python="code/shop.py:serve"), "shop"),
        (CommandToolsSpec(command=["./bin/orders.sh", "x"]), "orders"),
        (UrlToolsSpec(url="https://mcp.example.org:80/x"), "mcp.example.org"),
        (CommandToolsSpec(name="mine", command=["node"]), "mine"),
    ],
)
def test_a_server_has_a_name_even_if_it_is_given_none(server: ToolsSpec, name: str) -> None:
    assert server.label == name


@pytest.mark.parametrize(
    ("tools", "problem"),
    [
        ("tools: []\n", "5:8: 'tools' needs at least 1 entry, got an empty list"),
        (
            "tools: {comand: [x]}\n",
            "5:8: 'tools': give exactly one of python, sql, simulated, command, url, plugin; did you mean 'command'?",
        ),
        (
            "tools:\n  - {url: 'http://a', command: [x]}\n",
            "6:5: item 1 of 'tools': give exactly one of python, sql, simulated, command, url, plugin; got url and command",
        ),
        (
            "tools: tools.py:serve\n",
            "5:8: 'tools': give exactly one of python, sql, simulated, command, url, plugin, got 'tools.py:serve'",
        ),
        (
            "tools:\n  command: [x]\n  headers: {a: b}\n",
            (
                "7:3: unknown field 'headers'; fields here: name, hidden, limits, setup, state, "
                "external, at_once, start_timeout_s, call_timeout_s, max_result_chars, on_crash, "
                "verbatim, command, env, secrets, files, stateless, pool, world_resource"
            ),
        ),
        (
            "tools:\n  - {python: tools.py:serve}\n  - {url: 'http://a', call_timeout: 1}\n",
            "7:23: unknown field 'call_timeout'; did you mean 'call_timeout_s'?",
        ),
        (
            "tools: {url: ftp://a}\n",
            "5:14: 'url': expected a URL such as https://example.org/mcp, got 'ftp://a'",
        ),
        (
            "tools:\n  command: [x]\n  state: {a: {call: b, resource: c}}\n",
            "7:14: 'a': give exactly one of resource and call",
        ),
        (
            "tools: {command: [x], state: {a: {resource: 'b:', arguments: {x: 1}}}}\n",
            "5:34: 'a': arguments go with call; a resource has none",
        ),
        (
            "tools: {command: [x], stateless: true, setup: [{tool: a}]}\n",
            "5:8: 'tools': a stateless server has no setup; declare `stateless: false`",
        ),
        (
            "tools: {command: [x], world_resource: 'a:', state: {b: {call: c}}}\n",
            (
                "5:8: 'tools': world_resource shows the whole world, so there is no state; "
                "give one of them"
            ),
        ),
        (
            "tools:\n  - {python: tools.py:serve}\n  - {python: tools.py:serve}\n",
            "7:5: two servers are named 'tools'; give one another `name`",
        ),
        (
            "tools:\n  - {python: tools.py:serve}\n  - {command: [x], name: tools}\n",
            "7:26: two servers are named 'tools'; give one another `name`",
        ),
        (
            (
                "tools:\n  - {command: [x], state: {a: {call: b}}}\n"
                "  - {command: [y], state: {a: {call: b}}}\n"
            ),
            "7:28: another server keeps 'a' of the world as well",
        ),
        (
            "tools:\n  - {python: tools.py:serve}\n  - {command: [y], world_resource: 'a:'}\n",
            (
                "7:20: the world cannot be that of one of several servers; name its parts of the "
                "world under `state`"
            ),
        ),
        ("tools: {command: [x], files: sede}\n", "5:30: no such file: 'sede'"),
        ("tools:\n  - {python: tolls.py:serve}\n", "6:14: no such file: 'tolls.py'; did you mean"),
    ],
)
def test_a_wrong_server_is_one_problem_at_its_place(folder: Path, tools: str, problem: str) -> None:
    (found,) = problems(folder, tools)
    assert found.startswith(problem)


def test_the_schema_offers_each_kind_of_server_its_own_keys() -> None:
    schema = json.loads(schema_files()["domain.v1.json"])
    one, several = schema["properties"]["tools"]["anyOf"]
    kinds = {option["$ref"].rpartition("/")[2] for option in one["oneOf"]}
    assert kinds == {
        "PythonToolsSpec",
        "SqlToolsSpec",
        "SimulatedToolsSpec",
        "CommandToolsSpec",
        "UrlToolsSpec",
        "PluginToolsSpec",
    }
    assert several["type"] == "array"
    assert "headers" not in schema["$defs"]["CommandToolsSpec"]["properties"]
    assert schema["$defs"]["UrlToolsSpec"]["required"] == ["url"]


def test_the_python_twin_takes_servers_already_made() -> None:
    server = UrlToolsSpec(url="http://localhost:1/mcp")
    fields = dict.fromkeys(["id", "summary", "rules"], "x")
    rest = {"version": 1, "world": {"data": {}}, "tasks": {"files": ["t.yaml"]}}
    domain = DomainSpec.model_validate(
        {
            **fields,
            **rest,
            "tools": server,
            "personas": {"p": {"style": "s"}},
            "reward": [{"gold_world": True}],
        }
    )
    assert domain.tools == [server]
    with pytest.raises(ValidationError, match="frozen"):
        server.url = "http://elsewhere"  # type: ignore[misc]
