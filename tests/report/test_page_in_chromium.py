"""The report in a real browser: it draws, it can be worked with, and nothing in a run can run."""

from __future__ import annotations

import json
import math
from typing import Any

import anyio
import pytest
from browsing import choose, count, settled, text, until_there, visit, visit_view
from headless_chromium import Page, chromium_page, require_chromium
from synthetic_run import make_run

from muarl.report import write_report
from muarl.report.serving import open_view

pytestmark = pytest.mark.browser

HOSTILE = (
    "</script><script>window.pwned=1;document.title='pwned'</script>"
    "<img src=x onerror=window.pwned=2><svg onload=window.pwned=3><!--<script>"
    "{{script}} javascript:window.pwned=4 ${window.pwned=5} \u2028"
)
SHIFT = 8


async def work_with(page: Page) -> dict[str, Any]:
    seen: dict[str, Any] = {"title": await page.ask("document.title")}
    seen["headings"] = await page.ask(
        "[...document.querySelectorAll('h2')].map(h => h.textContent)"
    )
    seen["curves"] = await page.ask(
        "[...document.querySelectorAll('figure.card')].map(card => [card.querySelector('.name').textContent,"
        " card.querySelector('.chart path.line, .chart path.area')?.getAttribute('d').length ?? 0])"
    )
    seen["bands"] = await count(page, "path.band")
    seen["score"] = await text(page, ".scores")
    seen["tiles"] = await text(page, ".tiles")
    seen["whiskers"] = await count(page, ".whisker")
    seen["users"] = await text(page, "#users")
    seen["evaluations"] = await text(page, "#evaluations")
    seen["changed"] = await page.ask(
        "[...document.querySelectorAll('.call .written')].map(w => w.querySelector('.changes').textContent)"
    )

    chart = "document.querySelectorAll('.charts .chart')"
    await page.ask(f"{chart}[0].focus()")
    await page.press("Home")
    await page.press("ArrowRight")
    seen["readings"] = await page.ask(f"[0, 5].map(i => {chart}[i].getAttribute('aria-valuetext'))")

    seen["rows"] = await count(page, ".list .row")
    await page.ask("document.querySelector('.list .row').focus()")
    await page.press("ArrowDown")
    await settled(page)
    seen["opened"] = await page.ask(
        "[document.querySelector('.list [aria-current] .task').textContent,"
        " document.querySelector('.dialogue h3').textContent]"
    )
    seen["linked"] = await page.ask("decodeURIComponent(location.hash)")
    seen["bubbles"] = await count(page, ".bubble")
    seen["calls"] = await count(page, ".call")
    seen["hers"] = await page.ask(
        "[...document.querySelectorAll('.bubble.user')]"
        ".filter(b => b.querySelector('.call')).map(b => b.textContent)"
    )
    seen["predicates"] = await text(page, ".predicates")
    seen["tokens"] = [await count(page, ".strip .t"), await count(page, ".strip .t.s")]
    seen["classes"] = await page.ask(
        "[...document.querySelectorAll('.strip .t.s')].map(t => t.className)"
    )
    seen["logprobs"] = await page.ask(
        "embeddedSource(page.runs[0], 0).open(readLink().open).then(e => e.samples[0].logprobs)"
    )
    await page.ask("document.querySelector('.strip').focus()")
    await page.press("ArrowRight", SHIFT)
    seen["reading"] = await text(page, ".readout")

    await page.ask(
        "for (const [name, value] of [['phase', 'train'], ['verdict', 'failed']]) {"
        " const s = document.querySelector(`.filters select[name=${name}]`); s.value = value;"
        " s.dispatchEvent(new Event('change')); }"
    )
    await settled(page)
    seen["filtered"] = await page.ask(
        "[...document.querySelectorAll('.list .row')].map(r => r.className + r.querySelector('.meta').textContent)"
    )
    search = (
        "async (words) => { const i = document.querySelector('.filters input'); i.value = words;"
        " i.dispatchEvent(new Event('input'));"
        " while (document.querySelector('[aria-busy=true]')) await new Promise(done => setTimeout(done, 10));"
        " return document.querySelectorAll('.list .row').length; }"
    )
    seen["found"] = [
        await page.ask(f"({search})({json.dumps(w)})") for w in ("GET_ORDER", "zzz", "")
    ]
    await page.ask("document.querySelector('.theme').click()")
    seen["theme"] = await page.ask("document.documentElement.dataset.theme")
    seen["all_text"] = await page.ask("document.body.innerText")
    for button in range(5):
        await page.ask(f"document.querySelectorAll('.download')[{button}].click()")
    seen["csv"] = await page.ask("toCsv(userRows(page.runs[0].users)).split('\\r\\n')")
    seen["formula"] = await page.ask("toCsv([{a: '=1+1', b: -1, c: '-x'}])")
    seen["pwned"] = await page.ask("String(window.pwned)")
    seen["injected"] = await count(page, "img, main script, svg[onload], [onerror]")
    return seen


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    require_chromium()
    folder = tmp_path_factory.mktemp("browser") / "run"
    return visit(make_run(folder, iterations=4, tasks=6, group=3, hostile=HOSTILE), work_with)


