"""`muarl init` writes a domain that passes every check, whatever its template and its name."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from bad_input import InProcess

from muarl.cli import VERBS
from muarl.cli.init import PLACEHOLDER, TEMPLATES
from muarl.spec.schema import schema_files

every_template = pytest.mark.parametrize(
    "template", sorted(TEMPLATES.keys() - {"gymnasium", "verifiers"})
)


@pytest.fixture(autouse=True)
def _new_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@every_template
def test_a_new_domain_is_sound_and_its_expert_earns_everything(
    muarl: InProcess, template: str
) -> None:
    assert muarl("init", "shop", "--template", template).code == 0
    checked = muarl("check", "shop/run.yaml", "--json", "--limit", "8")
    assert checked.code == 0
    proof = json.loads(checked.out)
    assert proof["sound"]
    assert proof["domain"] == "shop"
    assert proof["skipped"] == []
    assert {split: mean["value"] for split, mean in proof["expert"].items()} == {
        "train": 1.0,
        "held_out": 1.0,
    }
    floors = [mean["value"] for means in proof["floor"].values() for mean in means.values()]
    assert max(floors) == 0


def test_a_new_environment_is_sound_and_its_expert_earns_everything(muarl: InProcess) -> None:
    assert muarl("init", "vault", "--template", "gymnasium").code == 0
    checked = muarl("check", "vault/run.yaml", "--json", "--limit", "8")
    proof = json.loads(checked.out)
    assert (checked.code, proof["sound"], proof["domain"]) == (0, True, "vault")
    assert [mean["value"] for mean in proof["expert"].values()] == [1.0, 1.0]
    assert [mean["value"] for mean in proof["floor"]["do_nothing"].values()] == [0.0, 0.0]
    assert len(proof["skipped"]) == 1
    played = muarl("rollout", "vault/run.yaml", "--expert", "--episodes", 4, "--out", "expert")
    assert played.code == 0, played.lines
    replayed = muarl("replay", "expert")
    assert replayed.out == "4 episodes are as recorded, 0 differ, 0 faults were left out\n"


@every_template
def test_it_has_what_a_small_domain_needs(muarl: InProcess, template: str) -> None:
    from muarl.domain import load_domain

    assert muarl("init", "shop", "--template", template).code == 0
    domain = load_domain("shop")
    assert len(domain.spec.personas) == 2
    assert len([*domain.spec.reward, *domain.spec.metrics]) == 4
    for split in ("train", "held_out"):
        assert len(domain.tasks(split)) >= 2
    schemas = {file.name: file.read_text() for file in Path("shop/schemas").iterdir()}
    assert schemas == schema_files()
    for file in Path("shop").glob("*.yaml"):
        first, text = file.read_text().split("\n", 1)
        (schema,) = re.findall(r"^# yaml-language-server: \$schema=(.+)$", first)
        assert (file.parent / schema).is_file()
        assert PLACEHOLDER not in text


def test_it_says_what_was_written_and_what_comes_next(muarl: InProcess) -> None:
    lines = muarl("init", "shop").out.splitlines()
    at = lines.index("next:")
    assert [Path(line).name for line in lines[:at]] == [
        "domain.yaml",
        "expert.py",
        "run.yaml",
        "tasks.py",
        "tools.py",
    ]
    assert all(Path(line).is_file() for line in lines[:at])
    commands = [line.split() for line in lines[at + 1 :]]
    assert {"check", "train"} <= {command[1] for command in commands} <= set(VERBS)


@pytest.mark.parametrize("name", ["null", "1.5", "0x1f", "y", "A-b_c.d"])
def test_a_name_that_yaml_could_take_for_something_else_is_a_name(
    muarl: InProcess, name: str
) -> None:
    assert muarl("init", name, "--template", "sql").code == 0
    checked = muarl("check", name, "--offline")
    assert checked.code == 0
    assert checked.out.startswith(f"{name}: specs are valid")


@pytest.mark.parametrize("name", ["", ".", "..", "../shop", "a/b", "-shop", "shop.", "sh\nop", "ü"])
def test_a_name_that_is_none_is_refused_and_nothing_is_written(
    muarl: InProcess, tmp_path: Path, name: str
) -> None:
    muarl("init", "--", name).refuses(2, "is no name of a domain", lines=4)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_kept_and_the_flag_named(muarl: InProcess) -> None:
    Path("shop").mkdir()
    Path("shop/tools.py").write_text("mine")
    muarl("init", "shop").refuses(2, "shop is there already", "--overwrite")
    assert Path("shop/tools.py").read_text() == "mine"
    assert [file.name for file in Path("shop").iterdir()] == ["tools.py"]


def test_overwrite_replaces_the_templates_files_and_no_others(muarl: InProcess) -> None:
    Path("shop").mkdir()
    for name in ("tools.py", "notes.txt"):
        (Path("shop") / name).write_text("mine")
    assert muarl("init", "shop", "--overwrite").code == 0
    assert "def serve" in Path("shop/tools.py").read_text()
    assert Path("shop/notes.txt").read_text() == "mine"


def test_a_file_in_the_place_of_the_folder_is_one_clear_message(muarl: InProcess) -> None:
    Path("shop").write_text("mine")
    muarl("init", "shop", "--overwrite").refuses(1, "muarl: cannot write shop")
    assert Path("shop").read_text() == "mine"
