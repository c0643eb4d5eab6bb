"""What `muarl check --fix` mends without asking, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from spec_files import DOMAIN, RUN, TASKS, write_all

from muarl.cli import main
from muarl.errors import SpecError
from muarl.spec import load_spec
from muarl.spec.mend import files_of, mended
from muarl.spec.schema import KINDS, schema_files


def fixed(path: Path) -> str:
    mended(path).write()
    assert mended(path).changes == (), "what is fixed is well"
    return path.read_text()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (DOMAIN, "domain.v1.json"),
        (TASKS, "tasks.v1.json"),
        (RUN, "run.v1.json"),
        ("version: 1\nreward: [{gold_world: true}]\n", "reward.v1.json"),
        ("version: 1\nrollout: {max_turns: 3}\n", "overlay.v1.json"),
        ("version: 1\nuser: {llm: {model: m}}\n", "overlay.v1.json"),
    ],
)
def test_the_first_line_names_the_schema_of_its_kind(tmp_path: Path, text: str, name: str) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(text)
    assert fixed(path) == f"# yaml-language-server: $schema=schemas/{name}\n{text}"
    assert (tmp_path / "schemas" / name).read_text() == schema_files()[name]


@pytest.mark.parametrize("place", ["schemas", "specs/schemas", "../schemas", "../../specs/schemas"])
def test_a_schema_that_is_there_is_found(tmp_path: Path, place: str) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    (folder / place).mkdir(parents=True)
    (folder / place / "run.v1.json").write_text("{}")
    (folder / "run.yaml").write_text(RUN)
    assert fixed(folder / "run.yaml").startswith(f"# yaml-language-server: $schema={place}/run.v1")
    assert (folder / place / "run.v1.json").read_text() == "{}"


@pytest.mark.parametrize(
    "wrong", ["schemas/tasks.v1.json", "nowhere/run.v1.json", "schemas/run.v0.json"]
)
def test_a_first_line_that_is_wrong_is_replaced(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "schemas").mkdir()
    for name, text in schema_files().items():
        (tmp_path / "schemas" / name).write_text(text)
    (tmp_path / "run.yaml").write_text(f"# yaml-language-server: $schema={wrong}\n{RUN}")
    assert fixed(tmp_path / "run.yaml") == (
        f"# yaml-language-server: $schema=schemas/run.v1.json\n{RUN}"
    )


def test_a_schema_on_the_web_is_left_alone(tmp_path: Path) -> None:
    text = f"# yaml-language-server: $schema=https://example.org/run.v1.json\n{RUN}"
    (tmp_path / "run.yaml").write_text(text)
    assert mended(tmp_path / "run.yaml").changes == ()


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        (
            "# why\ndomain: d\nmodel: {tiny: {}}\n",
            "# why\nversion: 1\ndomain: d\nmodel: {tiny: {}}\n",
        ),
        ("{domain: d, model: {tiny: {}}}\n", "{version: 1, domain: d, model: {tiny: {}}}\n"),
        ("  domain: d\n  model: {tiny: {}}", "  version: 1\n  domain: d\n  model: {tiny: {}}"),
        (
            "--- {domain: d,\n model: {tiny: {}}}",
            "--- {version: 1, domain: d,\n model: {tiny: {}}}",
        ),
    ],
)
def test_a_version_is_added_before_all_other_keys(tmp_path: Path, text: str, becomes: str) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(text)
    assert fixed(path).partition("\n")[2] == becomes
    load_spec(path, KINDS["run"])


def test_what_only_its_author_can_decide_is_left_alone(tmp_path: Path) -> None:
    text = RUN.replace("grpo:", "grop:")
    (tmp_path / "run.yaml").write_text(text)
    assert fixed(tmp_path / "run.yaml").endswith(text)


@pytest.mark.parametrize("text", ["", "a: [", "- 1\n", "a: 1\na: 2\n", "!x a: 1\n"])
def test_a_file_that_cannot_be_read_is_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.yaml").write_text(text)
    with pytest.raises(SpecError):
        mended(tmp_path / "run.yaml")


@pytest.mark.parametrize("end", ["\r", "\r\n"])
def test_lines_may_end_otherwise_and_nothing_is_lost(tmp_path: Path, end: str) -> None:
    path = tmp_path / "file.yaml"
    old = "# yaml-language-server: $schema=old/reward.v9.json   my note"
    path.write_bytes(end.join([old, "reward: [{gold_world: true}]", ""]).encode())
    mended(path).write()
    assert path.read_bytes().decode().split(end) == [
        "# yaml-language-server: $schema=schemas/reward.v1.json   my note",
        "version: 1",
        "reward: [{gold_world: true}]",
        "",
    ]
    assert mended(path).changes == ()


@pytest.mark.parametrize("text", ["--- &a {reward: [{gold_world: true}]}\n", "&x\nreward: [a]\n"])
def test_what_would_be_no_yaml_any_more_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises(SpecError, match="as its first key"):
        mended(path)
    assert path.read_text() == text


def test_a_full_disk_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(RUN)
    path.chmod(0o640)

    def full(_number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        mended(path).write()
    assert path.read_text() == RUN
    monkeypatch.undo()
    mended(path).write()
    assert path.stat().st_mode & 0o777 == 0o640
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_files_that_are_not_the_domain_s_own_are_left_alone(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "compose.yaml").write_text("services: {}\n")
    (victim / "tasks.yaml").write_text("domain: x\ntasks: []\n")
    shop = tmp_path / "shop"
    shop.mkdir()
    write_all(shop)
    (shop / "link.yaml").symlink_to(victim / "tasks.yaml")
    (shop / "compose.yaml").write_text("services: {}\n")
    named = '["../victim/*.yaml", link.yaml, compose.yaml, tasks.yaml]'
    (shop / "domain.yaml").write_text(DOMAIN.replace("[tasks.yaml]", named))
    assert files_of(shop) == [shop / "domain.yaml", shop / "tasks.yaml"]


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "compose.yaml").write_text("services: {}\n")
    with pytest.raises(SpecError, match="no spec file of muarl"):
        mended(tmp_path / "compose.yaml")


def test_a_domain_is_mended_with_its_tasks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_all(tmp_path)
    (tmp_path / "tasks.yaml").write_text(TASKS.replace("version: 1\n", ""))
    assert files_of(tmp_path) == [tmp_path / "domain.yaml", tmp_path / "tasks.yaml"]
    assert main(["check", str(tmp_path), "--offline"]) == 2
    capsys.readouterr()
    assert main(["check", str(tmp_path), "--offline", "--fix"]) == 0
    captured = capsys.readouterr()
    assert f"{tmp_path / 'tasks.yaml'}: version 1 added" in captured.err.splitlines()
    assert captured.out.startswith("shop: specs are valid")
    assert main(["check", str(tmp_path), "--offline", "--fix"]) == 0
    assert capsys.readouterr().err == ""


def test_other_kinds_are_mended_by_name_and_what_is_left_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_all(tmp_path)
    (tmp_path / "small.yaml").write_text("seed: 3\n")
    assert main(["check", str(tmp_path / "small.yaml"), "--fix"]) == 0
    assert (tmp_path / "small.yaml").read_text().splitlines()[1:] == ["version: 1", "seed: 3"]
    (tmp_path / "tasks.yaml").write_text(TASKS.replace("goal:", "gaol:"))
    assert main(["check", str(tmp_path / "tasks.yaml"), "--fix"]) == 2
    assert "unknown field 'gaol'" in capsys.readouterr().err
