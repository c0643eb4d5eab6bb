"""The package of docs/plugins.md as a wheel, built and installed by pip: every verb finds it, and says who provides what."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from errand import OFFICE, OUTSIDE, PAGE, PEOPLE, PROJECT

from muarl.cli import main
from muarl.record import read_journal

DOMAIN, TASKS, RUN, _ = [block.text for block in PAGE if block.language == "yaml"]
EXPERT = """\
from muarl.messages import Message, ToolCall


class Expert:
    def __init__(self, task, imperfections, rng):
        self.thing = task.gold[0].arguments["thing"]

    def act(self, history):
        if history[-1].role == "tool":
            return Message("assistant", "Done.")
        return Message("assistant", "", (ToolCall("c1", "order", {"thing": self.thing}),))
"""


def pip(*arguments: str | Path) -> None:
    """Run it without network and without fetching what builds."""
    offline = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, arguments)]
    done = subprocess.run([*command, *offline], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheels")
    (source / "pyproject.toml").write_text(PROJECT)
    package = source / "errand"
    package.mkdir()
    for name, text in (("people", PEOPLE), ("office", OFFICE), ("outside", OUTSIDE)):
        (package / f"{name}.py").write_text(text, encoding="utf-8")
    (package / "__init__.py").touch()
    pip("wheel", source, "--wheel-dir", out)
    (built,) = out.glob("*.whl")
    return built


def test_it_is_installed_and_every_verb_finds_it(
    wheel: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert any(name.endswith("entry_points.txt") for name in zipfile.ZipFile(wheel).namelist())
    site = tmp_path / "site"
    pip("install", wheel, "--target", site)
    monkeypatch.syspath_prepend(str(site))
    for module in [name for name in sys.modules if name.partition(".")[0] == "errand"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.chdir(tmp_path)
    shop = tmp_path / "errands"
    shop.mkdir()
    for name, text in (
        ("domain", DOMAIN + "expert: expert.py:Expert\n"),
        ("tasks", TASKS),
        ("run", RUN),
    ):
        (shop / f"{name}.yaml").write_text(text, encoding="utf-8")
    (shop / "expert.py").write_text(EXPERT)

    assert main(["check", "errands/run.yaml"]) == 0
    said = capsys.readouterr().out
    for kind, name in (
        ("tool server", "office"),
        ("world", "shelves"),
        ("predicate", "short"),
        ("user", "customer"),
        ("sink", "lines"),
    ):
        assert f"{kind} {name!r} is provided by errand 0.1 (errands/" in said
    assert "also installed: policy 'clerk' (errand 0.1)" in said

    assert main(["schema", "--out", "schemas"]) == 0
    schema = (tmp_path / "schemas" / "run.v1.json").read_text()
    assert "Messages that she answers; at the next she leaves." in schema

    rolled = ["rollout", "errands/run.yaml", "--expert", "--episodes", "2", "--out", "out"]
    assert main(rolled) == 0, capsys.readouterr().err
    episodes = list(read_journal(tmp_path / "out" / "episodes.journal"))
    assert [episode.reward for episode in episodes] == [1.0, 1.0]
    assert {episode.turns[-1].reply.text for episode in episodes if episode.turns[-1].reply} == {
        "Thanks."
    }
    recorded = json.loads((tmp_path / "out" / "domain.json").read_text())["plug-ins"]
    assert recorded["user customer"] == recorded["sink lines"] == "errand 0.1"
    assert (tmp_path / "out" / "figures.jsonl").read_text()