def test_nothing_in_a_run_is_executed_or_becomes_an_element(seen):
    assert seen["pwned"] == "undefined"
    assert seen["injected"] == 0
    assert seen["title"].startswith("desk</script><script>window.pwned=1")
    assert "<img src=x onerror=window.pwned=2>" in seen["all_text"]


def test_the_page_complains_about_nothing_and_asks_for_nothing(seen):
    assert seen["complaints"] == []
    assert [r for r in seen["requests"] if not r.startswith(("blob:", "data:"))] == [seen["url"]]


def test_every_part_is_there_and_every_chart_has_a_curve(seen):
    assert seen["headings"] == [
        "Held-out success",
        "Training",
        "Evaluations in full",
        "Users",
        "Episodes",
        "The run",
    ]
    names = [name for name, _ in seen["curves"]]
    assert names[:4] == ["Reward", "Groups", "Validation success", "Tool calls per dialogue"]
    assert {"Versions behind", "Sampled while learning"} <= set(names)
    assert len(names) >= 14
    assert all(length > 20 for _, length in seen["curves"])
    assert seen["bands"] == 2


def test_the_headline_compares_before_and_after(seen):
    assert "cold start" in seen["score"]
    assert "after GRPO" in seen["score"]
    assert "floor: best trivial policy10.8 %" in seen["tiles"]
    assert "of the rest is earned" in seen["tiles"]
    # two temperatures and three personas before and after, and two trivial policies
    assert seen["whiskers"] == (2 + 3) * 2 + 2


def test_users_have_figures_with_intervals_and_monitors(seen):
    assert "25 contract score" in seen["users"]
    assert "contractshare of the dialogues" in seen["users"].replace("  ", " ")
    assert "0.075 [0.026, 0.199]" in seen["users"]
    assert "no_such_figure" in seen["users"], "a figure of another version is not hidden"
    assert "Collapse, watched" in seen["users"]
    assert "flat_groupsabove 0.75" in seen["users"]


def test_figures_can_be_taken_from_the_page_and_are_no_formulas(seen):
    head, first, *_ = seen["csv"]
    assert head.startswith('"phase","temperature","dialogues"')
    assert '"contract",0.075,0.02' in first
    assert seen["formula"] == '"a","b","c"\r\n"\'=1+1",-1,"\'-x"\r\n'


def test_evaluations_say_why_dialogues_failed_and_what_they_took(seen):
    assert "Why dialogues failed" in seen["evaluations"]
    assert "What a dialogue took" in seen["evaluations"]


def test_arrow_keys_read_all_charts_at_one_iteration(seen):
    assert seen["readings"][0].startswith("iteration 1: Reward ")
    assert seen["readings"][1].startswith("iteration 1: Turns per dialogue ")


def test_the_viewer_shows_a_whole_episode(seen):
    assert seen["rows"] > 20
    assert seen["opened"][0] == seen["opened"][1][2:]
    assert seen["linked"].startswith("#episode=eval:final")
    assert seen["bubbles"] >= 5
    assert seen["calls"] >= 1
    assert len(seen["hers"]) == 1
    assert "on her own device; the agent sees none of it" in seen["hers"][0]
    assert "look" in seen["hers"][0]
    assert "gold_world" in seen["predicates"]
    assert any("device.looked" in told for told in seen["changed"]), "beside the call"


def test_tokens_are_marked_by_mask_and_by_logprob(seen):
    total, sampled = seen["tokens"]
    assert 0 < sampled < total
    bounds = {"p0": 0.9, "p1": 0.5, "p2": 0.1, "p3": 0.01, "p4": 0}
    shades = [
        next(name for name, bound in bounds.items() if math.exp(logprob) >= bound)
        for logprob in seen["logprobs"]
    ]
    assert len(set(shades)) > 1
    assert seen["classes"] == [f"t s {shade}" for shade in shades]
    assert "sampled by version 0" in seen["reading"]
    assert "log-prob -" in seen["reading"]


