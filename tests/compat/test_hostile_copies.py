"""`muarl import` of a copy that somebody made to harm: nothing runs, nothing leads out, nothing crashes it."""

from __future__ import annotations

import gzip
import json
import shutil

import pytest

from muarl.cli import main
from muarl.compat import upstream
from muarl.compat.acebench import entries
from muarl.compat.acebench.entries import LANGUAGES
from muarl.domain import load_domain

DEEP = b"[" * 200_000 + b"]" * 200_000
SAID = {
    "nothing": b"",
    "no UTF-8": b"\xff\xfe\x00\xe9",
    "UTF-16": '{"id": "x"}'.encode("utf-16"),
    "deep": DEEP,
    "deep objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "NaN": b'{"id": NaN}',
    "Infinity": b'[{"id": "x", "n": -Infinity}]',
    "half a surrogate pair": b'{"id": "\\ud800"}',
    "a number of 5,000 digits": b"[" + b"9" * 5_000 + b"]",
    "a number": b"12",
    "null": b"null",
    "a list of numbers": b"[1, 2]",
    "an id that is a list": b'{"id": ["x"]}',
    "zeros": b"\x00" * 64,
}
READ = {
    "tau1": ("airline_tasks_test.json", "airline/users.json"),
    "tau2": ("domains/mock/tasks.json", "domains/mock/split_tasks.json", "domains/mock/db.json"),
    "bfcl": ("BFCL_v4_multi_turn_base.json", "multi_turn_func_doc/math_api.json"),
    "acebench": ("data_en/data_agent_multi_turn.json",),
}
CHOSEN = {"tau1": ["--domain", "airline"], "tau2": ["--domain", "mock"]}
EVIL = 'import pathlib\npathlib.Path(__file__ + ".ran").touch()\nraise SystemExit("executed")\n'


@pytest.fixture(scope="module")
def copies(fixtures, tmp_path_factory):
    """A copy of each benchmark that may be changed."""
    made = {}
    for name, source in (
        *(("tau1", "tau1"), ("tau2", "tau2"), ("acebench", "acebench"), ("bfcl", "bfcl/v4")),
    ):
        made[name] = tmp_path_factory.mktemp(name) / "copy"
        unread = shutil.ignore_patterns("canonical_db", "telecom", "retail*", "orders.json")
        shutil.copytree(fixtures / "data" / source, made[name], ignore=unread)
        for path in made[name].rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
    return made


@pytest.fixture(autouse=True)
def _nothing_is_remembered():
    entries.entries.cache_clear()
    entries.first_records.cache_clear()


def importing(name, copy, to):
    chosen = CHOSEN.get(name, [])
    return main(["import", name, "--from", str(copy), "--to", str(to), "--accept-unknown", *chosen])


@pytest.mark.parametrize(("name", "file"), [(n, f) for n, files in READ.items() for f in files])
def test_files_that_hold_anything_else_are_refused_by_name(copies, tmp_path, capsys, name, file):
    path = copies[name] / file
    kept = path.read_bytes()
    try:
        for number, content in enumerate(SAID.values()):
            path.write_bytes(content)
            code = importing(name, copies[name], tmp_path / str(number))
            said = capsys.readouterr().err
            assert code in (0, 1, 2), list(SAID)[number]
            assert "Traceback" not in said
            assert code == 0 or path.name in said or "not formed as those of" in said, said
    finally:
        path.write_bytes(kept)


def test_names_in_entries_are_no_paths(copies, tmp_path, capsys):
    copy = copies["acebench"]
    for language in LANGUAGES:
        path = copy / f"data_{language}" / "data_agent_multi_turn.json"
        first, *rest = path.read_text(encoding="utf-8").splitlines()
        for classes in (["../../evil"], ["/evil"], ["BaseApi", "..\\evil"]):
            entry = {**json.loads(first), "involved_classes": classes}
            path.write_text("\n".join([json.dumps(entry), *rest]), encoding="utf-8")
            entries.entries.cache_clear()
            assert importing("acebench", copy, tmp_path / "in" / "out") != 0
            assert "there is no class" in capsys.readouterr().err
        path.write_text("\n".join([first, *rest]), encoding="utf-8")
    assert not list(tmp_path.rglob("*evil*"))


