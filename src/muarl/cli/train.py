"""`muarl train RUN.yaml`: cold start, GRPO, and held-out evaluation before and after.

`muarl train RUN.yaml SMALL.yaml --set grpo.lr=1e-6` lays a file and a value over the run file.

Ctrl-C once finishes what is under way, saves and exits with 130; `--resume` then goes on. Twice
ends at once; what was journaled is still there.
"""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from muarl.cli._answer import answer
from muarl.cli._arguments import (
    add_otel,
    add_out,
    add_resume,
    add_run,
    answer_run,
    as_typed,
    name_of_run,
    run_of,
    seed,
)
from muarl.cli._running import prepare_torch, run_interruptibly
from muarl.cli._telling import remark, tell
from muarl.scheduler.rounds import StopSignal
from muarl.spec import Located, RunSpec

if TYPE_CHECKING:
    from muarl.kernel.ranks import Ranks
    from muarl.train.peers import Peers


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    add_run(parser)
    add_out(parser, "runs/<name of the run file>")
    add_resume(parser, "go on with the run in that folder")
    add_otel(parser)
    parser.add_argument("--seed", type=seed, help="instead of the run file's seed")
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object: the run's folder and its evaluations",
    )


def run(args: argparse.Namespace) -> int:
    """Train, and print where the run is."""
    from dataclasses import replace

    located = run_of(args)
    if args.seed is not None:
        located = replace(located, spec=located.spec.model_copy(update={"seed": args.seed}))
    if args.dry_run:
        return answer_run(located)
    prepare_torch(located.spec.threads)
    from muarl.kernel.ranks import joined
    from muarl.train.peers import together

    out = args.out or Path("runs") / name_of_run(args)
    with joined() as ranks, together(ranks, remark) as peers:
        _train(args, located, out, ranks, peers)
    if ranks.is_first:
        answer(json.dumps(_as_json(out)) if args.json else out)
    return 0


def _as_json(out: Path) -> dict[str, Any]:
    """What became of the run, by its metrics; an evaluation has the fields of `muarl eval --json`."""
    from muarl.train.run_folder import RunFolder

    lines: dict[str, list[dict[str, Any]]] = {"floor": [], "iteration": [], "eval": []}
    for line in RunFolder(out).lines():
        lines.setdefault(line.pop("kind"), []).append(line)
    return {
        "run": str(out),
        "iterations": len(lines["iteration"]),
        "floors": lines["floor"],
        "evaluations": lines["eval"],
    }


def _again(args: argparse.Namespace, out: Path, ranks: Ranks) -> str:
    command = f"train {as_typed(args)} --out {shlex.quote(str(out))} --resume"
    return f"muarl {command}" if ranks.alone else f"torchrun ... -m muarl.cli {command}"


def _train(
    args: argparse.Namespace,
    located: Located[RunSpec],
    out: Path,
    ranks: Ranks,
    peers: Peers | None,
) -> None:
    from contextlib import ExitStack
    from functools import partial

    from muarl.cli._watching import require_watching, watched
    from muarl.train.loop import train
    from muarl.train.packages import package_findings
    from muarl.train.peers import heeding
    from muarl.train.rank_folder import FollowerFolder, collect_logs
    from muarl.train.ready import (
        files_of_run,
        refuse_for_many,
        refuse_other_runs,
        require_engine,
    )
    from muarl.train.run_domain import content_of_run, ready_domain
    from muarl.train.run_folder import RunFolder

    spec = located.spec
    refuse_for_many(located, ranks)
    require_watching(args, located)
    located.refuse(package_findings(spec))
    model = located.resolve(spec.model.path) if spec.model.path else None
    anyio.run(partial(require_engine, spec, model, trains=spec.grpo is not None))
    if ranks.is_first:
        tell("reading the domain and its tasks")
    domain = anyio.run(ready_domain, located)
    content = anyio.run(content_of_run, domain, located)
    refuse_other_runs(spec, content, ranks)
    with ExitStack() as held:
        if ranks.is_first:
            opened = RunFolder.opened(
                out,
                spec.moved(located.path.parent, out),
                resume=args.resume,
                overwrite=args.overwrite,
                reads=files_of_run(located),
                content=content,
                accept_changes=args.accept_changes,
            )
            folder = held.enter_context(opened)
            collect_logs(folder)
        ranks.meet()
        if not ranks.is_first:
            folder = FollowerFolder(out, ranks.rank)
        ranks.meet()
        observation, progress = held.enter_context(
            watched(folder, spec, otel=args.otel, shown=ranks.is_first)
        )

        async def work(stop: StopSignal) -> None:
            async with heeding(peers, stop), observation.running():
                await train(located, folder, progress, stop, domain, observation, ranks)

        try:
            run_interruptibly(work)
        except* KeyboardInterrupt as interrupted:
            if ranks.is_first:
                remark(f"stopped; go on with: {_again(args, out, ranks)}")
            raise KeyboardInterrupt from interrupted
