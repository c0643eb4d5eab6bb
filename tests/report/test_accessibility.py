"""Both pages, audited by axe-core in a real browser, in both themes; and colours, by their numbers."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import resources
from itertools import combinations
from pathlib import Path
from typing import Any

import anyio
import pytest
from headless_chromium import Page, chromium_page, require_chromium
from synthetic_run import make_run

from muarl.report import write_report
from muarl.report.serving import open_view

AXE = Path(os.environ.get("MUARL_AXE", f"{sys.prefix}/axe")) / "node_modules/axe-core/axe.min.js"
AUDIT = """
axe.run(document, {resultTypes: ["violations"]}).then((found) => found.violations
  .filter((one) => ["serious", "critical"].includes(one.impact))
  .map((one) => [one.id, one.impact, one.nodes.slice(0, 5).map((node) => node.html.slice(0, 200) + " " + (node.any[0]?.message ?? ""))]))
"""
READY = """
(async () => { while (!document.querySelector('[data-ready]'))
  await new Promise((done) => setTimeout(done, 20)); })()
"""


def require_axe() -> str:
    """Source of the audit; without it the test is skipped, or fails where CI demands it."""
    if AXE.exists():
        return AXE.read_text(encoding="utf-8")
    reason = f"no axe-core at {AXE}; scripts/install-axe.sh puts it there"
    if os.environ.get("MUARL_REQUIRE_AXE") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audited")
    return [
        make_run(folder / name, iterations=4, tasks=4, group=3, seed=n)
        for n, name in enumerate(("one", "two"))
    ]


@asynccontextmanager
async def address_of(kind: str, runs: list[Path]) -> AsyncIterator[str]:
    if kind == "view":
        async with open_view(runs[0]) as address:
            yield address
    else:
        folders = runs[:1] if kind == "report" else runs
        yield write_report(folders, runs[0].parent / f"{kind}.html").as_uri()


async def open_everything(page: Page) -> None:
    """Unfold what is folded, and put a second dialogue beside the first."""
    await page.ask("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    await page.ask("new Promise((done) => setTimeout(done, 50))")


async def compare(page: Page) -> None:
    await page.ask("document.querySelector('.chip:enabled').click()")
    await page.ask(
        "(async () => { while (!document.querySelector('.columns'))"
        " await new Promise((done) => setTimeout(done, 20)); })()"
    )


@pytest.mark.browser
@pytest.mark.parametrize("kind", ["report", "runs", "view"])
def test_an_audit_finds_nothing_serious_in_either_theme(runs, kind):
    require_chromium()
    axe = require_axe()
    found: dict[str, Any] = {}

    async def go() -> None:
        async with address_of(kind, runs) as address, chromium_page(address) as page:
            await page.ask(READY)
            await open_everything(page)
            await page.ask(axe + ";0")
            for theme in ("light", "dark"):
                await page.prefer(theme)
                found[theme] = await page.ask(AUDIT)
            await compare(page)
            await open_everything(page)
            for theme in ("light", "dark"):
                await page.prefer(theme)
                found[f"{theme}, side by side"] = await page.ask(AUDIT)

    anyio.run(go)
    assert found == {state: [] for state in found}


LOST = """(() => {
  const seen = (element, part) => {
    const style = getComputedStyle(element, part);
    return style.backgroundColor !== getComputedStyle(document.body).backgroundColor || style.borderTopStyle !== "none";
  };
  const all = (selector, part) => [...document.querySelectorAll(selector)].filter((one) => !seen(one, part)).length;
  return { there: document.querySelectorAll(".whisker, .mark, .t.s, .row[aria-current]").length,
    lost: all(".whisker", "::before") + all(".whisker", "::after") + all(".mark") + all(".t.s") + all(".row[aria-current]") };
})()"""


@pytest.mark.browser
def test_intervals_tokens_and_what_is_chosen_are_seen_in_the_systems_colours(runs):
    require_chromium()

    async def go() -> dict[str, int]:
        address = write_report(runs[0]).as_uri()
        async with chromium_page(address) as page:
            await page.ask(READY)
            await page.send(
                "Emulation.setEmulatedMedia",
                features=[{"name": "forced-colors", "value": "active"}],
            )
            return await page.ask(LOST)

    seen = anyio.run(go)
    assert seen["there"] > 20
    assert seen["lost"] == 0


def palette() -> dict[str, tuple[str, str]]:
    """Name of each colour of the style to its light and its dark value."""
    style = resources.files("muarl.report").joinpath("assets/page.css").read_text(encoding="utf-8")
    found = re.findall(r"--(\w+): light-dark\((#\w{6}), (#\w{6})\)", style)
    return {name: (light, dark) for name, light, dark in found}


def linear(colour: str) -> list[float]:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]


def contrast(one: str, other: str) -> float:
    """WCAG 2.2: ratio of relative luminances."""
    a, b = (
        sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear(c), strict=True)) + 0.05
        for c in (one, other)
    )
    return max(a, b) / min(a, b)


@pytest.mark.parametrize("theme", [0, 1])
def test_text_and_curves_stand_out(theme):
    colours = {name: both[theme] for name, both in palette().items()}
    for ground in ("paper", "card", "sunk"):
        for text in ("ink", "soft", "good", "bad"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for curve in (f"c{n}" for n in range(8)):
        assert contrast(colours[curve], colours["card"]) >= 3, curve
    assert contrast(colours["edge"], colours["card"]) >= 3


# Viénot, Brettel and Mollon (1999): what is left of linear RGB to who lacks a cone.
DEUTERANOPIA = ((0.29275, 0.70725, 0.0), (0.29275, 0.70725, 0.0), (-0.02234, 0.02234, 1.0))
PROTANOPIA = ((0.11238, 0.88762, 0.0), (0.11238, 0.88762, 0.0), (0.00401, -0.00401, 1.0))
NORMAL = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
LAB = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
WHITE = (0.9505, 1.0, 1.089)


def lab(rgb: list[float]) -> tuple[float, float, float]:
    xyz = [sum(w * p for w, p in zip(row, rgb, strict=True)) for row in LAB]
    f = [
        t ** (1 / 3) if (t := max(0.0, v / w)) > 0.008856 else 7.787 * t + 16 / 116
        for v, w in zip(xyz, WHITE, strict=True)
    ]
    return 116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])


@pytest.mark.parametrize("theme", [0, 1])
@pytest.mark.parametrize("eyes", [NORMAL, DEUTERANOPIA, PROTANOPIA])
def test_the_first_four_series_are_told_apart_by_any_eyes(theme, eyes):
    """CIE76 of at least 15 for the first four; curves of more differ by dash as well."""
    seen = [
        lab([sum(w * p for w, p in zip(row, linear(palette()[f"c{n}"][theme]), strict=True)) for row in eyes])
        for n in range(4)
    ]  # fmt: skip
    for (a, one), (b, other) in combinations(enumerate(seen), 2):
        apart = sum((x - y) ** 2 for x, y in zip(one, other, strict=True)) ** 0.5
        assert apart >= 15, (a, b, apart)


def test_every_series_has_a_dash_of_its_own():
    style = resources.files("muarl.report").joinpath("assets/page.css").read_text(encoding="utf-8")
    dashes = dict(
        re.findall(r"\.c(\d) \{ stroke: var\(--c\d\); stroke-dasharray: ([\d. ]+);", style)
    )
    assert sorted(dashes) == [str(n) for n in range(1, 8)]  # the first one is unbroken
    assert len(set(dashes.values())) == 7
