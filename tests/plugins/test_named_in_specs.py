"""Specs name plug-ins, and everything wrong with one is said with its line, like the rest of the file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from plugin_kit import BOTH, PATIENT, Install
from spec_files import RUN, said

import muarl.plugins
from muarl.errors import SpecError
from muarl.spec import RunSpec, dump_spec, load_run, load_spec
from muarl.spec.plugged import PluggedUser, versions_of
from muarl.spec.schema import schema_files
from muarl.spec.user import UserSpec


def run_with(folder: Path, *lines: str) -> Path:
    path = folder / "run.yaml"
    path.write_text(RUN + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def problems(folder: Path, *lines: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load_run(run_with(folder, *lines))
    return said(caught.value)


def test_options_are_read_by_the_plug_ins_own_model(folder: Path, install: Install) -> None:
    install(PATIENT, *BOTH)
    user = load_run(run_with(folder, "user: {plugin: {patient: {patience: 5}}}")).spec.user.plugin
    assert user is not None
    assert (user.name, user.options.model_dump()) == (
        "patient",
        {"patience": 5, "opening": None},
    )
    assert user.provided.by == "shop-plugins 0.1"


def test_a_name_alone_stands_for_no_options(folder: Path, install: Install) -> None:
    install(PATIENT, *BOTH)
    bare = load_run(run_with(folder, "user: {plugin: patient}")).spec.user
    assert bare == load_run(run_with(folder, "user: {plugin: {patient: {}}}")).spec.user
    assert bare == UserSpec(plugin={"patient": {}})


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (
            ["user: {plugin: {patient: {patiense: 5}}}"],
            "5:27: unknown field 'patiense'; did you mean 'patience'?",
        ),
        (
            ["user:", "  plugin:", "    patient:", "      patience: five"],
            "8:17: 'patience' must be a whole number, got 'five'",
        ),
        (
            ["user: {plugin: {patient: {patience: '5'}}}"],
            "5:37: 'patience' must be a whole number, got '5'",
        ),
        (
            ["user: {plugin: {patent: {}}}"],
            (
                "5:17: no installed package provides a user 'patent'; did you mean 'patient'?; "
                "installed: patient (shop-plugins 0.1)"
            ),
        ),
        (
            ["user: {plugin: patent}"],
            (
                "5:16: 'plugin': no installed package provides a user 'patent'; did you mean 'patient'?; "
                "installed: patient (shop-plugins 0.1)"
            ),
        ),
        (
            ["user: {plugin: {brief: {chars: 3}}}"],
            "5:17: the predicate 'brief' of shop-plugins 0.1 is no user",
        ),
        (
            ["user: {plugin: {patient: {}, other: {}}}"],
            "5:16: 'plugin': expected the name of a user, or one name and its options; installed: patient",
        ),
        (
            ["user: {plugin: {patient: 3}}"],
            "5:26: 'patient' must be a mapping, got 3; write a mapping with the keys patience, opening",
        ),
        (
            ["user: {plugin: {patient: {}}, scripted: {}}"],
            (
                "5:7: 'user': give exactly one of scripted, llm, model, worded, simulator, replay, fixed, "
                "teller, plugin and pool"
            ),
        ),
        (
            ["eval: {user: {pool: {a: {user: {plugin: {patient: {patience: []}}}}}}}"],
            "5:62: 'patience' must be a whole number, got an empty list",
        ),
    ],
)
def test_what_is_wrong_is_said_where_it_stands(
    folder: Path, install: Install, lines: list[str], problem: str
) -> None:
    install(PATIENT, *BOTH)
    assert problems(folder, *lines) == [problem]


def test_where_nothing_is_installed_that_is_said(folder: Path) -> None:
    assert problems(folder, "user: {plugin: {patient: {}}}") == [
        (
            "5:17: no installed package provides a user 'patient'; none provides any (entry points "
            "muarl.users)"
        )
    ]


def test_two_packages_with_one_name_are_both_named(folder: Path, install: Install) -> None:
    install(PATIENT, *BOTH)
    install(PATIENT, *BOTH, package="other", version="2")
    assert problems(folder, "user: {plugin: {patient: {}}}") == [
        (
            "5:17: the user 'patient' is provided twice, by other 2 and shop-plugins 0.1; uninstall one of "
            "them"
        )
    ]


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (
            "import no_such_module",
            (
                "cannot be imported: ModuleNotFoundError: No module named 'no_such_module' (MODULE:1, in "
                "<module>)"
            ),
        ),
        ("raise SystemExit(3)", "cannot be imported: SystemExit: 3 (MODULE:1, in <module>)"),
        ("x = (", "cannot be imported: SyntaxError: '(' was never closed (MODULE:1)"),
        (
            "y = 1",
            "cannot be imported: AttributeError: module 'NAME' has no attribute 'patient'",
        ),
        (
            "def patient(): ...",
            (
                "its entry point 'NAME:patient' names a function; in the group muarl.users it must name a "
                "muarl.plugins.UserPlugin"
            ),
        ),
        (
            "from muarl.plugins import *\npatient = PredicatePlugin(Options, print)",
            (
                "its entry point 'NAME:patient' names a PredicatePlugin; in the group muarl.users it must "
                "name a muarl.plugins.UserPlugin"
            ),
        ),
        (
            "from muarl.plugins import *\npatient = UserPlugin(dict, print)",
            "its options are dict, which is no subclass of muarl.plugins.Options",
        ),
    ],
)
def test_a_plug_in_that_cannot_be_had_is_blamed_on_its_package(
    folder: Path, install: Install, tmp_path: Path, code: str, problem: str
) -> None:
    name = install(code, "muarl.users: patient = patient")
    (module,) = tmp_path.glob(f"*/{name}.py")
    (found,) = problems(folder, "user: {plugin: {patient: {}}}")
    place, _, what = found.partition(" the user 'patient' of shop-plugins 0.1")
    assert place == "5:17:"
    expected = problem.replace("MODULE", str(module)).replace("NAME", name)
    assert what.lstrip(": ").startswith(expected)


def test_an_overlay_with_another_plug_in_replaces_the_one_before(
    folder: Path, install: Install
) -> None:
    install(
        PATIENT, *BOTH, "muarl.users: twin = patient"
    )  # one model under two names, told by the name
    run = run_with(folder, "user: {plugin: {patient: {patience: 5}}}")
    spec = load_run(run, settings=["user.plugin.twin.patience=2"]).spec
    assert dump_spec(spec.user) == "plugin:\n  twin:\n    patience: 2\n"
    again = load_run(run, settings=["user.plugin.patient.opening=Hi"]).spec.user.plugin
    assert again is not None
    assert again.options.model_dump() == {"patience": 5, "opening": "Hi"}


def test_a_run_is_written_and_read_back(folder: Path, install: Install, tmp_path: Path) -> None:
    install(PATIENT, *BOTH)
    spec = load_run(run_with(folder, "user: {plugin: {patient: {patience: 5}}}")).spec
    for defaults in (False, True):
        (tmp_path / "again.yaml").write_text(dump_spec(spec, defaults=defaults), encoding="utf-8")
        assert load_spec(tmp_path / "again.yaml", RunSpec).spec == spec
    assert RunSpec.model_validate(spec.model_dump(mode="json")) == spec
    assert RunSpec.model_validate_json(spec.model_dump_json()) == spec
    assert versions_of(spec) == {"user patient": "shop-plugins 0.1"}


def test_a_schema_knows_what_is_installed_and_the_committed_ones_do_not(install: Install) -> None:
    before = schema_files()
    install(PATIENT, *BOTH, "muarl.users: broken = gone")
    assert schema_files() == before
    knowing = json.loads(schema_files(installed=True)["run.v1.json"])
    validator = jsonschema.Draft202012Validator(knowing)
    run = {"version": 1, "domain": "d", "model": {"tiny": {}}}

    def wrong(plugin: object) -> bool:
        return not validator.is_valid({**run, "user": {"plugin": plugin}})

    assert not wrong({"patient": {"patience": 3}})
    assert not wrong("patient")
    assert not wrong({"broken": {"anything": "goes"}})
    assert wrong({"patient": {"patiense": 3}})
    assert wrong({"patient": {"patience": "3"}})
    assert wrong({"patent": {}})
    assert wrong("patent")
    assert "Messages that she bears." in json.dumps(knowing)
    ours = jsonschema.Draft202012Validator(json.loads(before["run.v1.json"]))
    assert ours.is_valid({**run, "user": {"plugin": {"anybodys": {"x": 1}}}})


ODD = """\
from datetime import date
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from muarl.plugins import *


