"""Open a run's report, or its viewer, in a browser and look around."""

from __future__ import annotations

import json
from typing import Any

import anyio
from headless_chromium import Page, chromium_page

from muarl.report import write_report
from muarl.report.serving import open_view


def visit(folder, look) -> dict[str, Any]:
    """Open the report of a run and return what `look` noted, and what the page did."""

    async def go() -> dict[str, Any]:
        url = write_report(folder).as_uri()
        async with chromium_page(url) as page:
            await ready(page)
            seen = await look(page)
            seen |= {"complaints": page.complaints, "requests": page.requests, "url": url}
            return seen

    return anyio.run(go)


async def ready(page: Page) -> None:
    """The page has drawn its episodes, if it has any."""
    await page.ask(
        "(async () => { while (document.querySelector('.viewer') && !document.querySelector('[data-ready]'))"
        " await new Promise(requestAnimationFrame); })()"
    )


async def settled(page: Page) -> None:
    """What was clicked has been drawn."""
    await page.ask(
        "(async () => { while (document.querySelector('[aria-busy=true]'))"
        " await new Promise(done => setTimeout(done, 10)); })()"
    )


async def count(page: Page, selector: str) -> int:
    return await page.ask(f"document.querySelectorAll({json.dumps(selector)}).length")


async def text(page: Page, selector: str) -> str:
    return await page.ask(f"document.querySelector({json.dumps(selector)}).textContent")


def visit_view(folder, look) -> dict[str, Any]:
    """As `visit`, of the page that `muarl view` serves."""

    async def go() -> dict[str, Any]:
        async with open_view(folder) as address, chromium_page(address) as page:
            await page.ask(
                "(async () => { while (!document.querySelector('[data-ready]'))"
                " await new Promise(done => setTimeout(done, 20)); })()"
            )
            seen = await look(page)
            seen |= {"complaints": page.complaints, "requests": page.requests, "url": address}
            return seen

    return anyio.run(go)


async def choose(page: Page, name: str, value: str) -> list[str]:
    """Set a filter; the rows that are left."""
    await page.ask(
        f"(() => {{ const f = document.querySelector('.filters [name={name}]'); f.value = {json.dumps(value)};"
        " f.dispatchEvent(new Event(f.tagName === 'SELECT' ? 'change' : 'input')); })()"
    )
    await settled(page)
    return await page.ask("[...document.querySelectorAll('.list .row')].map(r => r.className)")


async def until_there(page: Page, selector: str) -> None:
    await page.ask(
        f"(async () => {{ while (!document.querySelector({json.dumps(selector)}))"
        " await new Promise(done => setTimeout(done, 20)); })()"
    )