def test_filters_and_search_narrow_the_list(seen):
    assert seen["filtered"]
    assert all(row.startswith("row failed") and "iteration" in row for row in seen["filtered"])
    assert seen["found"] == [len(seen["filtered"]), 0, len(seen["filtered"])]


def test_the_theme_can_be_switched(seen):
    assert seen["theme"] in ("light", "dark")


@pytest.mark.parametrize("lines", [0, 3, 150])
def test_a_run_that_stopped_early_draws_what_there_is(tmp_path, lines):
    require_chromium()
    folder = make_run(tmp_path / "run", iterations=2, tasks=2, group=1)
    kept = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)[:lines]
    (folder / "metrics.jsonl").write_text("".join(kept))
    (folder / "episodes.journal").unlink()

    async def look(page: Page) -> dict[str, Any]:
        return {"text": await text(page, "main"), "charts": await count(page, ".chart path.line")}

    seen = visit(folder, look)
    assert seen["complaints"] == []
    assert "No episode to show." in seen["text"]
    assert "could not be drawn" not in seen["text"]
    assert (seen["charts"] > 0) == (lines > 0)


def test_fields_of_the_wrong_kind_spoil_no_other_part(tmp_path):
    require_chromium()
    folder = make_run(tmp_path / "run", iterations=3, tasks=2, group=1)
    odd: list[Any] = [None, "x", -1, 0, 1e308, 1e-320, [], {}, {"a": 1}, {"__proto__": 2}, True]
    keys = (
        "reward_mean",
        "reward_low",
        "tool_calls",
        "kl",
        "max_logprob_gap",
        "groups_mixed",
        "ratio_max",
    )
    with (folder / "metrics.jsonl").open("a") as file:
        for i, value in enumerate(odd):
            for line in (
                {"kind": "iteration", "iteration": 10 + i, **dict.fromkeys(keys, value)},
                {"kind": "iteration", "iteration": value},
                {"kind": "cold_start", "step": value, "loss": value},
                {"kind": "eval", "phase": value, "temperature": value, "success": value,
                 "by_persona": value, "confirmed": value, "turns": value, "n": value},
                {"kind": "floor", "name": value, "success": value},
            ):  # fmt: skip
                file.write(json.dumps(line) + "\n")

    async def look(page: Page) -> dict[str, Any]:
        return {"text": await text(page, "main"), "rows": await count(page, ".row")}

    seen = visit(folder, look)
    assert seen["complaints"] == []
    assert "could not be drawn" not in seen["text"]
    assert seen["rows"] > 0


def test_one_iteration_is_drawn_as_points_and_bars(tmp_path):
    require_chromium()
    folder = make_run(tmp_path / "run", iterations=1, tasks=3, group=2)

    async def look(page: Page) -> dict[str, Any]:
        return {
            "charts": await count(page, "#training .charts .chart"),
            "shown": await page.ask(
                "[...document.querySelectorAll('#training .charts .chart')].filter(c => !(c.querySelector"
                "('circle.lone, path.area') || c.getAttribute('aria-valuemax') > 10)).length"
            ),
            "whiskers": await count(page, "path.lone"),
            "bar": await page.ask("document.querySelector('path.area').getBBox().width"),
            "place": await page.ask("+document.querySelector('circle.lone').getAttribute('cx')"),
        }

    seen = visit(folder, look)
    assert seen["complaints"] == []
    assert seen["charts"] > 10
    assert seen["shown"] == 0, "a chart with nothing in it"
    assert seen["whiskers"] == 2, "the intervals of reward and validation"
    assert seen["bar"] > 10
    assert 100 < seen["place"] < 300


def test_a_point_between_gaps_is_drawn(tmp_path):
    require_chromium()
    folder = make_run(tmp_path / "run", iterations=5, tasks=2, group=1)
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        if line["kind"] == "iteration" and line["iteration"] in (1, 3):
            line["kl"] = None
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    async def look(page: Page) -> dict[str, Any]:
        return {"lone": await count(page, "circle.lone")}

    assert visit(folder, look)["lone"] == 3


