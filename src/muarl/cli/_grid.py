"""`muarl eval GRID.yaml`: play, compare, print."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio

from muarl.cli._answer import answer
from muarl.cli._arguments import name_of_run
from muarl.cli._running import prepare_torch, run_resumably
from muarl.cli._telling import remark
from muarl.evaluate.grid import Cell, Difference, GridFound
from muarl.evaluate.statistics import Interval
from muarl.spec import GridSpec, dump_spec, load_grid, load_run

USAGE = 2
"""Exit code of wrong usage."""


def run_grid(args: argparse.Namespace) -> int:
    """Play a grid, and print what it found."""
    if wrong := _not_of_a_grid(args):
        remark(f"muarl eval: error: {wrong}")
        return USAGE
    grid = load_grid(args.spec[0])
    if args.at_least is not None and grid.spec.gain is None:
        remark(f"muarl eval: error: --at-least is the share of a gain; {grid.path} has no `gain`")
        return USAGE
    said = load_run(grid.resolve(grid.spec.run))
    if args.dry_run:
        moved = grid.spec.moved(grid.path.parent, Path())
        answer(dump_spec(moved, defaults=True).rstrip())
        return 0
    prepare_torch(said.spec.threads)
    from muarl.cli._differs import tell_differences
    from muarl.cli._watching import require_watching, watched
    from muarl.train.grid import (
        as_json,
        files_of_grid,
        plan_of_grid,
        play_grid,
        ready_grid,
        run_of_grid,
        tasks_of_grid,
    )
    from muarl.train.run_domain import content_of_run
    from muarl.train.run_folder import RunFolder

    run = run_of_grid(grid, said)
    require_watching(args, run)
    domain = anyio.run(ready_grid, grid, run)
    tell_differences(domain)
    out = args.out or Path("runs") / f"{name_of_run(args)}-eval"
    with (
        RunFolder.opened(
            out,
            run.spec.moved(run.path.parent, out),
            resume=args.resume,
            overwrite=args.overwrite,
            plan=plan_of_grid(grid),
            reads=files_of_grid(grid, run),
            content=anyio.run(content_of_run, domain, run, grid.spec),
            accept_changes=args.accept_changes,
        ) as folder,
        watched(folder, run.spec, otel=args.otel, beside=[grid.spec]) as (observation, progress),
    ):
        result = run_resumably(
            lambda stop: play_grid(
                domain,
                grid,
                run,
                folder=folder,
                progress=progress,
                stop=stop,
                observer=observation,
                counters=observation.counters,
            ),
            out,
            observation,
        )
    tasks = tasks_of_grid(domain, run.spec)
    if args.json:
        answer(json.dumps(as_json(grid.spec, tasks, result, observed=True)))
    else:
        for line in grid_lines(grid.spec, len(tasks), run.spec.eval.split, result):
            answer(line)
    least = min((one.kept.value or 0.0 for one in result.kept.values()), default=0.0)
    return int(args.at_least is not None and least < args.at_least)


def _not_of_a_grid(args: argparse.Namespace) -> str:
    """What of the arguments does not go with a grid."""
    if args.model is not None:
        return "a grid names its policies; leave --model out"
    if args.settings or len(args.spec) > 1:
        return "overlays and --set are for run files; change the grid's file, or its run's"
    return ""


def grid_lines(grid: GridSpec, num_tasks: int, split: str, found: GridFound) -> Iterator[str]:
    """What is printed of a grid."""
    from muarl.cli._status import removals

    yield (
        f"{len(grid.policies)} policies with {len(grid.users)} users: {num_tasks} tasks of "
        f"{split}, {grid.trials * len(grid.every_seed)} dialogues on each"
    )
    ks = [k for k in found.cells[0].pass_hat if k > 1]
    has_floor = any(cell.above_floor is not None for cell in found.cells)
    above = ["above floor"] if has_floor else []
    rows = [["policy", "user", "success", *above, *(f"pass^{k}" for k in ks), "turns", "faults"]]
    for cell in found.cells:
        hats = [_number(cell.pass_hat[k]) for k in ks]
        turns = cell.summary.turns.value
        rows.append(
            [
                *(cell.policy, cell.user, _number(cell.success)),
                *([_above(cell)] if has_floor else []),
                *hats,
                "" if turns is None else f"{turns:.1f}",
                str(cell.summary.faults),
            ]
        )
    yield from _table(rows)
    for caveat in dict.fromkeys(each for cell in found.cells for each in cell.summary.caveats):
        yield f"some scores leave something out: {caveat}"
    for cell in found.cells:
        for line in _beside(cell):
            yield f"{cell.policy} with {cell.user}: {line}"
        for line in removals(cell.summary.removed):
            yield f"{cell.policy} with {cell.user}: {line.strip()}"
    if found.policies:
        yield f"success, minus that of policy {grid.first_policy} on the same tasks"
        yield from _differences(found.policies)
    if found.users:
        yield f"success, minus that with user {grid.first_user} on the same tasks"
        yield from _differences(found.users)
    if grid.gain is not None:
        yield from _gain(grid, found)


def _above(cell: Cell) -> str:
    return "" if cell.above_floor is None else f"{cell.above_floor.value:.3f}"


def _beside(cell: Cell) -> Iterator[str]:
    """What belongs beside a cell's success, where there is something to say."""
    from muarl.cli._status import why_failed

    if len(cell.by_seed) > 1:
        yield ", ".join(f"seed {seed} {_number(share)}" for seed, share in cell.by_seed.items())
    yield from why_failed(cell.summary.failures)
    if cell.contamination is not None and cell.contamination.seen != 0:
        yield f"contamination {cell.contamination.says}"
    if (spent := cell.spent) is not None:
        cost = "" if spent.cost is None else f", cost {spent.cost:.4g}"
        yield (
            f"{spent.prompt_tokens:,.0f} tokens sent and {spent.completion_tokens:,.0f} written for a "
            f"dialogue{cost}"
        )
        if spent.unknown:
            yield f"of {spent.unknown:,} messages the endpoint did not tell the tokens"
        if (median := cell.observed.get("message_p50_ms")) is not None:
            most = cell.observed["message_p99_ms"]
            yield f"a message took {median:,.0f} ms (median), {most:,.0f} ms (99th percentile)"


def _differences(differences: Sequence[Difference]) -> Iterator[str]:
    rows = [
        [one.of, one.beside, _number(one.success, signed=True), one.found, one.why]
        for one in differences
    ]
    return _table(rows)


def _gain(grid: GridSpec, found: GridFound) -> Iterator[str]:
    gain = grid.gain
    assert gain is not None
    yield f"share of the gain of {gain.trained} over {gain.cold} with {gain.user} that is kept"
    rows = [[user, _number(one.kept), one.verdict, one.why] for user, one in found.kept.items()]
    yield from _table(rows)
    yield (
        f"verdict: {found.verdict} (at least {gain.least:.0%} of the gain, with every other user)"
    )


def _number(estimate: Interval, *, signed: bool = False) -> str:
    sign = "+" if signed else ""
    if estimate.value is None:
        return "unknown"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:{sign}.3f}"
    return f"{estimate.value:{sign}.3f} [{estimate.low:{sign}.3f}, {estimate.high:{sign}.3f}]"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield ("  " + "  ".join(cells)).rstrip()
