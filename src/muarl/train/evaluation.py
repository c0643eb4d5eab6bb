"""The held-out tasks: by policies without skill, and by the policy before and after it learned."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial
from typing import Any

import anyio.to_thread
import msgspec

from muarl.evaluate.contamination import Contamination
from muarl.evaluate.floor import above_floor, highest
from muarl.evaluate.statistics import Interval
from muarl.evaluate.summary import EvalSummary, summarise
from muarl.scheduler import Group
from muarl.train.at_work import RunAtWork
from muarl.train.overlapping import contamination_in_run
from muarl.train.playing import every_trivial
from muarl.train.run_folder import RunFolder
from muarl.train.users_measured import log_users
from muarl.train.weights import Engine


async def find_floor(at: RunAtWork) -> None:
    """Let each policy without skill play, unless it did already."""
    known = {line.get("name") for line in at.folder.lines() if line["kind"] == "floor"}
    todo = [name for name in every_trivial(at.domain) if name not in known]
    at.progress.phase("floor", len(todo))
    for number, name in enumerate(todo, start=1):
        episodes = await at.held_out().by_trivial(name)
        summary = summarise(episodes, seed=at.run.seed, row_of=at.domain.row)
        log_floor(at.folder, name, summary)
        at.progress.advance(number, **{name: summary.success.value})


def log_floor(folder: RunFolder, name: str, summary: EvalSummary) -> None:
    """Write down what a policy without skill reached."""
    rows = {"by_row": msgspec.to_builtins(summary.by_row)} if summary.by_row else {}
    folder.log("floor", name=name, success=msgspec.to_builtins(summary.success), **rows)


def beside_score(folder: RunFolder, summary: EvalSummary, tag: Contamination) -> dict[str, Any]:
    """The fields of an evaluation's line that stand beside its scores.

    Returns:
        `floor`, the best of the policies without skill that are in the metrics so far, `above_floor`, by
        `muarl.evaluate.floor`, both None where no such policy played, and `contamination`; of several
        domains `floor_by_row`, row to its own `floor` and `above_floor`.
    """
    floors = [line for line in folder.lines() if line["kind"] == "floor"]
    fields = {**_beside(summary.success, floors), "contamination": tag}
    if summary.by_row:
        fields["floor_by_row"] = {
            name: _beside(row.success, (line.get("by_row", {}).get(name, {}) for line in floors))
            for name, row in summary.by_row.items()
        }
    found: dict[str, Any] = msgspec.to_builtins(fields)
    return found


def _beside(success: Interval, floors: Iterable[dict[str, Any]]) -> dict[str, Any]:
    scores = (line["success"] for line in floors if "success" in line)
    floor = highest(msgspec.convert(score, Interval) for score in scores)
    return {"floor": floor, "above_floor": floor and above_floor(success, floor)}


async def evaluate(at: RunAtWork, engine: Engine, phase: str) -> None:
    """Let the policy play at each temperature, unless it did already in this phase."""
    for temperature in at.run.eval.temperatures:
        known = [
            line
            for line in at.folder.lines()
            if line["kind"] == "eval"
            and (line["phase"], line["temperature"]) == (phase, temperature)
        ]
        if known:
            continue
        at.progress.phase(f"evaluate {phase}, T={temperature:g}", at.run.eval.dialogues)
        counted = 0

        def count(group: Group) -> None:
            nonlocal counted
            counted += len(group.episodes)
            at.progress.advance(counted)

        started, before = time.monotonic(), at.observation.counters.snapshot()
        episodes = await at.held_out(count).by_policy(
            engine.policy, phase=phase, temperature=temperature
        )
        wall_s = time.monotonic() - started
        about = {"phase": phase, "temperature": temperature}
        # Before the evaluation's own line: a run that is killed between them measures again.
        measured = partial(log_users, at.folder, at.domain, episodes, at.run.seed, **about)
        await anyio.to_thread.run_sync(measured)
        summary = summarise(episodes, seed=at.run.seed, row_of=at.domain.row)
        at.folder.log(
            "eval",
            **about,
            wall_s=wall_s,
            observed=at.since(before),
            **msgspec.to_builtins(summary),
            **beside_score(at.folder, summary, contamination_in_run(at.run, at.domain, at.folder)),
        )
        at.progress.note(
            f"held-out success, {phase}, T={temperature:g}: {summary.success} "
            f"on {summary.n} dialogues"
        )
