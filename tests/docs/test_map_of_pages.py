"""docs/README.md is a map: every page is on it, and everything on it is a page."""

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
