"""What a domain is made of lies in its folder: no reference leads out of it, a link may."""

from __future__ import annotations

from pathlib import Path

import pytest
from spec_files import said, spoil, write_all

from muarl.errors import SpecError
from muarl.spec import load_domain_spec


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    write_all(tmp_path / "shop")
    (tmp_path / "tasks.yaml").write_text((tmp_path / "shop" / "tasks.yaml").read_text())
    (tmp_path / "world.json").write_text("{}")
    (tmp_path / "rules.md").write_text("Be kind.")
    return tmp_path / "shop"


_DATA = "  data:\n    orders:\n      W1: {status: pending}\n"


@pytest.mark.parametrize("above", ["..", "sub/../..", "absolute"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("files: [tasks.yaml]", "files: ['{}/tasks.yaml']"),
        ("files: [tasks.yaml]", "files: ['{}/*.yaml']"),
        (_DATA, "  file: '{}/world.json'\n"),
        ("rules: Be kind.", "rules: {{file: '{}/rules.md'}}"),
        ("  python: tools.py:serve", "  command: [x]\n  files: '{}/shop'"),
    ],
    ids=["tasks", "tasks that match", "world", "rules", "files of a server"],
)
def test_a_reference_that_leads_out_of_a_domain_is_refused(
    folder: Path, old: str, new: str, above: str
) -> None:
    named = str(folder.parent) if above == "absolute" else above
    spoil(folder / "domain.yaml", old, new.format(named))
    with pytest.raises(SpecError) as caught:
        load_domain_spec(folder)
    (problem,) = said(caught.value)
    assert "leads out of the folder of this file" in problem


def test_a_link_in_the_folder_is_followed(folder: Path) -> None:
    (folder / "tasks.yaml").unlink()
    (folder / "tasks.yaml").symlink_to("../tasks.yaml")
    assert load_domain_spec(folder).spec.tasks.files == ["tasks.yaml"]
