"""How heavy and how quick the pages about a run are, in headless Chromium.

    python benchmarks/report.py --json

A made-up run of so many episodes is reported (`muarl report`) and served (`muarl view`). Figures, the
worst of the rounds:

- `build_s`: `write_report`, from the journal to the file; `page_mb`: the file;
- `dialogues`: how many of the episodes have their dialogue in the page;
- `first_paint_s`: first contentful paint, a browser that was just started, from navigation on;
- `ready_s`: the list is drawn and the first dialogue is open;
- `filter_ms`: from a change of a filter, or of the words looked for, to the frame that shows what fits:
  the slowest change of those in `filters_ms`, each the median of the rounds; `first_search_ms`: the first
  search for words, which unpacks every dialogue;
- `view`: the same of the served page, with `index_s`, until all episodes can be found.

The browser is headless and has no GPU; what it paints with, the processor does.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
import anyio

TESTS = Path(__file__).resolve().parent.parent / "tests" / "report"
sys.path.insert(0, str(TESTS))

from headless_chromium import Page, chromium_page
from synthetic_run import make_run

from muarl.report import write_report
from muarl.report.index import EpisodeIndex
from muarl.report.serving import open_view

TASKS, GROUP, EVALUATIONS = 25, 8, 4

CHANGES = [
    ("phase", "train"),
    ("verdict", "failed"),
    ("persona", "withholds"),
    ("above", "below"),
    ("order", "longest"),
    ("text", "lamp status"),
    ("text", "cancel-01"),
    ("text", "nowhere to be found"),
    ("text", ""),
    ("phase", ""),
]

READY = "performance.getEntriesByName('ready')[0]?.startTime ?? null"
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
CHANGE = """
(async (name, value) => {
  const field = document.querySelector(`.filters [name=${name}]`);
  const list = document.querySelector('.list');
  const started = performance.now();
  const drawn = new Promise((done) => new MutationObserver((_, watching) => {
    watching.disconnect(); requestAnimationFrame(() => setTimeout(done)); }).observe(list, {childList: true}));
  field.value = value;
  field.dispatchEvent(new Event(field.tagName === 'SELECT' ? 'change' : 'input'));
  await drawn;
  return performance.now() - started;
})(%s, %s)
"""


async def until(page: Page, expression: str) -> float:
    """The value of an expression once it is not null."""
    waiting = (
        f"(async () => {{ let found; while ((found = {expression}) === null)"
        " await new Promise((done) => setTimeout(done, 20)); return found; })()"
    )
    with anyio.fail_after(120):
        return float(await page.ask(waiting))


async def look(page: Page) -> dict[str, Any]:
    ready = await until(page, READY)
    paint = await until(page, PAINT)
    change = CHANGE % ('"text"', '"pending"')
    first_search = await page.ask(change)
    await page.ask(CHANGE % ('"text"', '""'))
    took = [
        (f"{name}: {value}", await page.ask(CHANGE % (json.dumps(name), json.dumps(value))))
        for name, value in CHANGES
    ]
    return {
        "first_paint_s": paint / 1000,
        "ready_s": ready / 1000,
        "first_search_ms": first_search,
        "filters_ms": dict(took),
        "complaints": page.complaints,
    }


async def report_in_browser(page_file: Path) -> dict[str, Any]:
    async with chromium_page(page_file.as_uri()) as page:
        return await look(page)


async def view_in_browser(run: Path) -> dict[str, Any]:
    async with open_view(run) as address:
        async with aiohttp.ClientSession() as session:
            progress = 0.0
            while progress < 1:  # figures are of a server that has read its journal
                async with session.get(address + "run") as answer:
                    progress = (await answer.json())["progress"]
        async with chromium_page(address) as page:
            return await look(page)


def index_seconds(run: Path, folder: Path) -> float:
    index = EpisodeIndex(run / "episodes.journal", folder / "index.sqlite")
    started = time.monotonic()
    while index.refresh():
        pass
    seconds = time.monotonic() - started
    index.close()
    return seconds


def over(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """Figures of several rounds in one: the worst, and of each change the median."""
    filters = {
        name: round(median(one["filters_ms"][name] for one in rounds), 1)
        for name in rounds[0]["filters_ms"]
    }
    worst = {
        name: round(max(one[name] for one in rounds), 3)
        for name in ("first_paint_s", "ready_s", "first_search_ms")
    }
    complaints = [complaint for one in rounds for complaint in one["complaints"]]
    return worst | {
        "filter_ms": max(filters.values()),
        "filters_ms": filters,
        "complaints": complaints,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    iterations = max(1, round(args.episodes / (TASKS * GROUP)) - EVALUATIONS)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        run = make_run(folder / "run", iterations=iterations, tasks=TASKS, group=GROUP)
        started = time.monotonic()
        page = write_report(run)
        build_s = time.monotonic() - started
        data = json.loads(
            page.read_text(encoding="utf-8").partition('id="data">')[2].partition("</script>")[0]
        )
        shown = data["runs"][0]["shown"]
        figures: dict[str, Any] = {
            "episodes": data["runs"][0]["table"]["count"],
            "dialogues": sum(row["shown"] for row in shown),
            "build_s": round(build_s, 2),
            "page_mb": round(page.stat().st_size / 1e6, 2),
            **over([anyio.run(report_in_browser, page) for _ in range(args.rounds)]),
            "view": {
                "index_s": round(index_seconds(run, folder), 2),
                **over([anyio.run(view_in_browser, run) for _ in range(args.rounds)]),
            },
        }
    if args.json:
        print(json.dumps(figures, indent=1))
        return
    for name, value in figures.items():
        print(f"{name:16} {value}")


if __name__ == "__main__":
    main()