@pytest.mark.parametrize(
    ("kind", "phase", "heading"),
    [("rollout", "rollout", "Success"), ("eval", "model", "Held-out success")],
)
def test_a_folder_in_which_nothing_was_trained_says_what_was_played(tmp_path, kind, phase, heading):
    require_chromium()
    folder = make_run(tmp_path / "run", iterations=1, tasks=4, group=2)
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    played = next(line for line in lines if line["kind"] == "eval")
    played |= {"kind": kind, "phase": phase, "caveats": {"nobody judged <b>it</b>": 3}}
    (folder / "metrics.jsonl").write_text(json.dumps(played) + "\n")

    async def look(page: Page) -> dict[str, Any]:
        return {
            "heading": await text(page, "#summary h2"),
            "score": await text(page, ".scores"),
            "tiles": await text(page, ".tiles"),
            "training": await text(page, "#training"),
            "caveat": await text(page, ".caveat"),
        }

    seen = visit(folder, look)
    assert seen["complaints"] == []
    assert seen["heading"] == heading
    assert seen["caveat"].endswith("scores leave something out: nobody judged <b>it</b>")
    assert "%" in seen["score"]
    assert "→" not in seen["score"]
    assert "ended most often" in seen["tiles"]
    assert "completed" in seen["tiles"]
    assert "Nothing was trained here" in seen["training"]
    assert "null" not in seen["training"]


