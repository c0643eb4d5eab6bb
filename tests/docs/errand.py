"""The package of docs/plugins.md, installed for one test as it stands there."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest
from documents import blocks

PAGE = [block for block in blocks() if block.place.startswith("plugins.md")]
(PROJECT,) = [block.text for block in PAGE if block.language == "toml"]
PEOPLE, OFFICE, LAWS, OUTSIDE = [block.text for block in PAGE if block.language == "python"]


def install(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the package into a folder, its metadata made of its own pyproject.toml, and find it there."""
    project = tomllib.loads(PROJECT)["project"]
    info = site / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    points = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in named.items())
        for group, named in project["entry-points"].items()
    )
    (info / "entry_points.txt").write_text(points)
    package = site / "errand"
    package.mkdir()
    for name, text in (("people", PEOPLE), ("office", OFFICE), ("outside", OUTSIDE)):
        (package / f"{name}.py").write_text(text, encoding="utf-8")
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(site))
    for module in [name for name in sys.modules if name.partition(".")[0] == "errand"]:
        monkeypatch.delitem(sys.modules, module)
