"""The pages as a site: built by Sphinx without a warning, every link in it leads somewhere."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from documents import ROOT


class Page(HTMLParser):
    """What a page can be linked by, and what it links to and loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.words = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        if tag in ("script", "img", "iframe") and "src" in given:
            self.loads.add(given["src"])
        if tag == "link" and given.get("rel") == "stylesheet":
            self.loads.add(given["href"])

    def handle_data(self, data: str) -> None:
        self.words += data


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Page]:
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    command += ["-c", "scripts/site", "docs", str(out)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (built.returncode, built.stderr) == (0, "")
    return {path.resolve(): Page(path) for path in out.rglob("*.html")}


def broken(site: dict[Path, Page]) -> Iterator[str]:
    for path, page in site.items():
        for link in page.links:
            if link.startswith(("http://", "https://")):
                continue
            file, _, anchor = unquote(link).partition("#")
            target = (path.parent / file).resolve() if file else path
            if target not in site:
                if not target.exists():
                    yield f"{path.name}: {link}"
            elif anchor and anchor not in site[target].ids:
                yield f"{path.name}: {link}"


def test_every_page_is_in_the_site_and_every_link_leads_somewhere(site: dict[Path, Page]) -> None:
    built = {path.stem for path in site}
    assert built >= {path.stem for path in (ROOT / "docs").rglob("*.md")}
    assert not sorted(broken(site))


def test_it_fetches_nothing_from_anywhere(site: dict[Path, Page]) -> None:
    loaded = {link for page in site.values() for link in page.loads}
    assert loaded
    assert not [link for link in loaded if "//" in link]


def test_every_page_can_be_reached_from_the_first(site: dict[Path, Page]) -> None:
    (first,) = (page for path, page in site.items() if path.name == "README.html")
    named = {Path(link.partition("#")[0]).stem for link in first.links}
    assert not {path.stem for path in (ROOT / "docs").rglob("*.md")} - named - {"README"}


def test_equations_are_drawn_by_the_browser_alone(site: dict[Path, Page]) -> None:
    (grpo,) = (path for path in site if path.name == "grpo.html")
    text = grpo.read_text(encoding="utf-8")
    assert text.count("<math") > 10
    assert r"\rho" not in site[grpo].words
