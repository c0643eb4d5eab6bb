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
from muarl.cli._tables import number, table
from muarl.cli._telling import remark
from muarl.evaluate.grid import Cell, Difference, GridFound
from muarl.evaluate.trainings import ONE
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
            overwrote=args.overwrite,
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
    if args.no_floor:
        return "a grid names its policies without skill; leave --no-floor out"
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
    yield from table(_scores(found.cells))
    if starred := _starred(found.cells):
        yield starred
    for caveat in dict.fromkeys(each for cell in found.cells for each in cell.summary.caveats):
        yield f"some scores leave something out: {caveat}"
    yield from table(_took(found.cells))
    for cell in found.cells:
        for line in _beside(cell):
            yield f"{cell.policy} with {cell.user}: {line}"
        for line in removals(cell.summary.removed):
            yield f"{cell.policy} with {cell.user}: {line.strip()}"
    for says, policies in _trainings(found.cells).items():
        yield f"{', '.join(policies)}: {says}"
    if found.policies:
        yield f"success, minus that of policy {grid.first_policy} on the same tasks"
        yield from _differences(found.policies)
    if found.users:
        yield f"success, minus that with user {grid.first_user} on the same tasks"
        yield from _differences(found.users)
    if (together := len(found.policies) + len(found.users)) > 1:
        yield f"p in parentheses is adjusted (Holm) for {together} comparisons; found is by that"
    if grid.gain is not None:
        yield from _gain(grid, found)


def _scores(cells: Sequence[Cell]) -> list[list[str]]:
    """A row for each cell, and before it the head: what was reached."""
    ks = [k for k in cells[0].pass_hat if k > 1]
    head = ["policy", "user", "success", "above floor"]
    head += [*(f"pass^{k}" for k in ks), *(f"pass@{k}" for k in ks[-1:]), "faults", "trained on"]
    rows = [head]
    for cell in cells:
        above = "" if cell.above_floor is None else number(cell.above_floor)
        rows.append(
            [
                *(cell.policy, cell.user, number(cell.success), above),
                *(number(cell.pass_hat[k]) for k in ks),
                *(number(cell.pass_at[k]) for k in ks[-1:]),
                str(cell.summary.faults),
                "" if cell.contamination is None else cell.contamination.tag,
            ]
        )
    return rows


def _took(cells: Sequence[Cell]) -> list[list[str]]:
    """Likewise: what a dialogue took. Tokens are those of the policy, as whoever counts them does."""
    rows = [["policy", "user", "turns", "tokens", "sent", "cost", "message ms (p50, p99)"]]
    for cell in cells:
        sent, cost = "", ""
        # Rules speak byte by byte, which says nothing.
        tokens = None if cell.trainings is None else cell.summary.sampled_tokens.value
        if (spent := cell.spent) is not None:
            tokens, sent = spent.completion_tokens, f"{spent.prompt_tokens:,.0f}"
            cost = "" if spent.cost is None else f"{spent.cost:.4g}"
        median, most = (cell.observed.get(f"message_{q}_ms") for q in ("p50", "p99"))
        rows.append(
            [
                *(cell.policy, cell.user),
                "" if (turns := cell.summary.turns.value) is None else f"{turns:.1f}",
                "" if tokens is None else f"{tokens:,.0f}",
                *(sent, cost),
                "" if median is None else f"{median:,.1f}, {most:,.1f}",
            ]
        )
    return rows


def _starred(cells: Sequence[Cell]) -> str:
    tags = [cell.contamination for cell in cells if cell.contamination is not None]
    star = any(tag.tag.endswith("*") for tag in tags)
    return "* what the model it began as was trained on is not known" if star else ""


def _trainings(cells: Sequence[Cell]) -> dict[str, list[str]]:
    """What is said of other trainings, to the policies of which it is."""
    said: dict[str, list[str]] = {}
    for cell in cells:
        if cell.trainings is None:
            continue
        one = cell.trainings.says == ONE
        name = cell.policy if one else f"{cell.policy} with {cell.user}"
        names = said.setdefault(cell.trainings.says, [])
        if name not in names:
            names.append(name)
    return said


def _beside(cell: Cell) -> Iterator[str]:
    """What belongs beside a cell's success, where there is something to say."""
    from muarl.cli._status import why_failed

    if len(cell.by_seed) > 1:
        yield ", ".join(f"seed {seed} {number(share)}" for seed, share in cell.by_seed.items())
    yield from why_failed(cell.summary.failures)
    if cell.spent is not None and cell.spent.unknown:
        yield f"of {cell.spent.unknown:,} messages the endpoint did not tell the tokens"


def _differences(differences: Sequence[Difference]) -> Iterator[str]:
    rows = [
        [one.of, one.beside, number(one.success, signed=True), one.found, one.why]
        for one in differences
    ]
    yield from table(rows)
    for one in differences:
        if one.trainings is not None and one.trainings.mean.n > 1:
            yield f"  {one.of} with {one.beside}, by training: {one.trainings.says}"


def _gain(grid: GridSpec, found: GridFound) -> Iterator[str]:
    gain = grid.gain
    assert gain is not None
    yield f"share of the gain of {gain.trained} over {gain.cold} with {gain.user} that is kept"
    rows = [[user, number(one.kept), one.verdict, one.why] for user, one in found.kept.items()]
    yield from table(rows)
    yield (
        f"verdict: {found.verdict} (at least {gain.least:.0%} of the gain, with every other user)"
    )
