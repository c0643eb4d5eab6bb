"""The page of `muarl view` while the journal is still being read: what it says then holds afterwards."""

from __future__ import annotations

import json
import threading
from typing import Any

import anyio
import pytest
from browsing import choose, until_there
from headless_chromium import Page, chromium_page, require_chromium
from synthetic_run import make_run

from muarl.report.index import EpisodeIndex
from muarl.report.serving import open_view

pytestmark = pytest.mark.browser

EPISODES = 600  # more than the page begins with
BEGUN = 500
COUNT = "document.querySelector('.browse [role=status]').textContent"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    require_chromium()
    folder = tmp_path_factory.mktemp("reading") / "run"
    return make_run(folder, iterations=2, tasks=50, group=2)


@pytest.fixture
def reading(monkeypatch) -> threading.Event:
    """The journal is read up to `BEGUN` episodes, and whole once this is set."""
    on = threading.Event()
    refresh = EpisodeIndex.refresh

    def halting(index: EpisodeIndex) -> bool:
        return (on.is_set() or index.facets()["total"] < BEGUN) and refresh(index)

    monkeypatch.setattr(EpisodeIndex, "refresh", halting)
    return on


async def until_told(page: Page, words: str) -> None:
    await page.ask(
        f"(async () => {{ while (!document.body.innerText.includes({json.dumps(words)}))"
        " await new Promise(done => setTimeout(done, 20)); })()"
    )


def test_no_more_episodes_are_found_than_there_are(run, reading):
    async def go() -> str:
        async with open_view(run) as address, chromium_page(address) as page:
            await until_there(page, "[data-ready]")
            reading.set()
            await until_told(page, f"{EPISODES - BEGUN} more episodes. Show them")
            await choose(page, "task", "cancel")
            return await page.ask(COUNT)

    assert anyio.run(go) == f"{EPISODES} of {EPISODES} episodes"


def test_a_link_keeps_filters_that_are_read_late(run, reading):
    async def go() -> dict[str, Any]:
        link = "#phase=eval%3Afinal%3A0&verdict=passed"
        async with open_view(run) as address, chromium_page(address + link) as page:
            await page.ask(
                "(async () => { while (!document.querySelector('[data-ready]')"
                " && !document.body.innerText.includes('Reading the journal: 8'))"
                " await new Promise(done => setTimeout(done, 20)); })()"
            )
            reading.set()
            await until_there(page, "[data-ready]")
            return await page.ask(
                "({ phase: document.querySelector('.filters [name=phase]').value,"
                " rows: [...document.querySelectorAll('.list .meta')].map(r => r.textContent) })"
            )

    seen = anyio.run(go)
    assert seen["phase"] == "eval:final:0"
    assert seen["rows"]
    assert all("eval:final:0" in row for row in seen["rows"])


def test_a_link_that_is_followed_is_asked_for_once_however_often_the_page_was_drawn(run, reading):
    async def go() -> int:
        async with open_view(run) as address, chromium_page(address) as page:
            await until_there(page, "[data-ready]")
            reading.set()
            await until_told(page, "more episodes. Show them")
            await page.ask("document.querySelector('.news button').click()")
            await until_there(page, "[data-ready]")
            key = "train/1/cancel-001/0"
            await page.ask(f"(location.hash = '#episode={key}')")
            await until_told(page, key)
            return sum("/episode?" in asked and "cancel-001" in asked for asked in page.requests)

    assert anyio.run(go) == 1


def test_the_button_that_shows_what_came_stays_under_the_keys(run, reading):
    """It was drawn anew at every look at the run, and lost the focus."""

    async def go() -> list[Any]:
        async with open_view(run) as address, chromium_page(address) as page:
            await until_there(page, "[data-ready]")
            reading.set()
            await until_told(page, "more episodes. Show them")
            await page.ask("document.querySelector('.news button').focus()")
            asked = len(page.requests)
            while not any("/run?" in one for one in page.requests[asked:]):
                await page.ask("new Promise(done => setTimeout(done, 100))")
            await page.ask("new Promise(done => setTimeout(done, 100))")
            held = await page.ask("document.activeElement.textContent")
            await page.press("Enter", text="\r")
            await until_told(page, f"{EPISODES} of {EPISODES} episodes")
            return [held, await page.ask("document.activeElement.id")]

    assert anyio.run(go) == ["Show them", "page"]


def test_a_damaged_journal_is_told_and_what_comes_before_the_damage_is_read(tmp_path):
    require_chromium()
    folder = make_run(tmp_path / "run", iterations=1, tasks=4, group=2)
    journal = folder / "episodes.journal"
    data = bytearray(journal.read_bytes())
    data[len(data) // 2] ^= 0xFF
    journal.write_bytes(data)

    async def go() -> dict[str, Any]:
        async with open_view(folder) as address, chromium_page(address) as page:
            await until_told(page, "damaged from byte")
            await until_there(page, "[data-ready]")
            return {"told": page.complaints, "count": await page.ask(COUNT)}

    seen = anyio.run(go)
    assert seen["told"] == []
    assert 0 < int(seen["count"].split(" of ")[0]) < 24
