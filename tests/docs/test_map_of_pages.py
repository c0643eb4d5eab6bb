"""docs/README.md is a map of pages, docs/architecture.md one of rooms: nothing lacks, nothing is made up."""

from __future__ import annotations

import re

from documents import ROOT

DOCS = ROOT / "docs"


def test_every_page_is_on_the_map_and_everything_on_it_exists() -> None:
    text = (DOCS / "README.md").read_text(encoding="utf-8")
    listed = {target for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in target}
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"README.md"}
    assert pages - listed == set(), "add them to docs/README.md"
    assert {name for name in listed if not (DOCS / name).is_file()} == set()


def test_every_room_is_on_the_map_and_everything_on_it_exists() -> None:
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    rows = text.partition("## Rooms")[2].partition("## Words")[0].splitlines()
    listed = {
        name.rstrip("/")
        for row in rows
        for name in re.findall(r"`([^`]+)`", row.split("|")[1] if "|" in row else "")
    }
    source = ROOT / "src" / "muarl"
    rooms = {path.stem for path in source.glob("[!_]*.py")}
    rooms |= {
        path.name for path in source.iterdir() if path.is_dir() and not path.name.startswith("_")
    }
    assert rooms - listed == set(), "add them to docs/architecture.md"
    assert listed - rooms == set(), "no longer there"
