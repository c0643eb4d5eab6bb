"""`muarl rollout RUN.yaml`: run dialogues and keep their episodes.

The policy is a trained one (`--model`, a run folder or a model folder) or the domain's expert
(`--expert`). Prints a summary; the folder holds `episodes.journal`.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import anyio
import msgspec

from muarl.cli._arguments import add_otel, add_out, positive
from muarl.cli._running import prepare_torch, run_interruptibly
from muarl.scheduler.rounds import StopSignal
from muarl.spec import load_run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("spec", type=Path, metavar="RUN.yaml", help="run file")
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument("--model", type=Path, metavar="FOLDER", help="a run's folder, or a model's")
    who.add_argument("--expert", action="store_true", help="the domain's expert")
    parser.add_argument("--split", help="tasks to play (default: the run's eval.split)")
    parser.add_argument(
        "--episodes",
        type=positive,
        metavar="N",
        help="dialogues (default: the run's eval.episodes)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_otel(parser)
    add_out(parser, "runs/<name of the run file>-rollout")


def run(args: argparse.Namespace) -> int:
    """Roll out, and print what the dialogues were like."""
    located = load_run(args.spec)
    update = {
        name: value
        for name, value in (("split", args.split), ("episodes", args.episodes))
        if value is not None
    }
    spec = located.spec.model_copy(
        # Tasks that are only played may be those that others train on.
        update={
            "eval": located.spec.eval.model_copy(update=update),
            "cold_start": None,
            "grpo": None,
        }
    )
    located = replace(located, spec=spec)
    prepare_torch(spec.threads)
    from muarl.cli._status import in_words
    from muarl.cli._watching import require_spans, watched
    from muarl.evaluate.summary import summarise
    from muarl.record import Episode
    from muarl.seeds import generator
    from muarl.train.playing import play
    from muarl.train.ready import ready_domain, require_engine
    from muarl.train.run_folder import RunFolder

    require_spans(args)
    if args.model is not None:
        require_engine(spec, args.model)
    domain = anyio.run(ready_domain, located)
    if args.expert:  # one that is not there is said before a folder is made
        domain.expert(domain.tasks(spec.eval.split)[0], {}, generator(0))
    out = args.out or Path("runs") / f"{args.spec.stem}-rollout"
    folder = RunFolder.create(out, spec, resume=False, overwrite=args.overwrite)
    episodes: list[Episode] = []
    with watched(folder, spec, otel=args.otel) as (observation, progress):

        async def work(stop: StopSignal) -> None:
            async with observation.running():
                played = await play(
                    domain,
                    spec,
                    args.model,
                    phase="rollout",
                    temperature=spec.rollout.temperature,
                    folder=folder,
                    progress=progress,
                    stop=stop,
                    observer=observation,
                )
            episodes.extend(played)

        run_interruptibly(work)
    summary = summarise(episodes)
    found = msgspec.to_builtins(summary) | {"observed": observation.counters.snapshot().figures()}
    folder.log("rollout", phase="rollout", temperature=spec.rollout.temperature, **found)
    if args.json:
        print(json.dumps(found))
    else:
        print(f"{summary.n} dialogues in {folder.journal}, {summary.faults} faults")
        print(f"success {summary.success}, {summary.turns} turns each")
        print(in_words(found["observed"]))
    return 0
