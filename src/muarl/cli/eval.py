"""`muarl eval RUN.yaml --model FOLDER`: held-out success of a trained policy, with intervals.

Beside it stand what scores leave out, pass^k where tasks are tried several times, and means of metrics.

`muarl eval GRID.yaml`: several policies with several users on the same tasks: success, pass^k,
differences paired by task, and how much of what training gained is kept with users that it was not
trained with. docs/generalisation.md says what that means.
"""

from __future__ import annotations

import argparse
import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec

from muarl.cli._answer import answer
from muarl.cli._arguments import (
    add_otel,
    add_out,
    add_resume,
    add_run,
    answer_run,
    finite,
    name_of_run,
    run_of,
)
from muarl.cli._grid import USAGE, run_grid
from muarl.cli._running import prepare_torch, run_interruptibly
from muarl.cli._telling import remark
from muarl.scheduler.rounds import StopSignal
from muarl.spec.kinds import kind_of

_PHASE = "model"
"""Whose evaluation it is; a training evaluates `cold` and `final`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    add_run(parser)
    parser.add_argument(
        "--model",
        type=Path,
        metavar="FOLDER",
        help="a run's folder, or a model's; a grid names its own",
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object per temperature, or per grid"
    )
    parser.add_argument(
        "--at-least",
        type=finite,
        metavar="SHARE",
        help="exit 1 if the first success is below; of a grid, the least share of the gain kept",
    )
    parser.add_argument(
        "--no-floor",
        action="store_true",
        help="do not let the policies without skill play (a grid names its own), such as where users cost",
    )
    add_otel(parser)
    add_out(parser, "runs/<name of the file>-eval")
    add_resume(parser, "go on with a grid that was broken off")


def run(args: argparse.Namespace) -> int:
    """Evaluate at each temperature of the run file, or a grid."""
    if kind_of(args.spec[0]) == "grid":
        return run_grid(args)
    if wrong := _not_of_a_run(args):
        remark(f"muarl eval: error: {wrong}")
        return USAGE
    located = run_of(args)
    spec = located.spec
    if args.dry_run:
        return answer_run(located)
    prepare_torch(spec.threads)
    from muarl.cli._differs import tell_differences
    from muarl.cli._status import above, beside, endings, in_words, removals, took, why_failed
    from muarl.cli._watching import require_watching, watched
    from muarl.evaluate.robustness import Robustness, in_lines, robustness
    from muarl.evaluate.seen import told_apart
    from muarl.evaluate.summary import EvalSummary, summarise
    from muarl.train.evaluation import beside_score, log_floor
    from muarl.train.overlapping import KIND as OVERLAP
    from muarl.train.overlapping import seen_line
    from muarl.train.playing import play, play_floor, stored_user
    from muarl.train.ready import files_of_run, require_engine, require_room
    from muarl.train.run_domain import content_of_run, ready_domain
    from muarl.train.run_folder import RunFolder
    from muarl.train.run_loop import loop_of
    from muarl.train.trained_before import refuse_trained_tasks, tag_of, training_of
    from muarl.train.users_measured import log_users

    require_watching(args, located)
    anyio.run(require_engine, spec, args.model)
    domain = anyio.run(ready_domain, located)
    loop = loop_of(located)
    tell_differences(domain)
    seen = refuse_trained_tasks(located, domain, args.model)
    evaluated = len(domain.tasks(spec.eval.split)[: spec.eval.episodes])
    tag = tag_of(seen, training_of(args.model), evaluated)
    row_of = told_apart(domain.row, seen)
    anyio.run(require_room, located, domain, args.model)
    her_folder = stored_user(located, [spec.eval_user])
    out = args.out or Path("runs") / f"{name_of_run(args)}-eval"
    moved = spec.moved(located.path.parent, out)
    found: list[tuple[float, EvalSummary, dict[str, Any]]] = []
    costs: dict[float, list[Robustness]] = {}
    with (
        RunFolder.opened(
            out,
            moved,
            resume=False,
            overwrite=args.overwrite,
            plan={"policy": os.path.realpath(args.model)},
            reads=[args.model, *files_of_run(located)],
            content=anyio.run(content_of_run, domain, located),
            resumable=False,
        ) as folder,
        watched(folder, spec, otel=args.otel) as (observation, progress),
    ):
        counters = observation.counters
        if seen:
            overlap = seen_line("what the model was trained on", seen, spec.overlap.accepted or "")
            folder.log(OVERLAP, **overlap)
            progress.note(f"{seen}; accepted: {spec.overlap.accepted}")

        async def evaluate(temperature: float, stop: StopSignal) -> None:
            before = counters.snapshot()
            played = partial(played_by, play, temperature=temperature, stop=stop, loop=loop)
            episodes = await played(phase=_PHASE)
            summary = summarise(episodes, seed=spec.seed, row_of=row_of)
            fields = msgspec.to_builtins(summary)
            fields["observed"] = counters.snapshot().since(before).figures()
            fields |= beside_score(folder, summary, tag)
            folder.log("eval", phase=_PHASE, temperature=temperature, **fields)
            log_users(folder, domain, episodes, spec.seed, phase=_PHASE, temperature=temperature)
            found.append((temperature, summary, fields))
            under = {
                name: await played(phase=f"perturbed:{name}", perturb=perturb)
                for name, perturb in spec.eval.perturb.items()
            }
            costs[temperature] = robustness(episodes, under, seed=spec.seed)
            for cost in costs[temperature]:
                folder.log("perturbed", temperature=temperature, **msgspec.to_builtins(cost))

        def played_by(who: Any, **how: Any) -> Any:
            return who(
                *(domain, spec, args.model),
                folder=folder,
                progress=progress,
                observer=observation,
                user=her_folder,
                **how,
            )

        async def work(stop: StopSignal) -> None:
            async with observation.running():
                if not args.no_floor:
                    for name, episodes in (await played_by(play_floor, stop=stop)).items():
                        log_floor(folder, name, summarise(episodes, row_of=row_of))
                for temperature in spec.eval.temperatures:
                    await evaluate(temperature, stop)

        run_interruptibly(work)
    if seen and not args.json:
        answer(f"{seen}; accepted: {spec.overlap.accepted}")
    for temperature, summary, fields in found:
        if args.json:
            perturbed = msgspec.to_builtins(costs[temperature])
            said = {"temperature": temperature, **fields, "perturbed": perturbed}
            if seen:
                said["overlap"] = overlap
            answer(json.dumps(said))
            continue
        answer(
            f"T={temperature:g}: success {summary.success} on {summary.n} dialogues, "
            f"{summary.faults} faults"
        )
        for line in above(fields):
            answer(f"  {line}")
        for name, row in summary.by_row.items():
            answer(f"  {name:<22} {row}")
        for persona, share in summary.by_persona.items():
            answer(f"  {persona:<12} {share}")
        for user, share in summary.by_user.items():
            answer(f"  user {user:<7} {share}")
        for line in beside(summary):
            answer(f"  {line}")
        answer(f"  {endings(summary.outcomes)}")
        for line in why_failed(summary.failures):
            answer(f"  {line}")
        for line in removals(summary.removed):
            answer(f"  {line}")
        answer(f"  {took(summary, fields['observed'])}")
        answer(f"  {in_words(fields['observed'])}")
        for line in in_lines(costs[temperature]):
            answer(f"  {line}")
    reached = found[0][1].success.value or 0.0
    return int(args.at_least is not None and reached < args.at_least)


def _not_of_a_run(args: argparse.Namespace) -> str:
    """What of the arguments does not go with a run file."""
    if args.resume or args.accept_changes:
        return "--resume goes on with a grid; evaluate a run anew, with --overwrite"
    return (
        ""
        if args.model or args.dry_run
        else "a run file needs --model, the folder of what is evaluated"
    )