def checked(value):
    CHECK
    return value


class Part(Options):
    \"\"\"A part.\"\"\"

    name: str
    \"\"\"Its name.\"\"\"


class Odd(Options):
    \"\"\"All sorts.\"\"\"

    file: Path | None = None
    \"\"\"A file.\"\"\"
    day: date | None = None
    \"\"\"A day.\"\"\"
    pair: tuple[int, float] = (1, 2.0)
    \"\"\"Two numbers.\"\"\"
    parts: list[Part] = []
    \"\"\"Parts.\"\"\"
    version: float = 1.5
    \"\"\"Of something.\"\"\"
    number: Annotated[int, AfterValidator(checked)] = 1
    \"\"\"A number.\"\"\"


odd = UserPlugin(Odd, print)
"""


def test_options_may_be_of_types_that_json_writes_as_texts_and_lists(
    folder: Path, install: Install, tmp_path: Path
) -> None:
    install(ODD.replace("CHECK", "pass"), "muarl.users: odd = odd")
    given = (
        "{file: a/b, day: '2026-03-01', pair: [3, 4], parts: [{name: x}], version: 2.5, number: 7}"
    )
    spec = load_run(run_with(folder, f"user: {{plugin: {{odd: {given}}}}}")).spec
    assert spec.user.plugin is not None
    options = spec.user.plugin.options.model_dump()
    assert options["file"] == Path("a/b")
    assert options["pair"] == (3, 4.0)
    (tmp_path / "again.yaml").write_text(dump_spec(spec, defaults=True), encoding="utf-8")
    assert load_spec(tmp_path / "again.yaml", RunSpec).spec == spec
    assert RunSpec.model_validate(spec.model_dump(mode="json")) == spec
    assert "A day." in schema_files(installed=True)["run.v1.json"]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("{day: tomorrow}", "5:28: 'day' is wrong: Input should be a valid date"),
        ("{pair: [3]}", "5:29: missing field 1"),
        ("{parts: [{name: x}, {nam: y}]}", "5:43: unknown field 'nam'; did you mean 'name'?"),
        ("{file: 3}", "5:29: 'file' "),
        (
            "{number: 0}",
            "5:16: 'plugin': the options of the user 'odd' of shop-plugins 0.1 raised",
        ),
    ],
)
def test_what_is_wrong_deep_in_options_has_its_place(
    folder: Path, install: Install, given: str, problem: str
) -> None:
    install(ODD.replace("CHECK", "1 / value"), "muarl.users: odd = odd")
    found = problems(folder, f"user: {{plugin: {{odd: {given}}}}}")
    assert any(one.startswith(problem) for one in found), found


def test_python_may_name_a_plug_in_with_its_own_options(install: Install) -> None:
    install(PATIENT, *BOTH)
    read = UserSpec(plugin={"patient": {"patience": 4}}).plugin
    assert read is not None
    again = UserSpec(plugin={"patient": read.options})
    assert again.plugin == read == PluggedUser("patient", read.options)
    assert hash(again.plugin) == hash(read)


def test_the_module_for_packages_loads_neither_torch_nor_mcp() -> None:
    heavy = ["torch", "transformers", "mcp", "aiohttp", "tokenizers", "renderers"]
    code = f"import sys, muarl.plugins; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_every_public_name_is_there_and_none_twice() -> None:
    names = muarl.plugins.__all__
    assert len(set(names)) == len(names)
    assert all(
        getattr(muarl.plugins, name).__doc__ for name in names if name not in ("Answer", "EnvName")
    )
