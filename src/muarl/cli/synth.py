"""`muarl synth SYNTH.yaml`: make dialogues for a cold start, and keep those that are verified.

The agent is the domain's expert, a model of yours or an LLM behind an endpoint; the user is any user.
All dialogues go through the verification that the file asks for, which needs no model: the table says
what each stage let pass, and why it refused the others. The folder is a run's: `episodes.journal` has
all dialogues, `verdicts.jsonl` what became of each, `yield.json` the table. What was interrupted or
killed goes on with `--resume`; with another `verify` in the file, what was made is looked at anew.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from muarl.cli._answer import answer
from muarl.cli._arguments import add_otel, add_out, add_resume
from muarl.cli._running import prepare_torch, run_interruptibly
from muarl.cli._telling import remark, tell
from muarl.spec import dump_spec, load_synth

if TYPE_CHECKING:
    from muarl.scheduler.rounds import StopSignal
    from muarl.synth.verify import Yield


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("spec", type=Path, metavar="SYNTH.yaml", help="synthesis file")
    parser.add_argument(
        "--dry-run", action="store_true", help="print the file with every default, and do nothing"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_otel(parser)
    add_out(parser, "runs/<name of the file>")
    add_resume(parser, "go on with what that folder holds")


def run(args: argparse.Namespace) -> int:
    """Make, verify, and print the yield; 1 if nothing was kept."""
    synth = load_synth(args.spec)
    if args.dry_run:
        answer(dump_spec(synth.spec.moved(synth.path.parent, Path()), defaults=True).rstrip())
        return 0
    prepare_torch(0)
    from muarl.cli._watching import require_watching, watched
    from muarl.train.ready import files_of_run
    from muarl.train.run_domain import content_of_run
    from muarl.train.run_folder import RunFolder, write_text
    from muarl.train.synthesis import (
        SPEC,
        files_of_synth,
        plan_of_synth,
        ready_synth,
        run_of_synth,
        synthesise,
    )

    played = run_of_synth(synth)
    require_watching(args, played.spec)
    tell("reading the domain and its tasks")
    domain = anyio.run(ready_synth, synth, played)
    out = args.out or Path("runs") / args.spec.stem
    found: list[Yield] = []
    with (
        RunFolder.opened(
            out,
            played.spec.moved(synth.path.parent, out),
            resume=args.resume,
            overwrite=args.overwrite,
            plan=plan_of_synth(synth.spec),
            reads=[*files_of_run(played), *files_of_synth(synth)],
            content=anyio.run(content_of_run, domain, played.spec),
            accept_changes=args.accept_changes,
        ) as folder,
        watched(folder, played.spec, otel=args.otel, beside=[synth.spec]) as (
            observation,
            progress,
        ),
    ):
        moved = synth.spec.moved(synth.path.parent, out)
        write_text(folder.path / SPEC, dump_spec(moved, defaults=True))

        async def work(stop: StopSignal) -> None:
            async with observation.running():
                made = await synthesise(
                    domain,
                    synth,
                    played,
                    folder=folder,
                    progress=progress,
                    stop=stop,
                    observer=observation,
                )
            found.append(made)

        try:
            run_interruptibly(work)
        except* KeyboardInterrupt as interrupted:
            remark(f"stopped; the same command with --resume goes on in {out}")
            raise KeyboardInterrupt from interrupted
    (result,) = found
    if args.json:
        answer(json.dumps(result.as_json() | {"out": str(out)}))
    else:
        for line in result.lines():
            answer(line)
        answer(str(out))
    return 0 if result.kept else 1
