"""`docs/` as a site, by Sphinx: `make site` builds it into build/site. It fetches nothing from anywhere.

The pages stay as they are read in the repository: plain Markdown. What a site needs beyond that is
added here: the navigation, links to files that are no pages, equations without scripts.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

project = "muarl"
author = "the muarl developers"
extensions = ["myst_parser"]
root_doc = "README"
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = "muarl"
html_copy_source = False
html_show_sphinx = False
html_math_renderer = "mathml"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
myst_dmath_allow_labels = False
pygments_style = "friendly"
pygments_dark_style = "monokai"
# Output of commands is no code. Links are checked in what is built, where anchors in tables exist:
suppress_warnings = ["misc.highlighting_failure", "myst.xref_missing"]

_LINK = re.compile(r"(?<!!)\[([^\]\n]+)\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^(```.*?^```)", re.DOTALL | re.MULTILINE)


def setup(app: Any) -> None:
    """What Sphinx calls first."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("source-read", _prepare)


def _prepare(app: Any, page: str, source: list[str]) -> None:
    """Links out of `docs/` become words; the first page gets the navigation."""
    parts = _FENCE.split(source[0])
    source[0] = "".join(
        part if part.startswith("```") else _own_links(part, PurePosixPath(page).parent)
        for part in parts
    )
    if page == root_doc:
        source[0] += "\n\n" + "\n\n".join(_toctrees(Path(app.srcdir) / "README.md"))


def _own_links(text: str, folder: PurePosixPath) -> str:
    def own(link: re.Match[str]) -> str:
        words, target = link.groups()
        return words if _leaves(target.partition("#")[0], folder) else link[0]

    return _LINK.sub(own, text)


def _leaves(target: str, folder: PurePosixPath) -> bool:
    depth = len(folder.parts)
    for part in PurePosixPath(target).parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return True
    return False


def _toctrees(first: Path) -> list[str]:
    """A hidden table of contents for each section of the first page, whose tables lead to all pages."""
    sections: dict[str, list[str]] = {}
    section = "Begin"
    seen = set()
    for line in first.read_text(encoding="utf-8").splitlines():
        if line.startswith("**") and line.endswith("**"):
            section = line.strip("*")
        for _, target in _LINK.findall(line):
            page = target.partition("#")[0].removesuffix(".md")
            if target.partition("#")[0].endswith(".md") and not page.startswith(".."):
                if page not in seen:
                    sections.setdefault(section, []).append(page)
                seen.add(page)
    return [
        "\n".join(["```{toctree}", ":hidden:", f":caption: {name}", "", *pages, "```"])
        for name, pages in sections.items()
    ]


def _inline(writer: Any, node: nodes.Element) -> None:
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.Element) -> None:
    writer.body.append(convert(node.astext(), display="block"))
    raise nodes.SkipNode
