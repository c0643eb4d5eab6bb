"""`muarl rollout RUN.yaml`: run dialogues and keep their episodes.

The policy is a trained one (`--model`, a run folder or a model folder) or the domain's expert
(`--expert`). Prints a summary; the folder holds `episodes.journal`.

Several machines share a rollout by `--shard 1/4` to `--shard 4/4`, each with a folder of its own;
together they give the very episodes that the rollout gives undivided. What was interrupted or killed
goes on with `--resume`.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import replace
from pathlib import Path

import anyio
import msgspec

from muarl.cli._answer import answer
from muarl.cli._arguments import (
    add_otel,
    add_out,
    add_resume,
    add_run,
    answer_run,
    name_of_run,
    positive,
    run_of,
)
from muarl.cli._running import prepare_torch, run_resumably
from muarl.cli._telling import remark, tell
from muarl.scheduler.shards import Shard, keys_of_shard, rollout_keys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    add_run(parser)
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument("--model", type=Path, metavar="FOLDER", help="a run's folder, or a model's")
    who.add_argument("--expert", action="store_true", help="the domain's expert")
    parser.add_argument("--split", help="tasks to play (default: the run's eval.split)")
    parser.add_argument(
        "--episodes",
        type=positive,
        metavar="N",
        help="dialogues of the whole rollout (default: the run's eval.episodes); more than there "
        "are tasks go through them again, as further iterations",
    )
    parser.add_argument(
        "--group-size",
        type=positive,
        default=1,
        metavar="N",
        help="dialogues of one task, with one persona, that share a baseline (default: 1)",
    )
    parser.add_argument(
        "--shard", type=_shard, default=Shard(), metavar="I/N", help="play only the I-th part of N"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_otel(parser)
    add_out(parser, "runs/<name of the run file>-rollout, and the shard")
    add_resume(parser, "go on with what that folder holds")


def _shard(text: str) -> Shard:
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal()):
        raise argparse.ArgumentTypeError(f"expected I/N, such as 1/4, got {text!r}")
    try:
        return Shard(int(number), int(count))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def run(args: argparse.Namespace) -> int:
    """Roll out, and print what the dialogues were like."""
    located = run_of(args, trains=False)
    update = {
        name: value
        for name, value in (("split", args.split), ("episodes", args.episodes))
        if value is not None
    }
    hers = located.spec.user_model
    spec = located.spec.model_copy(
        # Tasks that are only played may be those that others train on.
        update={
            "eval": located.spec.eval.model_copy(update=update),
            "rollout": located.spec.rollout.model_copy(update={"group_size": args.group_size}),
            "cold_start": None,
            "grpo": None,
            "user_model": hers and hers.model_copy(update={"cold_start": None, "grpo": None}),
        }
    )
    located = replace(located, spec=spec)
    if spec.eval.episodes % args.group_size:
        remark(
            f"muarl rollout: error: {spec.eval.episodes} dialogues are no whole number of groups "
            f"of {args.group_size}; choose another --episodes or --group-size"
        )
        return 2
    if args.dry_run:
        return answer_run(located)
    prepare_torch(spec.threads)
    from muarl.cli._status import beside, endings, in_words, removals
    from muarl.cli._watching import require_watching, watched
    from muarl.evaluate.summary import summarise
    from muarl.record import StoredEpisodes
    from muarl.seeds import generator
    from muarl.suite import one_of_each
    from muarl.train.playing import roll_out, stored_user
    from muarl.train.ready import files_of_run, require_engine, require_room
    from muarl.train.run_domain import content_of_run, ready_domain
    from muarl.train.run_folder import RunFolder
    from muarl.train.run_loop import loop_of
    from muarl.train.users_measured import log_users

    require_watching(args, located)
    if args.model is not None:
        anyio.run(require_engine, spec, args.model)
    tell("reading the domain and its tasks")
    domain = anyio.run(ready_domain, located)
    if args.model is not None:
        anyio.run(require_room, located, domain, args.model)
    her_folder, loop = stored_user(located, [spec.user]), loop_of(located)
    tasks = domain.tasks(spec.eval.split)
    if args.expert:  # one that is not there is said before a folder is made
        for task in one_of_each(domain, tasks):
            domain.of(task.id).expert(task, {}, generator(0))
    keys = keys_of_shard(
        rollout_keys(tasks, spec.eval.episodes, group_size=args.group_size, run_seed=spec.seed),
        args.shard,
    )
    out = args.out or _default_out(name_of_run(args), args.shard)
    with (
        RunFolder.opened(
            out,
            spec.moved(located.path.parent, out),
            resume=args.resume,
            overwrite=args.overwrite,
            plan={
                "policy": "expert" if args.expert else os.path.realpath(args.model),
                "shard": str(args.shard),
            },
            reads=[*([args.model] if args.model else []), *files_of_run(located)],
            content=anyio.run(content_of_run, domain, located),
            accept_changes=args.accept_changes,
        ) as folder,
        watched(folder, spec, otel=args.otel) as (observation, progress),
    ):
        run_resumably(
            lambda stop: roll_out(
                domain,
                spec,
                args.model,
                keys,
                folder=folder,
                progress=progress,
                stop=stop,
                observer=observation,
                user=her_folder,
                loop=loop,
            ),
            out,
            observation,
            overwrote=args.overwrite,
        )
        summary = summarise(StoredEpisodes([folder.journal]), seed=spec.seed, row_of=domain.row)
        observed = observation.counters.snapshot().figures()
        found = msgspec.to_builtins(summary) | {"observed": observed}
        about = {"phase": "rollout", "temperature": spec.rollout.temperature}
        folder.log("rollout", **about, **found)
        log_users(folder, domain, StoredEpisodes([folder.journal]), spec.seed, **about)
    if args.json:
        answer(json.dumps(found))
    else:
        answer(f"{summary.n} dialogues in {folder.journal}, {summary.faults} faults")
        answer(f"success {summary.success}, {summary.turns} turns each")
        for line in beside(summary):
            answer(line)
        answer(endings(summary.outcomes))
        for line in removals(summary.removed):
            answer(line)
        answer(in_words(found["observed"]))
    return 0


def _default_out(name: str, shard: Shard) -> Path:
    part = "" if shard.count == 1 else f"-{shard.number}-of-{shard.count}"
    return Path("runs") / f"{name}-rollout{part}"