def test_the_served_page_runs_nothing_of_a_run_either(tmp_path):
    require_chromium()
    folder = make_run(tmp_path / "run", iterations=2, tasks=4, group=3, hostile=HOSTILE)

    async def look(page: Page) -> dict[str, Any]:
        seen: dict[str, Any] = {"rows": await count(page, ".list .row")}
        seen["failed"] = await choose(page, "verdict", "failed")
        seen["trained"] = await choose(page, "phase", "train")
        await page.ask("document.querySelector('.list .row').click()")
        await settled(page)
        await page.ask("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        for colour in ("mask", "advantage", "version"):
            await page.ask(
                f"(() => {{ const s = document.querySelector('.tokenkey select'); s.value = '{colour}';"
                " s.dispatchEvent(new Event('change')); })()"
            )
            seen[colour] = await page.ask(
                "[...new Set([...document.querySelectorAll('.strip .t.s')].map(t => t.className))].sort()"
            )
        seen["gap"] = await page.ask(
            "document.querySelector('.tokenkey option[value=gap]').textContent"
        )
        await page.ask("document.querySelector('.chip:enabled').click()")
        await until_there(page, ".columns")
        seen["columns"] = await count(page, ".column")
        seen["told"] = await text(page, ".column:nth-child(2) .columnhead")
        seen["link"] = await page.ask("location.hash")
        seen["text"] = await page.ask("document.body.innerText")
        seen["pwned"] = await page.ask("String(window.pwned)")
        seen["injected"] = await count(page, "img, main script, svg[onload], [onerror]")
        seen["markup"] = await page.ask(
            "(() => { try { document.body.innerHTML = '<b>x</b>'; return 'made'; }"
            " catch (error) { return error.name; } })()"
        )
        return seen

    seen = visit_view(folder, look)
    assert seen["pwned"] == "undefined"
    assert seen["injected"] == 0
    assert "<img src=x onerror=window.pwned=2>" in seen["text"]
    # The browser itself refuses to make markup of text.
    assert seen["markup"] == "TypeError"
    assert [c for c in seen["complaints"] if "TrustedHTML" not in c] == []
    assert all(r.startswith((seen["url"], "data:")) for r in seen["requests"])
    assert seen["rows"] > len(seen["failed"]) > 0
    assert all("failed" in row for row in seen["failed"] + seen["trained"])
    assert seen["mask"] == ["t s masked"]
    assert {"t s up1", "t s down1"} <= set(seen["advantage"])
    assert all(shade.startswith("t s v") for shade in seen["version"])
    assert seen["gap"] == "log-prob gap (not recorded)"
    assert seen["columns"] == 2
    assert "differs from" in seen["told"] or "the same" in seen["told"]
    assert seen["link"].count("beside=") == 1


def test_a_link_opens_the_same_dialogues_side_by_side_again(tmp_path):
    require_chromium()
    folder = make_run(tmp_path / "run", iterations=2, tasks=2, group=2)
    keys = ["train/1/cancel-001/0", "train/0/cancel-001/0"]
    link = f"#episode={keys[0]}&beside={keys[1]}"

    async def go(address: str) -> list[str]:
        async with chromium_page(address + link) as page:
            await until_there(page, ".column:nth-child(2)")
            names = (
                "[...document.querySelectorAll('.column')].map(c => c.getAttribute('aria-label'))"
            )
            return await page.ask(names)

    async def both() -> list[list[str]]:
        async with open_view(folder) as address:
            return [await go(address), await go(write_report(folder).as_uri())]

    assert anyio.run(both) == [[f"Dialogue {key}" for key in keys]] * 2


def test_a_link_looks_for_the_same_episodes_again(tmp_path):
    require_chromium()
    folder = make_run(tmp_path / "run", iterations=2, tasks=3, group=2)
    link = "#task=CANCEL-001&phase=train&iteration=1&order=longest&verdict=nonsense"

    async def go(address: str) -> dict[str, Any]:
        async with chromium_page(address + link) as page:
            await until_there(page, "[data-ready]")
            seen: dict[str, Any] = {
                "rows": await page.ask(
                    "[...document.querySelectorAll('.list .row')].map(r => r.textContent)"
                ),
                "form": await page.ask(
                    "['task', 'phase', 'iteration', 'order', 'verdict'].map(n =>"
                    " document.querySelector(`.filters [name=${n}]`).value)"
                ),
            }
            await choose(page, "task", "cancel-002")
            seen["link"] = await page.ask("location.hash")
            await page.ask("(location.hash = '#phase=train&iteration=0')")
            await settled(page)
            seen["next"] = await count(page, ".list .row")
            return seen

    async def both() -> list[dict[str, Any]]:
        async with open_view(folder) as address:
            return [await go(address), await go(write_report(folder).as_uri())]

    for seen in anyio.run(both):
        assert len(seen["rows"]) == 2
        assert all("cancel-001" in row and "iteration 1 #" in row for row in seen["rows"])
        assert seen["form"] == ["CANCEL-001", "train", "1", "longest", ""]
        assert "&phase=train&task=cancel-002&" in seen["link"]
        assert "verdict" not in seen["link"]
        assert seen["next"] == 6


def test_several_runs_are_drawn_over_each_other_and_read_one_by_one(tmp_path):
    require_chromium()
    folders = [
        make_run(tmp_path / name, iterations=3, tasks=3, group=2, seed=n, hostile=HOSTILE)
        for n, name in enumerate(("first", "second"))
    ]

    async def go() -> dict[str, Any]:
        page_file = write_report(folders, tmp_path / "runs.html")
        async with chromium_page(page_file.as_uri()) as page:
            await until_there(page, "[data-ready]")
            seen: dict[str, Any] = {
                "series": await page.ask(
                    "[...document.querySelectorAll('#runs figure.card')].map(c =>"
                    " [c.querySelector('.name').textContent, c.querySelectorAll('path.line:not(.swatch *)').length])"
                ),
                "rows": await page.ask(
                    "[...document.querySelectorAll('#runs .evals tbody th')].map(t => t.textContent)"
                ),
            }
            await page.ask("document.querySelectorAll('.tab')[1].click()")
            await until_there(page, "[data-run=second][data-ready]")
            await page.ask("document.querySelector('.list .row').click()")
            await settled(page)
            seen["link"] = await page.ask("location.hash")
            seen["sections"] = await count(page, "#summary, #training, #episodes")
            seen["pwned"] = await page.ask("String(window.pwned)")
            seen["complaints"] = page.complaints
            return seen

    seen = anyio.run(go)
    assert seen["complaints"] == []
    assert seen["pwned"] == "undefined"
    assert seen["rows"] == ["first", "second"]
    names = [name for name, _ in seen["series"]]
    assert names[:2] == ["Reward", "Validation success"]
    assert all(lines == 2 for _, lines in seen["series"])
    assert seen["link"].startswith("#run=second&episode=")
    assert seen["sections"] == 3


def test_a_run_has_one_colour_in_all_charts_though_another_has_nothing_to_draw(tmp_path):
    require_chromium()
    folders = [
        make_run(tmp_path / name, iterations=n, tasks=2, group=2)
        for name, n in (("played", 0), ("trained", 2))
    ]

    async def go() -> list[list[str]]:
        page_file = write_report(folders, tmp_path / "runs.html")
        async with chromium_page(page_file.as_uri()) as page:
            await until_there(page, "[data-ready]")
            return await page.ask(
                "['#runs .evals .swatch path', '#runs figure .swatch path', '#runs figure .chart path.line']"
                ".map(of => [...new Set([...document.querySelectorAll(of)].map(path => path.classList[1]))])"
            )

    assert anyio.run(go) == [["c0", "c1"], ["c1"], ["c1"]]


def test_keys_alone_never_lose_their_place(tmp_path):
    """What is drawn anew because its button was pressed leaves the focus where a reader goes on."""
    require_chromium()
    folder = make_run(tmp_path / "run", iterations=1, tasks=30, group=2)
    held = "[document.activeElement.className.split(' ')[0], document.activeElement.name || '']"

    async def look(page: Page) -> dict[str, Any]:
        async def pressed(selector: str) -> list[str]:
            await page.ask(f"document.querySelector({json.dumps(selector)}).focus()")
            await page.press("Enter", text="\r")
            await settled(page)
            await page.ask("new Promise(requestAnimationFrame)")
            return await page.ask(held)

        seen = {"more": await pressed(".morerows button")}
        seen["beside"] = await pressed(".chip:enabled")
        seen["away"] = await pressed(".chip[aria-pressed=true]")
        await pressed(".chip:enabled")
        seen["back"] = await pressed(".comparehead .small")
        await choose(page, "text", "no such words")
        seen["reset"] = await pressed(".none button")
        return seen

    seen = visit(folder, look)
    assert seen["complaints"] == []
    assert seen["more"] == seen["back"] == ["row", ""]
    assert seen["beside"] == seen["away"] == ["chip", ""]
    assert seen["reset"] == ["", "text"]


def test_tables_of_several_runs_keep_their_columns_on_a_small_screen_and_fit_on_paper(tmp_path):
    require_chromium()
    folders = [make_run(tmp_path / name, iterations=1, tasks=2, group=1) for name in "ab"]
    (folders[1] / "spec.resolved.yaml").write_text(
        "version: 1\ndomain: x\nseed: 4\ngrpo: {lr: 1.0e-3, clip_low: 0.2, clip_high: 0.28, kl_in: loss}\n"
    )

    async def go() -> dict[str, Any]:
        page_file = write_report(folders, tmp_path / "runs.html")
        async with chromium_page(page_file.as_uri()) as page:
            await until_there(page, "[data-ready]")
            await page.resize(360, 800)
            lefts = (
                "[...document.querySelectorAll('#runs table.evals tr')].map("
                "row => [...row.children].map(cell => Math.round(cell.getBoundingClientRect().left)))"
            )
            columns = await page.ask(lefts)
            await page.resize(760, 1000)
            await page.send("Emulation.setEmulatedMedia", media="print")
            rights = (
                "[...document.querySelectorAll('#runs table')]"
                ".map(e => Math.ceil(e.getBoundingClientRect().right))"
            )
            return {"columns": columns, "rights": await page.ask(rights)}

    seen = anyio.run(go)
    assert seen["columns"][0] == seen["columns"][1] == seen["columns"][2]
    assert max(seen["rights"]) <= 760


def test_a_small_screen_shows_everything_without_moving_sideways(tmp_path):
    require_chromium()
    folder = make_run(tmp_path / "run", iterations=2, tasks=2, group=2)

    async def look(page: Page) -> dict[str, Any]:
        await page.resize(390, 800)
        wide = (
            "[document.documentElement.scrollWidth, ...[...document.querySelectorAll('.reader, .dialogue,"
            " .bubble, .card, .filters, .list')].map(e => Math.ceil(e.getBoundingClientRect().right))]"
        )
        return {"widest": max(await page.ask(wide))}

    assert visit(folder, look)["widest"] <= 390


def test_on_paper_no_table_is_cut_and_nothing_is_folded_that_belongs_there(tmp_path):
    require_chromium()
    folder = make_run(tmp_path / "run", iterations=2, tasks=2, group=2)

    async def look(page: Page) -> dict[str, Any]:
        await page.resize(760, 1000)
        await page.send("Emulation.setEmulatedMedia", media="print")
        await page.ask("dispatchEvent(new Event('beforeprint'))")
        wide = (
            "[...document.querySelectorAll('#evaluations table, #users table, #summary table')]"
            ".map(e => Math.ceil(e.getBoundingClientRect().right))"
        )
        folded = "[...document.querySelectorAll('#users details')].map(d => d.open)"
        hidden = (
            "['.theme', '.browse', '.downloads'].map(s => document.querySelector(s).offsetHeight)"
        )
        return {
            "widest": max(await page.ask(wide)),
            "open": await page.ask(folded),
            "hidden": await page.ask(hidden),
        }

    seen = visit(folder, look)
    assert seen["widest"] <= 760
    assert seen["open"] == [True]
    assert seen["hidden"] == [0, 0, 0]
