"""Runs as nobody should leave them, in both pages: what can be told is told, and nothing breaks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from browsing import count, settled, text, visit, visit_view
from headless_chromium import Page, require_chromium
from synthetic_run import make_run

from muarl.messages import Message, ToolCall, ToolResult
from muarl.record import (
    Episode,
    EpisodeKey,
    JournalWriter,
    Outcome,
    PredicateResult,
    Sample,
    Span,
    Turn,
    UserReply,
)
from muarl.world import Change

pytestmark = pytest.mark.browser

UNICODE = (
    "\u202eright to left\u202c \u200b\u200d\ufeff \u05e9\u05dc\u05d5\u05dd "
    "\U0001f469\u200d\U0001f469\u200d\U0001f467 \x00\x07\x1b[31m \u2028 a\u0300\u0301 \ufdfd"
)


def turn(message: Message, sample: int = 0, start: int = 0, end: int = 0, **more: Any) -> Turn:
    return Turn(message, sample, start, end, "stop", 0, **more)


def episode(sample: int, task: str = "odd", phase: str = "train", **more: Any) -> Episode:
    fields: dict[str, Any] = {
        "domain": "d",
        "persona": "p",
        "split": "s",
        "task_hash": "t",
        "system": "s",
        "opening": UserReply("hi"),
        "outcome": Outcome.COMPLETED,
        "reward": 0.5,
    }
    return Episode(key=EpisodeKey(3, phase, 0, task, sample), **{**fields, **more})


SAID = Message("assistant", "x")
TWO = Message("assistant", "", (ToolCall("1", "a"), ToolCall("2", "b")))
BOTH = [ToolResult("1", "a", "o"), ToolResult("2", "b", "o")]
ODD = [
    episode(0),
    episode(1, turns=[turn(SAID, 7, 0, 99)]),
    episode(2, turns=[turn(SAID, 0, 5, 2)], samples=[Sample([1, 2], [Span(0, 1, 0)], [])]),
    episode(3, samples=[Sample([1, 2], [Span(0, 9, 0)], [float("nan")] * 9)]),
    episode(4, samples=[Sample([-1, 2**40], [Span(0, 2, -3)], [float("-inf"), float("inf")])]),
    episode(5, task="a/b/c#d&e=f?g%2F"),
    episode(6, task=""),
    episode(7, task="__proto__", persona="constructor", user="toString", phase="__proto__"),
    episode(8, reward=None, outcome=Outcome.USER_FAULT, error="e" * 50_000),
    episode(9, rewards=[PredicateResult("w", 1 / 3, "x", evidence="q" * 5000, caveat="c")]),
    episode(10, turns=[turn(TWO, results=BOTH[:1])]),
    episode(
        11,
        turns=[turn(TWO, results=BOTH, changes=[Change("x", 1, 2, "changed")], per_call=[-5, 99])],
    ),
]


def with_episodes(folder: Path, episodes: list[Episode], **run: Any) -> Path:
    folder = make_run(folder, iterations=0, tasks=1, group=1, **run)
    (folder / "episodes.journal").unlink()
    with JournalWriter(folder / "episodes.journal") as journal:
        for one in episodes:
            journal.append(one)
    return folder


async def read_all(page: Page) -> dict[str, Any]:
    """Open every episode of the list; what stood in its place."""
    shown = []
    for number in range(await count(page, ".list .row")):
        await page.ask(f"document.querySelectorAll('.list .row')[{number}].click()")
        await settled(page)
        shown.append(await text(page, ".reader"))
    return {"shown": shown, "text": await page.ask("document.body.innerText")}


@pytest.mark.parametrize("open_page", [visit, visit_view])
def test_odd_episodes_are_all_read(tmp_path, open_page):
    require_chromium()
    seen = open_page(with_episodes(tmp_path / "run", ODD), read_all)
    assert seen["complaints"] == []
    assert len(seen["shown"]) == len(ODD)
    for one in ODD:
        assert any(str(one.key) in shown for shown in seen["shown"]), one.key
    for word in ("NaN", "undefined", "could not be drawn", "[object"):
        assert word not in seen["text"]


@pytest.mark.parametrize("open_page", [visit, visit_view])
def test_text_of_any_script_stays_in_its_place(tmp_path, open_page):
    require_chromium()
    folder = make_run(tmp_path / UNICODE.replace("\x00", ""), tasks=1, group=1, hostile=UNICODE)
    seen = open_page(folder, read_all)
    assert seen["complaints"] == []
    assert len(seen["shown"]) > 8
    assert "\U0001f469\u200d\U0001f469" in seen["text"]


@pytest.mark.parametrize("open_page", [visit, visit_view])
def test_a_dialogue_of_500_turns_is_read(tmp_path, open_page):
    require_chromium()
    ids: list[int] = []
    spans, turns = [], []
    for number in range(500):
        start = len(ids)
        spans.append(Span(start, start + 20, number % 7))
        ids += [5] * 20 + [6] * 30
        calls = tuple(ToolCall(f"{number}.{n}", "get", {"id": number}) for n in range(number % 3))
        one = turn(Message("assistant", f"words {number}", calls), 0, start, start + 20)
        for call in calls:
            change = Change(f"orders.{number}", number, number + 1, "changed")
            one.answered(ToolResult(call.id, call.name, "x" * 500), [change])
        turns.append(one)
    long = episode(0, turns=turns, samples=[Sample(ids, spans, [-0.1] * 10_000)])

    async def look(page: Page) -> dict[str, Any]:
        return {
            "turns": await count(page, ".bubble.agent"),
            "changes": await count(page, ".call .changes li"),
            "tokens": await count(page, ".strip .t"),
        }

    seen = open_page(with_episodes(tmp_path / "run", [long]), look)
    assert seen["complaints"] == []
    assert (seen["turns"], seen["changes"], seen["tokens"]) == (500, 499, 25_000)


def test_the_report_of_a_grid_begins_with_its_policies_and_users(tmp_path):
    require_chromium()
    folder = make_run(tmp_path / "run", iterations=1, tasks=1, group=1)
    share = {"value": 0.5, "low": 0.25, "high": 0.75, "n": 8, "method": "wilson"}
    summary = {"success": share, "failures": {"stopped_early": 3}, "turns": share}
    cells = [
        {"policy": policy, "user": user, "success": share, "summary": summary, "pass_hat": {},
         "floor": share, "above_floor": share, "contamination": {"says": "none found"}}
        for policy in ("mine", "theirs")
        for user in ("hers", "another")
    ]  # fmt: skip
    told = {"of": "mine", "minus": "theirs", "beside": "hers", "success": share, "adjusted": 0.02}
    grid = {"cells": cells, "policies": [{**told, "found": "higher", "why": "p = 0.02"}]}
    (folder / "grid.json").write_text(json.dumps(grid))
    (folder / "metrics.jsonl").write_text(
        json.dumps({"kind": "observed", "policy": "mine", "user": "hers", "message_p50_ms": 7.0})
    )

    async def look(page: Page) -> dict[str, Any]:
        return {
            "summary": await text(page, "#summary"),
            "training": await text(page, "#training"),
            "evaluations": await text(page, "#evaluations"),
        }

    seen = visit(folder, look)
    assert seen["complaints"] == []
    assert "mine50.0 % 25.0 – 75.0 %" in seen["summary"]
    assert "Nothing was trained here" in seen["training"]
    for words in ("none found", "mine with hers", "stopped early", "higher", "p = 0.02", "Holm"):
        assert words in seen["evaluations"], words


def test_a_grid_and_metrics_of_the_wrong_kind_spoil_no_other_part(tmp_path):
    require_chromium()
    folder = make_run(tmp_path / "run", iterations=1, tasks=1, group=1)
    (folder / "grid.json").write_text(
        '{"cells": [null, 3, {"policy": 1}, {"policy": "p", "user": "u", "summary": {"failures": 3}}],'
        ' "policies": {"a": 1}, "users": "x", "kept": [1]}'
    )
    odd: list[Any] = [None, "x", 1e308, [], {"a": 1}, {"asks": {"value": "x"}}, {"asks": None}]
    with (folder / "metrics.jsonl").open("a") as file:
        for value in odd:
            for kind in ("users", "perturbed", "observed", "eval"):
                names = (
                    "figures",
                    "dialogues",
                    "acted",
                    "success",
                    "failures",
                    "spent",
                    "observed",
                )
                more = ("contamination", "floor", "above_floor", "difference", "name")
                line = {"kind": kind, "phase": str(value), "temperature": 1}
                file.write(json.dumps({**line, **dict.fromkeys((*names, *more), value)}) + "\n")
            for users in (value, {"figures": value, "alarms": value}):
                line = {"kind": "iteration", "iteration": 50, "users": users}
                file.write(json.dumps(line) + "\n")

    async def look(page: Page) -> dict[str, Any]:
        return {"text": await text(page, "main")}

    seen = visit(folder, look)
    assert seen["complaints"] == []
    assert "could not be drawn" not in seen["text"]
    assert "NaN" not in seen["text"]