@pytest.mark.parametrize("name", list(READ))
def test_a_link_that_leads_out_of_the_copy_is_not_followed(copies, tmp_path, capsys, name):
    path = copies[name] / READ[name][0]
    kept = path.read_bytes()
    secret = tmp_path / "secret"
    secret.write_bytes(kept)
    path.unlink()
    path.symlink_to(secret)
    try:
        assert importing(name, copies[name], tmp_path / "out") != 0
        assert "leads out of" in capsys.readouterr().err
    finally:
        path.unlink()
        path.write_bytes(kept)


def test_what_is_too_large_or_unzips_to_it_is_not_read(copies, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(upstream, "LARGEST", 1_000_000)
    path = copies["tau2"] / "domains" / "mock" / "db.json"
    kept = path.read_bytes()
    path.write_bytes(b" " * 1_000_001)
    assert importing("tau2", copies["tau2"], tmp_path / "out") != 0
    assert "db.json is larger than 1000000 bytes" in capsys.readouterr().err
    path.unlink()
    zipped = path.with_name("db.json.gz")
    zipped.write_bytes(gzip.compress(b" " * 1_000_001))
    assert importing("tau2", copies["tau2"], tmp_path / "out") != 0
    assert "db.json.gz is larger than" in capsys.readouterr().err
    zipped.write_bytes(b"no gzip")
    assert importing("tau2", copies["tau2"], tmp_path / "out") != 0
    assert "db.json.gz cannot be read" in capsys.readouterr().err
    zipped.write_bytes(gzip.compress(kept))
    assert importing("tau2", copies["tau2"], tmp_path / "out") == 0
    zipped.unlink()
    path.write_bytes(kept)


def test_python_of_a_copy_is_never_run(copies, tmp_path, monkeypatch, capsys):
    """Wherever upstream has Python that is read, and where Python itself would look for some."""
    for name, copy in copies.items():
        for file in (
            *("__init__.py", "conftest.py", "sitecustomize.py", "json.py", "tools.py"),
            *("tau_bench/envs/user.py", "tau_bench/envs/airline/tools/__init__.py"),
            *("src/tau2/agent/llm_agent.py", "src/tau2/domains/mock/tools.py"),
            *("constants/default_prompts.py", "utils.py", "model_handler/utils.py"),
            *("model_inference/prompt_en.py", "model_inference/multi_turn/common_agent.py"),
            "model_inference/multi_turn/APIModel_user.py",
        ):
            (copy / file).parent.mkdir(parents=True, exist_ok=True)
            (copy / file).write_text(EVIL)
        monkeypatch.chdir(copy)
        importing(name, copy, tmp_path / name)
        assert "executed" not in capsys.readouterr().err
        assert not list(copy.rglob("*.ran"))
        for path in copy.rglob("*.py"):
            path.unlink()


def test_texts_that_yaml_would_take_for_more_stay_texts(copies, tmp_path):
    """Domains are written as JSON in YAML: an anchor, a tag or a comment in a text is a text."""
    path = copies["tau2"] / "domains" / "mock" / "tasks.json"
    kept = path.read_text()
    tasks = json.loads(kept)
    odd = "*a &b !!python/object/apply:os.system [x] {code} # \u2028 \x7f\nrules: none"
    tasks[0]["id"] = odd
    path.write_text(json.dumps(tasks))
    try:
        assert importing("tau2", copies["tau2"], tmp_path) == 0
        made = load_domain(tmp_path / "mock")
        assert made.spec.rules != "none"
        assert len(made.tasks("base")) == len(tasks)
    finally:
        path.write_text(kept)
