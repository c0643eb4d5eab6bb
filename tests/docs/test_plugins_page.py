"""The package of docs/plugins.md: proved, played, held to the laws, and known to an editor."""

from __future__ import annotations

import json
import runpy
import tomllib
from pathlib import Path

import pytest
from errand import LAWS, OFFICE, PAGE, PROJECT, install

from muarl.cli import main
from muarl.spec.plugin import KINDS

DOMAIN, TASKS, RUN, GRID = [block.text for block in PAGE if block.language == "yaml"]
(SAID,) = [block.text for block in PAGE if block.language == "text"]


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package, and the spec files that name it."""
    install(tmp_path / "site", monkeypatch)
    folder = tmp_path / "errands"
    folder.mkdir()
    for name, text in (("domain", DOMAIN), ("tasks", TASKS), ("run", RUN), ("grid", GRID)):
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def test_it_provides_each_kind() -> None:
    assert set(tomllib.loads(PROJECT)["project"]["entry-points"]) == set(KINDS)


def test_it_is_proved_and_played_as_the_page_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = [command for block in PAGE for command in block.commands]
    check, evaluate = (line.removeprefix(".venv/bin/muarl ").split() for line in typed)
    assert main(check) == 0
    lines = capsys.readouterr().out.splitlines()
    *shown, _ = SAID.splitlines()
    assert lines[: len(shown)] == shown
    assert lines[-1] == "sound"
    assert main([*evaluate, "--json"]) == 0
    cells = json.loads(capsys.readouterr().out)["cells"]
    assert {cell["policy"]: cell["success"]["value"] for cell in cells} == {"clerk": 1, "idle": 0}
    out = tmp_path / "runs" / "errands"
    assert (out / "figures.jsonl").read_text()
    assert json.loads((out / "domain.json").read_text())["plug-ins"] == {
        "policy clerk": "errand 0.1",
        "predicate short": "errand 0.1",
        "sink lines": "errand 0.1",
        "tool server office": "errand 0.1",
        "user customer": "errand 0.1",
        "world shelves": "errand 0.1",
    }


def test_its_world_and_tool_server_keep_the_laws_as_the_page_looks_for_them(
    tmp_path: Path,
) -> None:
    (tmp_path / "laws.py").write_text(f"import anyio\n{OFFICE}\n{LAWS}", encoding="utf-8")
    runpy.run_path(str(tmp_path / "laws.py"))


def test_an_editor_completes_its_options(tmp_path: Path) -> None:
    assert main(["schema", "--out", str(tmp_path / "schemas")]) == 0
    schema = (tmp_path / "schemas" / "run.v1.json").read_text()
    assert "Messages that she answers; at the next she leaves." in schema
